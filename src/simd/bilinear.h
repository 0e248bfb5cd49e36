// What bilinear projections spend their time on besides matrix products.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** y[r * y_stride + j] = <t_r, v_ids[j]> for all r < rows, j < count.
 *
 * Products are summed in float, one sum for each lane; a value does not depend
 * on the others.
 *
 * @param t      t_r = t + r * t_stride, size d
 * @param v      v_i = v + i * d
 * @param d      a multiple of 16
 */
void selected_dots(
        size_t rows,
        const float* t,
        size_t t_stride,
        size_t count,
        const int32_t* ids,
        const float* v,
        size_t d,
        float* y,
        size_t y_stride);

/** Three rounds of sign flips and Walsh-Hadamard transforms of 16 vectors side
 * by side, not scaled: lengths grow by d^(3/2).
 *
 * @param d      a power of 2
 * @param signs  +-1, three times d
 * @param x      component k of vector i at x[16 * k + i]; changed in place
 */
void hadamard_rounds(size_t d, const float* signs, float* x);

} // namespace faiss_ext::simd
