// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace faiss_ext {

/** Replaces a square matrix by the nearest orthogonal one, which has the
 * largest inner product with it (orthogonal Procrustes problem).
 *
 * LAPACK computes the singular value decomposition U S V'; the result is U V'.
 * For a matrix of independent Gaussian numbers it is a uniformly random
 * rotation or reflection.
 *
 * @param n  order
 * @param a  matrix, size n * n
 */
void nearest_orthogonal(size_t n, std::vector<double>& a);

} // namespace faiss_ext
