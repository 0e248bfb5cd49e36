// SPDX-License-Identifier: MIT
// Blocks of values of OverlapKernel.

#pragma once

#include <algorithm>
#include <limits>

#include "core/scratch.h"
#include "simd/pairwise.h"

namespace faiss_ext {

/// Sums the components of n vectors, as their intersection with infinity.
inline void sums_of_components(size_t n, const float* x, size_t d, float* out) {
    const Scratch infinite(d);
    std::fill_n(infinite.get(), d, std::numeric_limits<float>::infinity());
    simd::pairwise(
            simd::PairOp::intersection, 1, infinite.get(), n, x, d, out, n);
}

/// Computes f(value, sum of x_i + sum of y_j) for all pairs, from the values of
/// PairOp::intersection, the sums of the smaller components, or PairOp::l1.
template <class F>
void overlap_block(
        simd::PairOp op,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        F&& f) {
    simd::pairwise(op, n, x, m, y, d, out, m);
    const Scratch of_x(n), of_y(m);
    sums_of_components(n, x, d, of_x.get());
    sums_of_components(m, y, d, of_y.get());
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            out[i * m + j] = f(out[i * m + j], of_x[i] + of_y[j]);
        }
    }
}

} // namespace faiss_ext
