// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace faiss_ext {

/** Eigenvalues and eigenvectors of a symmetric matrix, by LAPACK: reduction to
 * tridiagonal form, divide and conquer. Takes 24 n^2 bytes, a among them.
 *
 * Interrupts are looked for between panels of the reduction and between blocks
 * of eigenvectors; not in between, inside the divide and conquer (a few
 * seconds at n = 8192).
 *
 * @param n        order
 * @param a        matrix, size n * n; on return row i is eigenvector i
 * @param values   eigenvalues, ascending, size n
 * @param verbose  whether to print how far it has come, every few seconds
 */
void eigen_symmetric(
        size_t n,
        std::vector<double>& a,
        std::vector<double>& values,
        bool verbose = false);

} // namespace faiss_ext
