// SPDX-License-Identifier: MIT
// The part of bilinear projections that is not matrix products.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/// Ids after the last one that are read, so that vectors are prefetched in
/// time.
constexpr size_t ids_ahead = 4;

/** Computes y[r * y_stride + j] = scale * <t_r, v_ids[j]> for all r < rows, j <
 * count.
 *
 * Products are summed in float, with one sum for each lane. A value does not
 * depend on the other values.
 *
 * @param t      t_r = t + r * t_stride, size d
 * @param v      v_i = v + i * d
 * @param ids    size count + ids_ahead
 * @param d      a multiple of 16
 */
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
        size_t y_stride);

} // namespace faiss_ext::simd
