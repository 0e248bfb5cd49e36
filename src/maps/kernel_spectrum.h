// SPDX-License-Identifier: MIT
// Eigenvectors of kernel matrices.

#pragma once

#include <vector>

#include <Eigen/Dense>

namespace faiss_ext {

using Matrix =
        Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Kernel PCA of landmarks.
struct KernelSpectrum {
    std::vector<double> values; ///< eigenvalues kept, descending
    Matrix vectors;             ///< eigenvectors, one in each row
    std::vector<double> means;  ///< mean_j K_ij

    int rank() const {
        return int(values.size());
    }
};

/** The eigenvectors of K, or of HKH with H = I - 11'/p; throws if K is constant
 * or not positive semi-definite.
 *
 * @param p          order of K
 * @param tolerance  of eigenvalues, relative to the largest one
 */
KernelSpectrum decompose_kernel(
        size_t p,
        const float* K,
        bool center,
        double tolerance,
        bool verbose);

} // namespace faiss_ext
