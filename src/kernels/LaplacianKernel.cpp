// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/LaplacianKernel.h>

#include <cmath>
#include <limits>

#include "kernels/exponential.h"

namespace faiss_ext {

LaplacianKernel::LaplacianKernel(double gamma) : ShiftInvariantKernel(gamma) {}

ShiftInvariantKernel::Norm LaplacianKernel::norm() const {
    return Norm::L1;
}

double LaplacianKernel::gamma_of_radius(double radius) const {
    return 1 / radius;
}

double LaplacianKernel::inverse_length() const {
    return gamma;
}

double LaplacianKernel::profile(double r) const {
    return std::exp(-r);
}

double LaplacianKernel::inverse_profile(double k) const {
    return -std::log(k);
}

double LaplacianKernel::one_minus_profile(double r) const {
    return -std::expm1(-r);
}

double LaplacianKernel::frequency_variance() const {
    return std::numeric_limits<double>::infinity();
}

void LaplacianKernel::sample_frequency(
        std::mt19937_64& rng,
        size_t d,
        float* omega) const {
    std::cauchy_distribution<double> cauchy;
    for (size_t k = 0; k < d; k++) {
        omega[k] = float(cauchy(rng));
    }
}

std::optional<double> LaplacianKernel::sample_scale(std::mt19937_64&) const {
    return 1;
}

void LaplacianKernel::kernel_of_norms(size_t n, float* v, bool distance) const {
    exponential_kernel(gamma, n, v, distance);
}

} // namespace faiss_ext
