// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace faiss_ext {

/** Replaces a square matrix by the orthogonal one closest to it, which has the
 * largest inner product with it (orthogonal Procrustes problem): U V' of its
 * singular value decomposition U S V', by LAPACK. Of a matrix of independent
 * Gaussian numbers it is a random rotation or reflection, uniform over all.
 *
 * @param n  order
 * @param a  matrix, size n * n
 */
void nearest_orthogonal(size_t n, std::vector<double>& a);

} // namespace faiss_ext
