// SPDX-License-Identifier: MIT
// Eigenvectors of kernel matrices.

#pragma once

#include <vector>

#include <Eigen/Dense>

namespace faiss_ext {

using Matrix =
        Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The spectrum of the landmarks' kernel matrix, for kernel PCA.
struct KernelSpectrum {
    std::vector<double> values; ///< eigenvalues kept, descending
    Matrix vectors;             ///< eigenvectors, one per row
    std::vector<double> means;  ///< mean_j K_ij

    int rank() const {
        return int(values.size());
    }
};

/** Computes the eigenvectors of K, or of HKH with H = I - 11'/p. Throws if K is
 * constant or not positive semi-definite.
 *
 * @param p          order of K
 * @param tolerance  smallest eigenvalue, relative to the largest one
 */
KernelSpectrum decompose_kernel(
        size_t p,
        const float* K,
        bool center,
        double tolerance,
        bool verbose);

} // namespace faiss_ext
