// SPDX-License-Identifier: MIT
// Principal component analysis.

#pragma once

#include <cstddef>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

struct PrincipalAxes {
    std::vector<float> values;  ///< eigenvalues, descending, size k
    std::vector<float> vectors; ///< orthonormal, row by row, size k * d
};

/// Accumulates sum_i x_i x_i' of vectors that come in parts. Results do not
/// depend on the number of threads.
class ScatterMatrix {
   public:
    explicit ScatterMatrix(size_t d);

    /// x: size n * d, centred by the caller; about 1,000 vectors at a time are
    /// best
    void add(idx_t n, const float* x);

    /** Computes the k leading eigenvalues and eigenvectors; k is at most d. If
     * the rank is less than k, the other eigenvalues are 0 up to rounding.
     * Throws if the sum overflows.
     *
     * If k is a small part of d, subspace iteration is used (N. Halko, P.-G.
     * Martinsson and J. Tropp, Finding structure with randomness, SIAM Review
     * 2011). It stops when the captured variance grows by a fraction below
     * 1e-5. Otherwise LAPACK is used.
     */
    PrincipalAxes leading(size_t k, bool verbose = false) const;

   private:
    size_t d;
    std::vector<float> S; ///< d rows; only the upper triangle is used
};

/// Computes the mean of n vectors of d components, summed in double.
std::vector<float> mean_of(idx_t n, const float* x, size_t d);

struct PrincipalComponents : PrincipalAxes {
    std::vector<float> mean; ///< size d; zeros if vectors are not centred
};

/// Computes the principal components of n vectors, minus their mean if
/// `center`. x: size n * d, finite.
///
/// Memory and time grow with the square of the smaller of n and d. If that is
/// n, axes with an eigenvalue below 1e-6 of the largest are zeros.
PrincipalComponents principal_components(
        idx_t n,
        const float* x,
        size_t d,
        size_t k,
        bool center);

} // namespace faiss_ext
