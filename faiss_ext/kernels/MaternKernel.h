// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/ShiftInvariantKernel.h>

namespace faiss_ext {

/** The Matern kernel of smoothness nu: K = 2^(1 - nu) / Gamma(nu) z^nu K_nu(z),
 * with r = sqrt(gamma) |x - y|_2 and z = sqrt(2 nu) r. K_nu is the modified
 * Bessel function of the second kind.
 *
 * nu = 1/2 is exp(-r). With growing nu the kernel tends to the Gaussian kernel
 * of the same gamma. String: `matern(nu=1.5,gamma=0.5)`.
 *
 * nu = 1/2, 3/2 and 5/2 are computed in closed form; other values are slower.
 * Frequencies follow the multivariate Student-t distribution with 2 nu degrees
 * of freedom, scaled by sqrt(gamma).
 */
struct MaternKernel : ShiftInvariantKernel {
    double nu = 1.5; ///< smoothness

    MaternKernel() = default;
    explicit MaternKernel(double nu, double gamma = 0);

    void fields(FieldVisitor& v) const override;

    Norm norm() const override;
    double gamma_of_radius(double radius) const override;
    double inverse_length() const override;
    double profile(double r) const override;
    double one_minus_profile(double r) const override;
    /// nu / (nu - 1) for nu > 1, so that L_K = sqrt(d gamma nu / (nu - 1));
    /// infinite for nu <= 1.
    double frequency_variance() const override;
    void sample_frequency(std::mt19937_64& rng, size_t d, float* omega)
            const override;
    std::optional<double> sample_scale(std::mt19937_64& rng) const override;
};

} // namespace faiss_ext
