// Random rotations without a matrix: sign flips and fast Walsh-Hadamard
// transforms.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/** Three rounds of sign flips and Walsh-Hadamard transforms, not scaled: the
 * length of x grows by d^(3/2).
 *
 * Of the last transform there are only the first d_out outputs, the sums over
 * the d / d_out parts of its input transformed.
 *
 * Sums are made in the order of the levels, from neighbours to halves: values
 * are the same for every instruction set.
 *
 * @param d      a power of 2, at least 16
 * @param d_out  a power of 2, from 16 to d
 * @param signs  +-1, three times d
 * @param x      size d; the outputs are x[0] to x[d_out - 1], the rest is used
 */
void hadamard_rounds(size_t d, size_t d_out, const float* signs, float* x);

/** The same for 16 vectors side by side, without limits of d from below:
 * component k of vector i is x[16 * k + i], output k of it is y[stride * k +
 * i].
 *
 * @param x     size 16 * d
 * @param work  size 16 * d
 */
void hadamard_rounds_of_panel(
        size_t d,
        const float* signs,
        const float* x,
        float* work,
        float* y,
        size_t stride);

} // namespace faiss_ext::simd
