// SPDX-License-Identifier: MIT
// Sums over pairs of vectors, the inner loop of every kernel.

#pragma once

#include <cstddef>

namespace faiss_ext::simd {

/// Term of component k in the sum over k.
enum class PairOp {
    dot,        ///< x_k y_k
    squared_l2, ///< (x_k - y_k)^2
    l1,         ///< |x_k - y_k|

    // components must be >= 0; the term is 0 if both are 0
    chi2,               ///< 2 x_k y_k / (x_k + y_k)
    chi2_distance,      ///< (x_k - y_k)^2 / (x_k + y_k)
    intersection,       ///< min(x_k, y_k)
    hellinger,          ///< sqrt(x_k y_k)
    hellinger_distance, ///< (sqrt(x_k) - sqrt(y_k))^2
    jensen_shannon,     ///< x_k/2 log2(1 + y_k/x_k) + y_k/2 log2(1 + x_k/y_k)
    jensen_shannon_distance, ///< x_k + y_k - 2 (the term above)
};

/** Computes out[i * ldout + j] = sum_k term(x_i, y_j) on the calling thread.
 *
 * The value of a pair depends only on the two vectors and on the instruction
 * set, not on n, m or the pair's place in the block. It is symmetric in x and y
 * bit for bit.
 *
 * Runs of 64 components per lane are summed in float, and the runs in double.
 * Hence the error is at most 1e-5 times sum_k |term| for any d, and typically
 * 1e-7 times it.
 *
 * @param x      size n * d
 * @param y      size m * d
 * @param out    size n * ldout; the first m of each row are written
 */
void pairwise(
        PairOp op,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        size_t ldout);

/// Returns the name of the instruction set in use, e.g. "AVX3".
const char* target_name();

} // namespace faiss_ext::simd
