// SPDX-License-Identifier: MIT
// Random rotations without a matrix: sign flips and fast Walsh-Hadamard
// transforms.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/** y_j = norms[j] r_j: three rounds of sign flips and Walsh-Hadamard transforms
 * of x, not scaled (the length of r is d^(3/2) times that of x).
 *
 * If no more than d / 2 outputs are wanted, the last transform is a smaller
 * one, of the sum of the parts of its input.
 *
 * Sums are made level by level: values are the same for every instruction set,
 * and err by no more than those of whole transforms.
 *
 * @param d_x    components of x; more, up to d, are 0
 * @param d      a power of 2, at least 16
 * @param signs  +-1, three times d
 * @param d_y    size of norms and y, at most d
 * @param work   size d
 */
void hadamard_rounds(
        size_t d_x,
        const float* x,
        size_t d,
        const float* signs,
        size_t d_y,
        const float* norms,
        float* work,
        float* y);

/** The three rounds, not scaled, of 16 vectors side by side: component k of
 * vector i is x[16 * k + i], output k of it is y[stride * k + i].
 *
 * @param d     a power of 2
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
