#include "simd/bilinear.h"

#include <type_traits>

#include "simd/projection.h" // panel_width

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/bilinear.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_SCALABLE
using Tag = hn::FixedTag<float, 4>;
#else
using Tag = hn::CappedTag<float, panel_width>;
#endif
using Vec = hn::Vec<Tag>;

constexpr size_t vector_lanes = hn::MaxLanes(Tag());
constexpr size_t panel_vectors = panel_width / vector_lanes;

// Rows that share the loads of up to four vectors: 16 sums need 32 registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr size_t tile_rows = 4;
#else
constexpr size_t tile_rows = 2;
#endif

/// R rows against C vectors.
template <size_t R, size_t C>
HWY_INLINE void dots(
        const float* HWY_RESTRICT t,
        size_t t_stride,
        const int32_t* HWY_RESTRICT ids,
        const float* HWY_RESTRICT v,
        size_t d,
        float* HWY_RESTRICT y,
        size_t y_stride) {
    const Tag tag;
    const float* from[C];
    for (size_t c = 0; c < C; c++) {
        from[c] = v + ids[c] * d;
    }
    Vec sum[R][C];
    for (size_t r = 0; r < R; r++) {
        for (size_t c = 0; c < C; c++) {
            sum[r][c] = hn::Zero(tag);
        }
    }
    for (size_t k = 0; k < d; k += vector_lanes) {
        Vec a[R];
        for (size_t r = 0; r < R; r++) {
            a[r] = hn::LoadU(tag, t + r * t_stride + k);
        }
        for (size_t c = 0; c < C; c++) {
            const Vec b = hn::LoadU(tag, from[c] + k);
            for (size_t r = 0; r < R; r++) {
                sum[r][c] = hn::MulAdd(a[r], b, sum[r][c]);
            }
        }
    }
    for (size_t r = 0; r < R; r++) {
        for (size_t c = 0; c < C; c++) {
            y[r * y_stride + c] = hn::GetLane(hn::SumOfLanes(tag, sum[r][c]));
        }
    }
}

template <size_t R>
void all_dots(
        const float* t,
        size_t t_stride,
        size_t count,
        const int32_t* ids,
        const float* v,
        size_t d,
        float* y,
        size_t y_stride) {
    size_t j = 0;
    for (; j + 4 <= count; j += 4) {
        dots<R, 4>(t, t_stride, ids + j, v, d, y + j, y_stride);
    }
    switch (count - j) {
        case 3:
            return dots<R, 3>(t, t_stride, ids + j, v, d, y + j, y_stride);
        case 2:
            return dots<R, 2>(t, t_stride, ids + j, v, d, y + j, y_stride);
        case 1:
            return dots<R, 1>(t, t_stride, ids + j, v, d, y + j, y_stride);
    }
}

void selected_dots_target(
        size_t rows,
        const float* t,
        size_t t_stride,
        size_t count,
        const int32_t* ids,
        const float* v,
        size_t d,
        float* y,
        size_t y_stride) {
    const auto dots_of = [&](auto count_of_rows, size_t r) {
        all_dots<count_of_rows()>(
                t + r * t_stride,
                t_stride,
                count,
                ids,
                v,
                d,
                y + r * y_stride,
                y_stride);
    };
    size_t r = 0;
    for (; r + tile_rows <= rows; r += tile_rows) {
        dots_of(std::integral_constant<size_t, tile_rows>(), r);
    }
    for (; r + 2 <= rows; r += 2) {
        dots_of(std::integral_constant<size_t, 2>(), r);
    }
    if (r < rows) {
        dots_of(std::integral_constant<size_t, 1>(), r);
    }
}

/// Two levels of butterflies, over distances h and 2 h; `signs` multiply the
/// input where Signed.
template <bool Signed>
HWY_INLINE void radix_4(size_t d, size_t h, const float* signs, float* x) {
    const Tag tag;
    for (size_t i = 0; i < d; i += 4 * h) {
        for (size_t j = i; j < i + h; j++) {
            for (size_t p = 0; p < panel_vectors; p++) {
                float* at[4];
                Vec v[4];
                for (size_t q = 0; q < 4; q++) {
                    at[q] = x + (j + q * h) * panel_width + p * vector_lanes;
                    v[q] = hn::LoadU(tag, at[q]);
                    if constexpr (Signed) {
                        v[q] = hn::Mul(v[q], hn::Set(tag, signs[j + q * h]));
                    }
                }
                const Vec a = hn::Add(v[0], v[1]), b = hn::Sub(v[0], v[1]);
                const Vec c = hn::Add(v[2], v[3]), e = hn::Sub(v[2], v[3]);
                hn::StoreU(hn::Add(a, c), tag, at[0]);
                hn::StoreU(hn::Add(b, e), tag, at[1]);
                hn::StoreU(hn::Sub(a, c), tag, at[2]);
                hn::StoreU(hn::Sub(b, e), tag, at[3]);
            }
        }
    }
}

void radix_2(size_t d, size_t h, float* x) {
    const Tag tag;
    for (size_t i = 0; i < d; i += 2 * h) {
        for (size_t j = i * panel_width; j < (i + h) * panel_width;
             j += vector_lanes) {
            const Vec a = hn::LoadU(tag, x + j);
            const Vec b = hn::LoadU(tag, x + j + h * panel_width);
            hn::StoreU(hn::Add(a, b), tag, x + j);
            hn::StoreU(hn::Sub(a, b), tag, x + j + h * panel_width);
        }
    }
}

void hadamard_rounds_target(
        size_t d,
        const float* HWY_RESTRICT signs,
        float* HWY_RESTRICT x) {
    const Tag tag;
    for (size_t round = 0; round < 3; round++, signs += d) {
        size_t h = 1;
        if (d >= 4) {
            radix_4<true>(d, 1, signs, x);
            h = 4;
        } else {
            for (size_t k = 0; k < d; k++) {
                for (size_t p = 0; p < panel_width; p += vector_lanes) {
                    float* at = x + k * panel_width + p;
                    hn::StoreU(
                            hn::Mul(hn::LoadU(tag, at), hn::Set(tag, signs[k])),
                            tag,
                            at);
                }
            }
        }
        for (; 4 * h <= d; h *= 4) {
            radix_4<false>(d, h, signs, x);
        }
        if (h < d) {
            radix_2(d, h, x);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(selected_dots_target);
HWY_EXPORT(hadamard_rounds_target);

void selected_dots(
        size_t rows,
        const float* t,
        size_t t_stride,
        size_t count,
        const int32_t* ids,
        const float* v,
        size_t d,
        float* y,
        size_t y_stride) {
    HWY_DYNAMIC_DISPATCH(selected_dots_target)
    (rows, t, t_stride, count, ids, v, d, y, y_stride);
}

void hadamard_rounds(size_t d, const float* signs, float* x) {
    HWY_DYNAMIC_DISPATCH(hadamard_rounds_target)(d, signs, x);
}

} // namespace faiss_ext::simd
#endif
