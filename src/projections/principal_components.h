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

/// sum_i x_i x_i' of vectors that come part by part. Results do not depend on
/// the number of threads.
class ScatterMatrix {
   public:
    explicit ScatterMatrix(size_t d);

    /// x: size n * d, centred by the caller; some 1,000 at a time are best
    void add(idx_t n, const float* x);

    /** The k leading eigenvalues and eigenvectors; k is at most d. Where the
     * rank is less than k, the other eigenvalues are 0 but for rounding. Throws
     * if the sum overflows.
     *
     * Where k is a small part of d, they are found by subspace iteration (N.
     * Halko, P.-G. Martinsson and J. Tropp, Finding structure with randomness,
     * SIAM Review 2011), until the variance that they capture grows by less
     * than 1e-5 of itself; else by LAPACK.
     */
    PrincipalAxes leading(size_t k, bool verbose = false) const;

   private:
    size_t d;
    std::vector<float> S; ///< right of the diagonal, d rows
};

/// The mean of n vectors of d components, summed in double.
std::vector<float> mean_of(idx_t n, const float* x, size_t d);

struct PrincipalComponents : PrincipalAxes {
    std::vector<float> mean; ///< size d; zeros if vectors are not centred
};

/// Those of the scatter matrix of n vectors, less their mean if `center`. x:
/// size n * d, finite. Memory and time grow with the square of the smaller of n
/// and d; where that is n, axes whose eigenvalue is below 1e-6 of the largest
/// are zeros.
PrincipalComponents principal_components(
        idx_t n,
        const float* x,
        size_t d,
        size_t k,
        bool center);

} // namespace faiss_ext
