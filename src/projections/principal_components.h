// Principal component analysis.

#pragma once

#include <cstddef>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

struct PrincipalComponents {
    std::vector<float> mean;    ///< size d; zeros if vectors are not centred
    std::vector<float> values;  ///< of sum_i (x_i - mean)(x_i - mean)', size k
    std::vector<float> vectors; ///< orthonormal, row by row, size k * d
};

/** The k leading eigenvalues, descending, and eigenvectors of the scatter
 * matrix of n vectors. Where its rank is less than k, the rest is zeros.
 *
 * The matrix has d^2 floats. Where k is a small part of d, its eigenvectors are
 * found by subspace iteration (N. Halko, P.-G. Martinsson and J. Tropp, Finding
 * structure with randomness, SIAM Review 2011), until the variance that they
 * capture grows by less than 1e-5 of itself; else by LAPACK. The result does
 * not depend on the number of threads.
 *
 * @param x  size n * d, finite
 * @param k  at most d
 */
PrincipalComponents principal_components(
        idx_t n,
        const float* x,
        size_t d,
        size_t k,
        bool center);

} // namespace faiss_ext
