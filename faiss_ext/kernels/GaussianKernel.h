// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/ShiftInvariantKernel.h>

namespace faiss_ext {

/** The Gaussian kernel, K(x - y) = exp(-gamma |x - y|_2^2 / 2).
 *
 * String: `gaussian(gamma=0.5)`. Note the factor 1/2: scikit-learn's rbf_kernel
 * with gamma' is this kernel with gamma = 2 gamma'. Frequencies are normal,
 * N(0, gamma I) (Raginsky and Lazebnik 2009, section 2).
 */
struct GaussianKernel : ShiftInvariantKernel {
    explicit GaussianKernel(double gamma = 0);

    Norm norm() const override;
    double gamma_of_radius(double radius) const override;
    double inverse_length() const override;
    double profile(double r) const override;
    double inverse_profile(double k) const override;
    double one_minus_profile(double r) const override;
    /// 1, so that L_K = sqrt(d gamma).
    double frequency_variance() const override;
    void sample_frequency(std::mt19937_64& rng, size_t d, float* omega)
            const override;
    std::optional<double> sample_scale(std::mt19937_64& rng) const override;

   protected:
    void kernel_of_norms(size_t n, float* v, bool distance) const override;
};

} // namespace faiss_ext
