// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/AdditiveKernelHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.h"
#include "hashes/angle.h"
#include "maps/homogeneous_sparse.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

} // namespace

AdditiveKernelHash::AdditiveKernelHash(
        const HomogeneousKernelMap& map,
        int nbits,
        bool center,
        int64_t seed,
        const ProjectionChoice& proj,
        Rotation rot)
        : CenteredHash(map.d_in, nbits), map(map) {
    this->center = center;
    this->seed = seed;
    this->proj = proj;
    this->rot = rot;
    init();
}

void AdditiveKernelHash::set_dimensions(int d, int nbits) {
    CenteredHash::set_dimensions(d, nbits);
    map.set_dimensions(d, 0);
}

void AdditiveKernelHash::fields(FieldVisitor& v) const {
    map.fields(v);
    centered_fields(v);
}

void AdditiveKernelHash::init() {
    map.init();
    CenteredHash::init();
}

void AdditiveKernelHash::restore() {
    map.restore();
    CenteredHash::restore();
}

int AdditiveKernelHash::num_features() const {
    return map.d_out;
}

size_t AdditiveKernelHash::features_space() const {
    return map.d_out;
}

const float* AdditiveKernelHash::features(
        size_t n,
        const float* x,
        float* space) const {
    map.map(n, x, space);
    return space;
}

std::optional<SparseVectors> AdditiveKernelHash::sparse_features(
        const SparseVectors& x,
        SparseRows& space) const {
    space = map_to_sparse(map, x);
    return space.get();
}

void AdditiveKernelHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    map.check_vectors(n, x, d, where);
}

double AdditiveKernelHash::least_kernel_value() const {
    return map.negative == HomogeneousKernelMap::Negative::sign ? -1 : 0;
}

double AdditiveKernelHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, least_kernel_value());
    if (mean_value == 1) { // all training vectors were equal
        return kernel_value < 1 ? nbits / 2.0 : 0;
    }
    return nbits *
            normalized_angle((kernel_value - mean_value) / (1 - mean_value));
}

std::pair<double, double> AdditiveKernelHash::hamming_bounds(
        double kernel_value) const {
    check_kernel_value(kernel_value, least_kernel_value());
    if (center || rot != Rotation::random || map.degree != 1) {
        return CenteredHash::hamming_bounds(kernel_value);
    }
    const double delta = map.distortion(), square = map.squared_norm();
    return {nbits * normalized_angle((kernel_value + delta) / square),
            nbits * normalized_angle((kernel_value - delta) / square)};
}

std::pair<double, double> AdditiveKernelHash::kernel_bounds(
        double least,
        double most) const {
    // one step for both, because computing a distortion takes a while
    const double delta = map.distortion(), square = map.squared_norm();
    const auto value_at = [&](double distance, double error) {
        const double angle = pi * std::clamp(distance / nbits, 0.0, 1.0);
        return std::clamp(
                square * std::cos(angle) + error, least_kernel_value(), 1.0);
    };
    return {value_at(most, -delta), value_at(least, delta)};
}

double AdditiveKernelHash::kernel_value(const float* x, const float* y) const {
    check_pair(x, y, "kernel_value");
    using Norm = HomogeneousKernelMap::Norm;
    const auto scale = [&](const float* v) {
        double sum = 0;
        for (int i = 0; map.norm == Norm::l1 && i < d_in; i++) {
            sum += std::abs(v[i]);
        }
        return sum > 0 ? 1 / sum : 1.0;
    };
    // components too small for the map count as 0
    const auto size = [](double component) {
        constexpr double smallest = 1e-37;
        return component < smallest ? 0 : component;
    };
    const double scale_x = scale(x), scale_y = scale(y);
    double xx = 0, xy = 0, yy = 0;
    for (int i = 0; i < d_in; i++) {
        const double a = size(scale_x * std::abs(x[i]));
        const double b = size(scale_y * std::abs(y[i]));
        xx += std::pow(a, map.degree);
        yy += std::pow(b, map.degree);
        if (a > 0 && b > 0) {
            const double value = std::pow(a * b, map.degree / 2) *
                    map.kernel->signature(std::log(b / a));
            xy += (x[i] < 0) == (y[i] < 0) ? value : -value;
        }
    }
    return xy == 0 ? 0 : xy / std::sqrt(xx) / std::sqrt(yy);
}

double AdditiveKernelHash::kernel_estimate(double hamming) const {
    const double cosine = std::cos(pi * normalized_hamming(hamming));
    return std::clamp(
            mean_value + cosine * (1 - mean_value), least_kernel_value(), 1.0);
}

std::string AdditiveKernelHash::caution() const {
    return is_centered() ? caution_of_learnt : "";
}

} // namespace faiss_ext
