// SPDX-License-Identifier: MIT
// Products with a fixed matrix whose rows are packed in panels: the inner loop
// of every dense projection.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** Number of matrix rows in a panel.
 *
 * Component k of row j of a matrix with d columns is at packed[panel_index(d,
 * j, k)]. The last panel is padded with rows of zeros.
 */
constexpr size_t panel_width = 16;

inline size_t panel_index(size_t d, size_t j, size_t k) {
    return (j / panel_width * d + k) * panel_width + j % panel_width;
}

inline size_t packed_size(size_t d, size_t rows) {
    return (rows + panel_width - 1) / panel_width * panel_width * d;
}

/** Computes y[i * m + j] = <x_i, a_j> on the calling thread.
 *
 * A product is summed component by component with fused multiply-adds: runs of
 * 256 components in float, and the runs in double. It does not depend on n, m
 * or its position, and is the same for every instruction set with fused
 * multiply-adds (AVX2, AVX-512, NEON). The error is at most 2e-5 sum_k |x_ik
 * a_jk| for any d, and typically 1e-7 times the sum.
 *
 * @param x       size n * d
 * @param packed  m rows of d components in panels, size packed_size(d, m)
 * @param y       size n * m
 */
void project(
        size_t n,
        const float* x,
        size_t m,
        const float* packed,
        size_t d,
        float* y);

/// Computes y[i] = <x, row ids[i] of the matrix>, whose rows of d components
/// are not packed. Products are the same as by project, bit for bit.
void project_on_rows(
        const float* x,
        const float* matrix,
        size_t d,
        size_t n,
        const uint32_t* ids,
        float* y);

/// Like project, for one vector of `count` components, whose columns ascend.
/// Products are the same, bit for bit.
void project_sparse(
        size_t count,
        const int32_t* columns,
        const float* values,
        size_t m,
        const float* packed,
        size_t d,
        float* y);

/// Writes the components of a vector that are not 0, and their columns. Returns
/// their number. columns and values have room for d.
size_t take_nonzero(size_t d, const float* x, int32_t* columns, float* values);

} // namespace faiss_ext::simd
