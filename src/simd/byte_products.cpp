// SPDX-License-Identifier: MIT
#include "simd/byte_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

// has VNNI
#define HWY_WANT_AVX3_DL

#include "core/constant_count.h"
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/byte_products.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
#if HWY_TARGET <= HWY_AVX3_DL
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni") // some Highways leave it out
#endif
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Panels and vectors of a tile, whose sums stay in registers.
#if HWY_TARGET <= HWY_AVX3_DL
constexpr size_t tile_panels = 4, tile_rows = 6, lanes = 16;
#elif HWY_TARGET <= HWY_AVX2
constexpr size_t tile_panels = 1, tile_rows = 4, lanes = 8;
#else
constexpr size_t tile_panels = 1, tile_rows = 1, lanes = 1;
#endif
constexpr bool subtracts_128 = lanes == 8; ///< before it multiplies

#if HWY_TARGET <= HWY_AVX2

using Sums = hn::CappedTag<int32_t, lanes>;
using Sum = hn::Vec<Sums>;
constexpr size_t panel_vectors = byte_panel_width / lanes;

/// Adds the products of four bytes in each lane. a is from 1 to 255.
HWY_INLINE Sum add_products(Sum sum, Sum a, Sum x) {
#if HWY_TARGET <= HWY_AVX3_DL
    return Sum{_mm512_dpbusd_epi32(sum.raw, a.raw, x.raw)};
#else
    // sums of two products of at most 127 * 127 fit into 16 bits
    const __m256i row = _mm256_xor_si256(a.raw, _mm256_set1_epi8(-128));
    const __m256i pairs = _mm256_maddubs_epi16(
            _mm256_abs_epi8(row), _mm256_sign_epi8(x.raw, row));
    return hn::Add(sum, Sum{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#endif
}

/// Multiplies P panels by R rows of x, which have d components with the
/// padding. begin: first values of the sums; columns: of y, from the first
/// panel on
template <size_t P, size_t R>
HWY_NOINLINE void tile(
        const int8_t* HWY_RESTRICT x,
        const int32_t* HWY_RESTRICT begin,
        const float* HWY_RESTRICT factors,
        const uint8_t* HWY_RESTRICT packed,
        size_t d,
        size_t columns,
        const float* HWY_RESTRICT plus,
        float* HWY_RESTRICT y,
        size_t stride) {
    const Sums tag;
    const hn::RebindToFloat<Sums> floats;
    constexpr size_t vectors = P * panel_vectors, width = P * byte_panel_width;
    Sum sum[R][vectors];
    for (size_t r = 0; r < R; r++) {
        for (size_t c = 0; c < vectors; c++) {
            sum[r][c] = hn::Set(tag, begin[r]);
        }
    }
    for (size_t k = 0; k < d; k += 4) {
        Sum a[vectors];
        for (size_t c = 0; c < vectors; c++) {
            const uint8_t* from = packed +
                    (c / panel_vectors * d + k) * byte_panel_width +
                    c % panel_vectors * lanes * 4;
            a[c] = hn::LoadU(tag, reinterpret_cast<const int32_t*>(from));
        }
        for (size_t r = 0; r < R; r++) {
            int32_t four;
            std::memcpy(&four, x + r * d + k, 4);
            const Sum v = hn::Set(tag, four);
            for (size_t c = 0; c < vectors; c++) {
                sum[r][c] = add_products(sum[r][c], a[c], v);
            }
        }
    }
    for (size_t r = 0; r < R; r++) {
        HWY_ALIGN float values[width];
        const auto factor = hn::Set(floats, factors[r]);
        float* to = HWY_LIKELY(columns >= width) ? y + r * stride : values;
        for (size_t c = 0; c < vectors; c++) {
            const auto more = hn::LoadU(floats, plus + c * lanes);
            const auto product = hn::ConvertTo(floats, sum[r][c]);
            hn::StoreU(
                    hn::NegMulAdd(factor, product, more),
                    floats,
                    to + c * lanes);
        }
        if (HWY_UNLIKELY(columns < width)) {
            std::copy_n(values, columns, y + r * stride);
        }
    }
}

#else

template <size_t P, size_t R>
void tile(
        const int8_t* HWY_RESTRICT x,
        const int32_t* HWY_RESTRICT begin,
        const float* HWY_RESTRICT factors,
        const uint8_t* HWY_RESTRICT packed,
        size_t d,
        size_t columns,
        const float* HWY_RESTRICT plus,
        float* HWY_RESTRICT y,
        size_t) {
    int32_t sums[byte_panel_width];
    std::fill_n(sums, byte_panel_width, begin[0]);
    for (size_t k = 0; k < d; k++) {
        const uint8_t* a = packed + k / 4 * 4 * byte_panel_width + k % 4;
        for (size_t j = 0; j < byte_panel_width; j++) {
            sums[j] += x[k] * a[4 * j];
        }
    }
    for (size_t j = 0; j < std::min(byte_panel_width, columns); j++) {
        y[j] = plus[j] - factors[0] * float(sums[j]);
    }
}

#endif

template <size_t P>
void panel_group(
        size_t n,
        const int8_t* x,
        const int32_t* begin,
        const float* factors,
        const uint8_t* packed,
        size_t d,
        size_t columns,
        const float* plus,
        float* y,
        size_t stride) {
    for (size_t i = 0; i < n; i += tile_rows) {
        with_constant_count<tile_rows>(
                std::min(tile_rows, n - i), [&](auto rows) {
                    tile<P, decltype(rows)::value>(
                            x + i * d,
                            begin + i,
                            factors + i,
                            packed,
                            d,
                            columns,
                            plus,
                            y + i * stride,
                            stride);
                });
    }
}

void byte_products_target(
        size_t n,
        const int8_t* x,
        const float* factors,
        size_t m,
        const uint8_t* packed,
        size_t d,
        const float* plus,
        float* y) {
    const size_t padded = padded_bytes(d);
    // less the products with the 128 in the matrix
    thread_local std::vector<int32_t> begin;
    begin.assign(n, 0);
    for (size_t i = 0; i < n && !subtracts_128; i++) {
        begin[i] =
                -128 * std::accumulate(x + i * padded, x + (i + 1) * padded, 0);
    }
    constexpr size_t wide = tile_panels * byte_panel_width;
    for (size_t j = 0; j < m;) {
        const bool is_wide = j + wide <= m;
        const auto group = is_wide ? panel_group<tile_panels> : panel_group<1>;
        group(n,
              x,
              begin.data(),
              factors,
              packed + j * padded,
              padded,
              m - j,
              plus + j,
              y + j,
              m);
        j += is_wide ? wide : byte_panel_width;
    }
}

using Floats = hn::CappedTag<float, 16>;

float largest_magnitude_target(size_t d, const float* HWY_RESTRICT x) {
    const Floats tag;
    const size_t step = hn::Lanes(tag);
    auto largest = hn::Zero(tag);
    size_t k = 0;
    for (; k + step <= d; k += step) {
        largest = hn::Max(largest, hn::Abs(hn::LoadU(tag, x + k)));
    }
    float found = hn::GetLane(hn::MaxOfLanes(tag, largest));
    for (; k < d; k++) {
        found = std::max(found, std::abs(x[k]));
    }
    return found;
}

void round_to_bytes_target(
        size_t d,
        const float* HWY_RESTRICT x,
        float scale,
        int8_t* HWY_RESTRICT bytes,
        float& square,
        float& square_of_lost) {
    const Floats tag;
    const hn::Rebind<int8_t, Floats> byte_tag;
    const size_t step = hn::Lanes(tag);
    const float inverse = scale > 0 ? 1 / scale : 0;
    auto squares = hn::Zero(tag), of_lost = hn::Zero(tag);
    size_t k = 0;
    for (; k + step <= d; k += step) {
        const auto v = hn::LoadU(tag, x + k);
        const auto whole = hn::NearestInt(hn::Mul(v, hn::Set(tag, inverse)));
        hn::StoreU(hn::DemoteTo(byte_tag, whole), byte_tag, bytes + k);
        const auto lost = hn::NegMulAdd(
                hn::ConvertTo(tag, whole), hn::Set(tag, scale), v);
        squares = hn::MulAdd(v, v, squares);
        of_lost = hn::MulAdd(lost, lost, of_lost);
    }
    square = hn::GetLane(hn::SumOfLanes(tag, squares));
    square_of_lost = hn::GetLane(hn::SumOfLanes(tag, of_lost));
    for (; k < d; k++) {
        bytes[k] = int8_t(std::lrint(x[k] * inverse));
        const float lost = x[k] - float(bytes[k]) * scale;
        square += x[k] * x[k];
        square_of_lost += lost * lost;
    }
}

bool has_byte_products_target() {
    return lanes > 1;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
#if HWY_TARGET <= HWY_AVX3_DL
HWY_POP_ATTRIBUTES
#endif
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(byte_products_target);
HWY_EXPORT(has_byte_products_target);
HWY_EXPORT(largest_magnitude_target);
HWY_EXPORT(round_to_bytes_target);

bool has_byte_products() {
    return HWY_DYNAMIC_DISPATCH(has_byte_products_target)();
}

float largest_magnitude(size_t d, const float* x) {
    return HWY_DYNAMIC_DISPATCH(largest_magnitude_target)(d, x);
}

void round_to_bytes(
        size_t d,
        const float* x,
        float scale,
        int8_t* bytes,
        float& square,
        float& square_of_lost) {
    HWY_DYNAMIC_DISPATCH(round_to_bytes_target)
    (d, x, scale, bytes, square, square_of_lost);
}

void byte_products(
        size_t n,
        const int8_t* x,
        const float* factors,
        size_t m,
        const uint8_t* packed,
        size_t d,
        const float* plus,
        float* y) {
    HWY_DYNAMIC_DISPATCH(byte_products_target)
    (n, x, factors, m, packed, d, plus, y);
}

} // namespace faiss_ext::simd
#endif
