// SPDX-License-Identifier: MIT
// Random rotations without matrices, by sign flips and fast Walsh-Hadamard
// transforms.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/** Computes y_j = norms[j] r_j, where r is the result of three rounds of sign
 * flips and Walsh-Hadamard transforms of x. The transforms are not scaled: the
 * length of r is d^(3/2) times the length of x.
 *
 * If at most d / 2 outputs are wanted, the last transform is smaller and
 * applied to the sum of the parts of its input.
 *
 * Sums are computed level by level. Hence values are the same for every
 * instruction set, and their error is at most the error of whole transforms.
 *
 * @param d_x    components of x; the others, up to d, are 0
 * @param d      a power of 2, at least 16
 * @param signs  +-1, size 3 * d
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

/** Applies the three rounds, not scaled, to 16 vectors side by side. Component
 * k of vector i is x[16 * k + i]; its output k is y[stride * k + i].
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
