// SPDX-License-Identifier: MIT
#include "simd/pairwise.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/cache_sizes.h"
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/pairwise.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

struct Dot {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        return hn::MulAdd(x, y, sum);
    }
};

struct SquaredL2 {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        const Vec diff = hn::Sub(x, y);
        return hn::MulAdd(diff, diff, sum);
    }
};

struct L1 {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        return hn::Add(sum, hn::Abs(hn::Sub(x, y)));
    }
};

/// Denominators below this count as 0. Smaller components are lost, but do not
/// become NaN.
constexpr float tiny = 1e-37f;

/// Computes x / y for normal y, to 2 units in the last place. With vectors of
/// 512 bits a division takes as long as ten of these operations. The
/// approximation is defined bit for bit, so that processors agree.
HWY_INLINE Vec quotient(Vec x, Vec y) {
#if HWY_TARGET <= HWY_AVX3
    const Tag tag;
    const Vec near = hn::ApproximateReciprocal(y);
    const Vec error = hn::NegMulAdd(y, near, hn::Set(tag, 1));
    return hn::Mul(x, hn::MulAdd(near, error, near));
#else
    return hn::Div(x, y);
#endif
}

struct Chi2 {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        const Tag tag;
        const Vec bottom = hn::Max(hn::Add(x, y), hn::Set(tag, tiny));
        // as x (y / (x + y)), since the product of x and y could underflow
        const Vec low = hn::Min(x, y);
        return hn::MulAdd(
                hn::Add(low, low), quotient(hn::Max(x, y), bottom), sum);
    }
};

struct Chi2Distance {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        const Tag tag;
        const Vec bottom = hn::Max(hn::Add(x, y), hn::Set(tag, tiny));
        const Vec diff = hn::Sub(x, y);
        return hn::MulAdd(diff, quotient(diff, bottom), sum);
    }
};

struct Intersection {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        return hn::Add(sum, hn::Min(x, y));
    }
};

struct Hellinger {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        return hn::Add(sum, hn::Mul(hn::Sqrt(x), hn::Sqrt(y)));
    }
};

struct HellingerDistance {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        // the difference of the roots, computed without cancellation
        const Tag tag;
        const Vec roots = hn::Max(
                hn::Add(hn::Sqrt(x), hn::Sqrt(y)), hn::Set(tag, 1e-30f));
        const Vec diff = hn::Div(hn::Sub(x, y), roots);
        return hn::MulAdd(diff, diff, sum);
    }
};

/// Evaluates a polynomial; the constant coefficient comes first.
template <size_t N>
HWY_INLINE Vec polynomial(Vec x, const float (&c)[N]) {
    const Tag tag;
    Vec sum = hn::Set(tag, c[N - 1]);
    for (size_t i = N - 1; i > 0; i--) {
        sum = hn::MulAdd(sum, x, hn::Set(tag, c[i - 1]));
    }
    return sum;
}

// Logarithms in Jensen-Shannon terms. The polynomials interpolate at
// Chebyshev's nodes; their errors are below 1e-7 of the terms that they are
// part of.

/// Computes 1/2 log2(q) for normal q > 0: q = 2^e m, m from sqrt(1/2) to
/// sqrt(2).
HWY_INLINE Vec half_log2(Vec q) {
    static constexpr float c[] = {
            0.721347511f,
            -0.360673726f,
            0.240455374f,
            -0.180346638f,
            0.143951625f,
            -0.11958494f,
            0.108039111f,
            -0.102930941f,
            0.0615548417f};
    constexpr int32_t root_half = 0x3f3504f3; // as an integer
    const Tag tag;
    const hn::RebindToSigned<Tag> itag;
    const auto bits = hn::BitCast(itag, q);
    const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(itag, root_half)));
    const Vec m = hn::BitCast(tag, hn::Sub(bits, hn::ShiftLeft<23>(e)));
    const Vec t = hn::Sub(m, hn::Set(tag, 1));
    return hn::MulAdd(
            t,
            polynomial(t, c),
            hn::Mul(hn::ConvertTo(tag, e), hn::Set(tag, 0.5f)));
}

/// Computes 1/2 (1 + q) log2(1 + q) / q for q from 0 to 1.
HWY_INLINE Vec half_log2_1p(Vec q) {
    static constexpr float c[] = {
            0.72134757f,
            0.360670388f,
            -0.120151803f,
            0.0594952814f,
            -0.0333919674f,
            0.0173003655f,
            -0.00645147078f,
            0.00118166616f};
    return polynomial(q, c);
}

/// Computes 1/2 log2(low / high) if the quotient leaves the range of float. A
/// function, since it is rarely called, and its two logarithms take long to
/// compile in all tiles.
HWY_NOINLINE Vec half_log2_of_lost(Vec low, Vec high) {
    const Tag tag;
    const Vec apart =
            hn::Sub(hn::Log2(tag, low),
                    hn::Log2(tag, hn::Max(high, hn::Set(tag, tiny))));
    return hn::Mul(apart, hn::Set(tag, 0.5f));
}

/** With q = low / high the term is low times
 *
 *     1/2 (1 + q) log2(1 + q) / q - 1/2 log2(q).
 *
 * Both parts are >= 0, so nothing cancels; the relative error is below 4e-7. If
 * q leaves the range of float, log2(q) is computed as a difference of
 * logarithms.
 */
struct JensenShannon {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        const Tag tag;
        const Vec floor = hn::Set(tag, tiny);
        const Vec low = hn::Min(x, y), high = hn::Max(x, y);
        const Vec q = hn::Div(low, hn::Max(high, floor));
        const Vec normal_q = hn::Max(q, floor);
        Vec half_log = half_log2(normal_q);
        const auto is_lost =
                hn::And(hn::Lt(q, floor), hn::Gt(low, hn::Zero(tag)));
        if (HWY_UNLIKELY(!hn::AllFalse(tag, is_lost))) {
            half_log = hn::IfThenElse(
                    is_lost, half_log2_of_lost(low, high), half_log);
        }
        return hn::MulAdd(low, hn::Sub(half_log2_1p(normal_q), half_log), sum);
    }
};

/** With s = x + y and d = |x - y| / s the term is s times
 *
 *     1/2 (1 + d) log2(1 + d) + 1/2 (1 - d) log2(1 - d).
 *
 * Up to d = 1/2 this is computed as d^2 times a polynomial of d^2, so that
 * nearly equal components do not cancel. Beyond, it is computed by logarithms,
 * with 1 - d = 2 low / s. The relative error is below 1e-6.
 */
struct JensenShannonDistance {
    static HWY_INLINE Vec add(Vec x, Vec y, Vec sum) {
        static constexpr float c[] = {
                0.721347511f,
                0.120225094f,
                0.0480665416f,
                0.0261486005f,
                0.0132104168f,
                0.0198391192f};
        const Tag tag;
        const Vec floor = hn::Set(tag, tiny);
        const Vec s = hn::Add(x, y), bottom = hn::Max(s, floor);
        const Vec low = hn::Min(x, y);
        const Vec d = hn::Div(hn::Abs(hn::Sub(x, y)), bottom);
        const Vec u = hn::Mul(d, d);
        const Vec near = hn::Mul(u, polynomial(u, c));
        const Vec r = hn::Div(hn::Add(low, low), bottom);
        const Vec far = hn::MulAdd(
                d, half_log2_1p(d), hn::Mul(r, half_log2(hn::Max(r, floor))));
        return hn::MulAdd(
                s,
                hn::IfThenElse(hn::Lt(d, hn::Set(tag, 0.5f)), near, far),
                sum);
    }
};

/// Number of components summed in float: 64 per lane.
constexpr size_t run_length = 64 * hn::MaxLanes(Tag());

/// Loads n numbers, fewer than there are lanes, and pads with zeros.
HWY_INLINE Vec load_rest(const float* HWY_RESTRICT from, size_t n) {
    const Tag tag;
#if HWY_TARGET <= HWY_AVX3 // masked-out addresses are not touched
    return hn::MaskedLoad(hn::FirstN(tag, n), tag, from);
#else
    HWY_ALIGN float rest[hn::MaxLanes(Tag())] = {};
    std::copy_n(from, n, rest);
    return hn::Load(tag, rest);
#endif
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void sum_lanes_of_four(const Vec* HWY_RESTRICT v, float* sums) {
    for (size_t i = 0; i < 4; i++) {
        sums[i] = hn::GetLane(v[i]);
    }
}
#else
/// Adds the upper half of the lanes to the lower half until four are left.
template <class D>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> fold_to_four(D, hn::Vec<D> v) {
    if constexpr (hn::MaxLanes(D()) == 4) {
        return v;
    } else {
        const hn::Half<D> half;
        return fold_to_four(
                half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
}

/// Sums the lanes of each of four vectors, in the same order.
HWY_INLINE void sum_lanes_of_four(const Vec* HWY_RESTRICT v, float* sums) {
    const Tag tag;
    const hn::FixedTag<float, 4> four;
    const auto a = fold_to_four(tag, v[0]), b = fold_to_four(tag, v[1]),
               c = fold_to_four(tag, v[2]), d = fold_to_four(tag, v[3]);
    const auto ab = hn::Add(
            hn::ConcatLowerLower(four, b, a), hn::ConcatUpperUpper(four, b, a));
    const auto cd = hn::Add(
            hn::ConcatLowerLower(four, d, c), hn::ConcatUpperUpper(four, d, c));
    hn::StoreU(
            hn::Add(hn::ConcatEven(four, cd, ab), hn::ConcatOdd(four, cd, ab)),
            four,
            sums);
}
#endif

/// Compares R rows of x with C rows of y over `length` of d components. The R *
/// C sums stay in registers over one run; then they are written to floats or
/// added to doubles.
template <class Op, size_t R, size_t C, class Out>
HWY_NOINLINE void tile(
        const float* HWY_RESTRICT x,
        const float* HWY_RESTRICT y,
        size_t d,
        size_t length,
        Out* HWY_RESTRICT out,
        size_t ldout) {
    // sums, rounded up to groups of four
    constexpr size_t N = (R * C + 3) / 4 * 4;
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    HWY_ALIGN float of_run[N] = {};
    double total[R * C] = {};
    for (size_t k0 = 0; k0 < length; k0 += run_length) {
        const size_t k1 = std::min(length, k0 + run_length);
        Vec sum[N];
        for (size_t i = 0; i < N; i++) {
            sum[i] = hn::Zero(tag);
        }
        size_t k = k0;
        for (; k + lanes <= k1; k += lanes) {
            Vec xv[R];
            for (size_t r = 0; r < R; r++) {
                xv[r] = hn::LoadU(tag, x + r * d + k);
            }
            for (size_t c = 0; c < C; c++) {
                const Vec yv = hn::LoadU(tag, y + c * d + k);
                for (size_t r = 0; r < R; r++) {
                    sum[r * C + c] = Op::add(xv[r], yv, sum[r * C + c]);
                }
            }
        }
        if (k < k1) {
            // the rest is padded with zeros, whose terms are zero
            Vec xv[R];
            for (size_t r = 0; r < R; r++) {
                xv[r] = load_rest(x + r * d + k, k1 - k);
            }
            for (size_t c = 0; c < C; c++) {
                const Vec yv = load_rest(y + c * d + k, k1 - k);
                for (size_t r = 0; r < R; r++) {
                    sum[r * C + c] = Op::add(xv[r], yv, sum[r * C + c]);
                }
            }
        }
        for (size_t i = 0; i < N; i += 4) {
            sum_lanes_of_four(sum + i, of_run + i);
        }
        if (length > run_length) {
            for (size_t i = 0; i < R * C; i++) {
                total[i] += of_run[i];
            }
        }
    }
    for (size_t r = 0; r < R; r++) {
        for (size_t c = 0; c < C; c++) {
            const size_t i = r * C + c;
            Out& to = out[r * ldout + c];
            if constexpr (std::is_same_v<Out, double>) {
                to += length > run_length ? total[i] : double(of_run[i]);
            } else {
                to = length > run_length ? float(total[i]) : of_run[i];
            }
        }
    }
}

// 16 sums and 5 operands need 32 registers; 3 * 3 sums fit in 16 registers.
// Emulated vectors are in memory anyway, and larger tiles compile for minutes.
#if HWY_TARGET == HWY_EMU128
constexpr size_t tile_size = 1;
#elif HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr size_t tile_size = 4;
#else
constexpr size_t tile_size = 3;
#endif

/// Compares R rows of x with all m rows of y.
template <class Op, size_t R, class Out>
void stripe(
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        size_t length,
        Out* out,
        size_t ldout) {
    size_t j = 0;
    for (; j + tile_size <= m; j += tile_size) {
        tile<Op, R, tile_size>(x, y + j * d, d, length, out + j, ldout);
    }
    for (; j < m; j++) {
        tile<Op, R, 1>(x, y + j * d, d, length, out + j, ldout);
    }
}

/// Compares all n rows of x with all m rows of y.
template <class Op, class Out>
void stripes(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        size_t length,
        Out* out,
        size_t ldout) {
    size_t i = 0;
    for (; i + tile_size <= n; i += tile_size) {
        stripe<Op, tile_size>(
                x + i * d, m, y, d, length, out + i * ldout, ldout);
    }
    for (; i < n; i++) {
        stripe<Op, 1>(x + i * d, m, y, d, length, out + i * ldout, ldout);
    }
}

/// Compares vectors of one component.
template <class Op>
void single_terms(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        float* out,
        size_t ldout) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    for (size_t i = 0; i < n; i++) {
        const Vec a = hn::Set(tag, x[i]);
        float* row = out + i * ldout;
        size_t j = 0;
        for (; j + lanes <= m; j += lanes) {
            const Vec terms = Op::add(a, hn::LoadU(tag, y + j), hn::Zero(tag));
            hn::StoreU(terms, tag, row + j);
        }
        if (j < m) {
            HWY_ALIGN float rest[hn::MaxLanes(tag)] = {};
            std::copy(y + j, y + m, rest);
            hn::Store(
                    Op::add(a, hn::Load(tag, rest), hn::Zero(tag)), tag, rest);
            std::copy_n(rest, m - j, row + j);
        }
    }
}

template <class Op>
void blocks(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        size_t ldout) {
    if (d == 1) {
        return single_terms<Op>(n, x, m, y, out, ldout);
    }
    constexpr size_t block_size = cache::pairwise_rows;
    // longer rows are compared in pieces of this many components
    constexpr size_t piece = run_length, longest = 8192;
    if (d <= longest) {
        const size_t rows = std::clamp<size_t>(
                block_size / std::max<size_t>(d, 1), 4, 4096);
        const size_t my = rows / tile_size * tile_size;
        for (size_t j = 0; j < m; j += my) {
            stripes<Op>(
                    n, x, std::min(my, m - j), y + j * d, d, d, out + j, ldout);
        }
        return;
    }
    constexpr size_t my = block_size / piece / tile_size * tile_size, nx = 256;
    std::vector<double> sums(std::min(n, nx) * std::min(m, my));
    for (size_t i = 0; i < n; i += nx) {
        const size_t ni = std::min(nx, n - i);
        for (size_t j = 0; j < m; j += my) {
            const size_t mj = std::min(my, m - j);
            std::fill_n(sums.begin(), ni * mj, 0.0);
            for (size_t k = 0; k < d; k += piece) {
                stripes<Op>(
                        ni,
                        x + i * d + k,
                        mj,
                        y + j * d + k,
                        d,
                        std::min(piece, d - k),
                        sums.data(),
                        mj);
            }
            for (size_t l = 0; l < ni * mj; l++) {
                out[(i + l / mj) * ldout + j + l % mj] = float(sums[l]);
            }
        }
    }
}

void pairwise_target(
        PairOp op,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        size_t ldout) {
    switch (op) {
        case PairOp::dot:
            return blocks<Dot>(n, x, m, y, d, out, ldout);
        case PairOp::squared_l2:
            return blocks<SquaredL2>(n, x, m, y, d, out, ldout);
        case PairOp::l1:
            return blocks<L1>(n, x, m, y, d, out, ldout);
        case PairOp::chi2:
            return blocks<Chi2>(n, x, m, y, d, out, ldout);
        case PairOp::chi2_distance:
            return blocks<Chi2Distance>(n, x, m, y, d, out, ldout);
        case PairOp::intersection:
            return blocks<Intersection>(n, x, m, y, d, out, ldout);
        case PairOp::hellinger:
            return blocks<Hellinger>(n, x, m, y, d, out, ldout);
        case PairOp::hellinger_distance:
            return blocks<HellingerDistance>(n, x, m, y, d, out, ldout);
        case PairOp::jensen_shannon:
            return blocks<JensenShannon>(n, x, m, y, d, out, ldout);
        case PairOp::jensen_shannon_distance:
            return blocks<JensenShannonDistance>(n, x, m, y, d, out, ldout);
    }
}

const char* target_name_target() {
    return hwy::TargetName(HWY_TARGET);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(pairwise_target);
HWY_EXPORT(target_name_target);

void pairwise(
        PairOp op,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        size_t ldout) {
    HWY_DYNAMIC_DISPATCH(pairwise_target)(op, n, x, m, y, d, out, ldout);
}

const char* target_name() {
    return HWY_DYNAMIC_DISPATCH(target_name_target)();
}

} // namespace faiss_ext::simd
#endif
