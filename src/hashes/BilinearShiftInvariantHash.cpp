// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/projections/BilinearProjection.h>

#include "core/eigen_symmetric.h"
#include "core/errors.h"
#include "hashes/angle.h"
#include "hashes/hamming_series.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

int checked_dimension(int d_w, int d_v) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_w > 0 && d_v > 0 && int64_t(d_w) * d_v <= (1 << 30),
            "BilinearShiftInvariantHash: the shape is %d x %d, expected positive numbers whose product is at most 2^30",
            d_w,
            d_v);
    return d_w * d_v;
}

/// Computes prod_j (1 + square lambda_j)^(-1/2), which is k_b(m (X - Y)) for
/// m^2 = square.
double bilinear_product(const std::vector<double>& lambda, double square) {
    double product = 1;
    for (double v : lambda) {
        product *= 1 + square * v; // on overflow k_b is 0
    }
    return 1 / std::sqrt(product);
}

} // namespace

BilinearShiftInvariantHash::BilinearShiftInvariantHash(
        int d_w,
        int d_v,
        int nbits,
        double gamma,
        int m,
        bool structured,
        int64_t seed,
        bool shuffle)
        : ShiftInvariantHash(checked_dimension(d_w, d_v), nbits) {
    kernel = std::make_unique<GaussianKernel>(gamma);
    proj.kind = ProjectionChoice::Kind::bilinear;
    proj.d_w = d_w;
    proj.d_v = d_v;
    proj.m = m;
    proj.w = structured ? ProjectionChoice::Rows::structured
                        : ProjectionChoice::Rows::dense;
    proj.shuffle = shuffle;
    this->seed = seed;
    init();
}

BilinearShiftInvariantHash::BilinearShiftInvariantHash() {
    kernel = std::make_unique<GaussianKernel>();
    proj.kind = ProjectionChoice::Kind::bilinear;
}

void BilinearShiftInvariantHash::fields(FieldVisitor& v) const {
    if (proj.kind != ProjectionChoice::Kind::bilinear) {
        throw FieldError("proj", "proj must be bilinear in this class");
    }
    proj.bilinear_fields(v, d_in);
    kernel->fields(v);
    v.integer("seed", seed, 0, INT64_MAX, "seed of the projection");
    drawn_fields(v);
}

void BilinearShiftInvariantHash::init() {
    kernel->init();
    ShiftInvariantHash::init();
}

void BilinearShiftInvariantHash::restore() {
    kernel->restore();
    ShiftInvariantHash::restore();
    const auto* bilinear =
            dynamic_cast<const BilinearProjection*>(projection.get());
    FAISS_EXT_THROW_IF_NOT_MSG(
            !is_trained ||
                    (bilinear && bilinear->d_w == proj.d_w &&
                     bilinear->d_v == proj.d_v),
            "the projection and the shape are inconsistent");
}

double BilinearShiftInvariantHash::mean_cosine(double r) const {
    // all q eigenvalues are r^2 / q
    const double q = std::min(proj.d_w, proj.d_v);
    return std::exp(-0.5 * q * std::log1p(r * r / q));
}

std::vector<double> BilinearShiftInvariantHash::eigenvalues(
        const float* x,
        const float* y) const {
    check_pair(x, y, "BilinearShiftInvariantHash");
    const auto& bilinear = dynamic_cast<const BilinearProjection&>(*projection);
    const int d_w = proj.d_w, d_v = proj.d_v;
    // use the smaller of the two Gram matrices of the difference
    const bool rows = d_w <= d_v;
    const size_t r = rows ? d_w : d_v, length = rows ? d_v : d_w;
    const auto difference = [&](size_t i, size_t k) {
        const size_t at = rows ? i * d_v + k : k * d_v + i;
        return double(bilinear.component(x, at)) - bilinear.component(y, at);
    };
    std::vector<double> a(r * r), values;
    for (size_t i = 0; i < r; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
            for (size_t k = 0; k < length; k++) {
                sum += difference(i, k) * difference(j, k);
            }
            a[i * r + j] = a[j * r + i] = kernel->gamma * sum;
        }
    }
    eigen_symmetric(r, a, values);
    for (double& v : values) {
        v = std::max(v, 0.0);
    }
    return values;
}

double BilinearShiftInvariantHash::bilinear_kernel(
        const float* x,
        const float* y) const {
    return bilinear_product(eigenvalues(x, y), 1);
}

double BilinearShiftInvariantHash::expected_hamming_of_pair(
        const float* x,
        const float* y) const {
    const std::vector<double> lambda = eigenvalues(x, y);
    return nbits * expected_distance([&](double i) {
               return bilinear_product(lambda, i * i);
           });
}

double BilinearShiftInvariantHash::covariance_of_pair(
        const float* x,
        const float* y) const {
    const std::vector<double> lambda = eigenvalues(x, y);
    return bit_covariance(
            [&](double square) { return bilinear_product(lambda, square); });
}

std::pair<double, double> BilinearShiftInvariantHash::hamming_bounds(
        double kernel_value) const {
    check_kernel_value(kernel_value, least_kernel_value());
    const double u = std::clamp(kernel_value, 0.0, 1.0);
    const std::vector<double> single = {-2 * std::log(u)};
    const double lower = expected_distance(
            [&](double i) { return bilinear_product(single, i * i); });
    return {nbits * lower, expected_hamming(u)};
}

double BilinearShiftInvariantHash::covariance_bound(double u) {
    check_kernel_value(u, 0);
    const double log = std::log(std::clamp(u, 0.0, 1.0));
    // 8/pi^2 times the series is 4/pi^2 minus the expected distance
    const auto series = [&](double power) {
        return 4 / (pi * pi) - expected_distance([&](double i) {
                   return std::exp(power * i * i * log);
               });
    };
    const double high = series(0.79), low = series(1);
    return high * high - low * low;
}

} // namespace faiss_ext
