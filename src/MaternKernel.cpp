#include <faiss_ext/MaternKernel.h>

#include <cmath>

#include <faiss/impl/FaissAssert.h>

#include "kernel_args.h"
#include "number_format.h"

namespace faiss_ext {

namespace {

constexpr double min_nu = 0.1, max_nu = 20;
/// beyond it the kernel is below 1e-250
constexpr double max_z = 700;

} // namespace

MaternKernel::MaternKernel(double nu, double gamma)
        : ShiftInvariantKernel(gamma), nu(nu) {
    FAISS_THROW_IF_NOT_FMT(
            nu >= min_nu && nu <= max_nu,
            "the smoothness nu is %g, expected a number from %g to %g",
            nu,
            min_nu,
            max_nu);
}

MaternKernel::MaternKernel(Spec& spec)
        : MaternKernel(
                  spec.get_double("nu", 1.5, min_nu, max_nu),
                  get_gamma(spec)) {}

ShiftInvariantKernel::Norm MaternKernel::norm() const {
    return Norm::L2;
}

double MaternKernel::gamma_of_radius(double radius) const {
    return 1 / (radius * radius);
}

double MaternKernel::scale() const {
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
    // z^nu underflows and K_nu(z) overflows below this z, where the kernel is 1
    if (z < std::pow(10.0, -150 / nu)) {
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
    if (nu == 1.5) {
        return -std::expm1(-z) - z * std::exp(-z);
    }
    if (nu == 2.5) {
        return -std::expm1(-z) - (z + z * z / 3) * std::exp(-z);
    }
    return 1 - profile(r);
}

void MaternKernel::sample_frequency(
        std::mt19937_64& rng,
        size_t d,
        float* omega) const {
    // a normal vector over the root of an independent chi^2 / (2 nu)
    std::gamma_distribution<double> gamma_nu(nu);
    const double s = std::sqrt(nu / gamma_nu(rng));
    std::normal_distribution<double> normal;
    for (size_t k = 0; k < d; k++) {
        omega[k] = float(s * normal(rng));
    }
}

std::string MaternKernel::description() const {
    return "matern(nu=" + shortest(nu) + "," + describe_gamma() + ")";
}

} // namespace faiss_ext
