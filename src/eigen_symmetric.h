#pragma once

#include <cstddef>
#include <vector>

namespace faiss_ext {

/** Eigenvalues and eigenvectors of a symmetric matrix, by LAPACK's divide and
 * conquer.
 *
 * @param n        order
 * @param a        matrix, size n * n; on return row i is eigenvector i
 * @param values   eigenvalues, ascending, size n
 */
void eigen_symmetric(
        size_t n,
        std::vector<double>& a,
        std::vector<double>& values);

} // namespace faiss_ext
