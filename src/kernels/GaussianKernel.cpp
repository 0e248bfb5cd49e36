// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/GaussianKernel.h>

#include <cmath>
#include <limits>

#include "kernels/exponential.h"

namespace faiss_ext {

GaussianKernel::GaussianKernel(double gamma) : ShiftInvariantKernel(gamma) {}

ShiftInvariantKernel::Norm GaussianKernel::norm() const {
    return Norm::L2;
}

double GaussianKernel::gamma_of_radius(double radius) const {
    return 1 / (radius * radius);
}

double GaussianKernel::inverse_length() const {
    return std::sqrt(gamma);
}

double GaussianKernel::profile(double r) const {
    return std::exp(-r * r / 2);
}

double GaussianKernel::inverse_profile(double k) const {
    return std::sqrt(-2 * std::log(k));
}

double GaussianKernel::one_minus_profile(double r) const {
    return -std::expm1(-r * r / 2);
}

double GaussianKernel::frequency_variance() const {
    return 1;
}

void GaussianKernel::sample_frequency(
        std::mt19937_64& rng,
        size_t d,
        float* omega) const {
    std::normal_distribution<double> normal;
    for (size_t k = 0; k < d; k++) {
        omega[k] = float(normal(rng));
    }
}

std::optional<double> GaussianKernel::sample_scale(std::mt19937_64&) const {
    return 1;
}

void GaussianKernel::kernel_of_norms(size_t n, float* v, bool distance) const {
    exponential_kernel(gamma / 2, n, v, distance);
}

} // namespace faiss_ext
