// SPDX-License-Identifier: MIT
#include "simd/bilinear.h"

#include <type_traits>

#include <hwy/cache_control.h>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/bilinear.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

#include "simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

// Rows that share the loads of up to four vectors.
constexpr size_t tile_rows = many_registers ? 4 : 2;

/// Multiplies R rows by C vectors.
template <size_t R, size_t C>
HWY_INLINE void dots(
        const float* HWY_RESTRICT t,
        size_t t_stride,
        float scale,
        const int32_t* HWY_RESTRICT ids,
        const float* HWY_RESTRICT v,
        size_t d,
        float* HWY_RESTRICT y,
        size_t y_stride) {
    const Tag tag;
    const float *from[C], *next[C];
    for (size_t c = 0; c < C; c++) {
        from[c] = v + ids[c] * d;
        next[c] = v + ids[C + c] * d;
    }
    Vec sum[R][C];
    for (size_t r = 0; r < R; r++) {
        for (size_t c = 0; c < C; c++) {
            sum[r][c] = hn::Zero(tag);
        }
    }
    for (size_t k = 0; k < d; k += vector_lanes) {
        for (size_t c = 0; c < C && k * sizeof(float) % 64 == 0; c++) {
            hwy::Prefetch(next[c] + k);
        }
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
            y[r * y_stride + c] =
                    scale * hn::GetLane(hn::SumOfLanes(tag, sum[r][c]));
        }
    }
}

template <size_t R>
void all_dots(
        const float* t,
        size_t t_stride,
        float scale,
        size_t count,
        const int32_t* ids,
        const float* v,
        size_t d,
        float* y,
        size_t y_stride) {
    size_t j = 0;
    for (; j + 4 <= count; j += 4) {
        dots<R, 4>(t, t_stride, scale, ids + j, v, d, y + j, y_stride);
    }
    switch (count - j) {
        case 3:
            return dots<R, 3>(
                    t, t_stride, scale, ids + j, v, d, y + j, y_stride);
        case 2:
            return dots<R, 2>(
                    t, t_stride, scale, ids + j, v, d, y + j, y_stride);
        case 1:
            return dots<R, 1>(
                    t, t_stride, scale, ids + j, v, d, y + j, y_stride);
    }
}

void selected_dots_target(
        size_t rows,
        const float* t,
        size_t t_stride,
        float scale,
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
                scale,
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

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(selected_dots_target);

void selected_dots(
        size_t rows,
        const float* t,
        size_t t_stride,
        float scale,
        size_t count,
        const int32_t* ids,
        const float* v,
        size_t d,
        float* y,
        size_t y_stride) {
    HWY_DYNAMIC_DISPATCH(selected_dots_target)
    (rows, t, t_stride, scale, count, ids, v, d, y, y_stride);
}

} // namespace faiss_ext::simd
#endif
