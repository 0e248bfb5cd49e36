// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace faiss_ext {

/** Computes eigenvalues and eigenvectors of a symmetric matrix by LAPACK:
 * reduction to tridiagonal form, then divide and conquer. It takes 24 n^2
 * bytes, including a.
 *
 * Interrupts are checked between panels of the reduction and between blocks of
 * eigenvectors, but not inside the divide and conquer (a few seconds at n =
 * 8192).
 *
 * @param n        order
 * @param a        matrix, size n * n; on return row i is eigenvector i
 * @param values   eigenvalues, ascending, size n
 * @param verbose  whether to print progress every few seconds
 */
void eigen_symmetric(
        size_t n,
        std::vector<double>& a,
        std::vector<double>& values,
        bool verbose = false);

} // namespace faiss_ext
