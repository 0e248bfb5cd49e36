// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/MaternKernel.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace faiss_ext {

namespace {

/// beyond this the kernel is below 1e-250
constexpr double max_z = 700;

/// Computes 1 - K for small q = z^2 / 4 and nu other than 1/2, 3/2 and 5/2. It
/// uses the power series of I_nu and I_-nu in K_nu = pi/2 (I_-nu - I_nu) /
/// sin(nu pi) and steps around the poles at integer nu.
double one_minus_series(double nu, double q) {
    if (q < 1e-300) {
        return 0;
    }
    if (std::abs(nu - std::round(nu)) < 1e-7) {
        nu = std::round(nu) + 1e-7;
    }
    double even = 0, odd = 1, even_term = 1, odd_term = 1;
    for (int m = 1; m <= 20; m++) {
        even_term *= q / (m * (m - nu));
        odd_term *= q / (m * (m + nu));
        even -= even_term;
        odd += odd_term;
    }
    return std::max(
            0.0,
            even +
                    std::tgamma(1 - nu) / std::tgamma(1 + nu) *
                            std::pow(q, nu) * odd);
}

} // namespace

MaternKernel::MaternKernel(double nu, double gamma)
        : ShiftInvariantKernel(gamma), nu(nu) {
    init();
}

void MaternKernel::fields(FieldVisitor& v) const {
    ShiftInvariantKernel::fields(v);
    v.number("nu", nu, 0.1, 20, "smoothness");
}

ShiftInvariantKernel::Norm MaternKernel::norm() const {
    return Norm::L2;
}

double MaternKernel::gamma_of_radius(double radius) const {
    return 1 / (radius * radius);
}

double MaternKernel::inverse_length() const {
    return std::sqrt(gamma);
}

double MaternKernel::profile(double r) const {
    const double z = std::sqrt(2 * nu) * r;
    if (z > max_z) {
        return 0;
    }
    if (nu == 0.5) {
        return std::exp(-z);
    }
    if (nu == 1.5) {
        return (1 + z) * std::exp(-z);
    }
    if (nu == 2.5) {
        return (1 + z + z * z / 3) * std::exp(-z);
    }
    // below this z the kernel is 1, but z^nu underflows and K_nu(z) overflows
    if (z <= std::max(std::pow(10.0, -150 / nu), DBL_MIN)) {
        return 1;
    }
    return std::exp2(1 - nu) / std::tgamma(nu) * std::pow(z, nu) *
            std::cyl_bessel_k(nu, z);
}

double MaternKernel::one_minus_profile(double r) const {
    const double z = std::sqrt(2 * nu) * r;
    if (z > max_z) {
        return 1;
    }
    if (nu == 0.5) {
        return -std::expm1(-z);
    }
    // near 0 use power series, since the closed forms cancel
    if (nu == 1.5) {
        return z < 1e-2
                ? z * z * (1.0 / 2 - z * (1.0 / 3 - z * (1.0 / 8 - z / 30)))
                : 1 - profile(r);
    }
    if (nu == 2.5) {
        return z < 1e-2 ? z * z * (1.0 / 6 - z * z * (1.0 / 24 - z / 45))
                        : 1 - profile(r);
    }
    const double q = z * z / 4;
    return q < 1e-7 ? one_minus_series(nu, q) : 1 - profile(r);
}

double MaternKernel::frequency_variance() const {
    return nu > 1 ? nu / (nu - 1) : std::numeric_limits<double>::infinity();
}

void MaternKernel::sample_frequency(
        std::mt19937_64& rng,
        size_t d,
        float* omega) const {
    const double s = sample_scale(rng).value();
    std::normal_distribution<double> normal;
    for (size_t k = 0; k < d; k++) {
        omega[k] = float(s * normal(rng));
    }
}

std::optional<double> MaternKernel::sample_scale(std::mt19937_64& rng) const {
    // frequencies are normal vectors divided by the root of an independent
    // chi^2 / (2 nu)
    std::gamma_distribution<double> gamma_nu(nu);
    return std::sqrt(nu / gamma_nu(rng));
}

} // namespace faiss_ext
