// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/SignCauchyHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <faiss_ext/projections/GeneratedProjection.h>

#include "core/check.h"
#include "hashes/angle.h"
#include "projections/random_projection.h"

namespace faiss_ext {

SignCauchyHash::SignCauchyHash(int d, int nbits, int64_t seed)
        : ProjectionHash(d, nbits), seed(seed) {
    init();
}

void SignCauchyHash::fields(FieldVisitor& v) const {
    v.integer("seed", seed, 0, INT64_MAX, "seed of the projection");
    learned_fields(v, 0);
}

void SignCauchyHash::init() {
    check_fields(*this);
    constexpr int64_t most_stored = 1 << 26; // numbers
    if (int64_t(d_in) * nbits > most_stored) {
        projection = std::make_unique<GeneratedProjection>(
                d_in, nbits, seed, GeneratedProjection::Law::cauchy);
        return;
    }
    projection = std::make_unique<DenseProjection>(
            random_projection<std::cauchy_distribution<double>>(
                    d_in, nbits, seed));
}

void SignCauchyHash::restore() {
    check_projection(is_trained);
}

std::optional<SparseVectors> SignCauchyHash::sparse_features(
        const SparseVectors& x,
        SparseRows&) const {
    return x;
}

void SignCauchyHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
}

double SignCauchyHash::least_kernel_value() const {
    return 0;
}

double SignCauchyHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, least_kernel_value());
    return nbits * normalized_angle(kernel_value);
}

double SignCauchyHash::kernel_value(const float* x, const float* y) const {
    check_pair(x, y, "kernel_value");
    const double sum_x = std::accumulate(x, x + d_in, 0.0);
    const double sum_y = std::accumulate(y, y + d_in, 0.0);
    double value = 0;
    for (int i = 0; i < d_in; i++) {
        if (x[i] > 0 && y[i] > 0) {
            const double a = x[i] / sum_x, b = y[i] / sum_y;
            value += 2 * a * b / (a + b);
        }
    }
    return value;
}

double SignCauchyHash::kernel_estimate(double hamming) const {
    return std::max(
            0.0, std::cos(std::numbers::pi * normalized_hamming(hamming)));
}

void SignCauchyHash::query_weights(size_t n, float* weights) const {
    std::vector<float> sizes(nbits);
    for (size_t i = 0; i < n; i++, weights += nbits) {
        std::transform(weights, weights + nbits, sizes.begin(), [](float v) {
            return std::abs(v);
        });
        const auto middle = sizes.begin() + nbits / 2;
        std::nth_element(sizes.begin(), middle, sizes.end());
        const float median = std::max(*middle, 1e-37f);
        for (int j = 0; j < nbits; j++) {
            weights[j] = std::atan(weights[j] / median);
        }
    }
}

double SignCauchyHash::asymmetric_kernel_estimate(double) const {
    FAISS_EXT_THROW_MSG(
            "asymmetric_kernel_estimate: not available for SCR, whose asymmetric distances have no known expectation; use kernel_estimate with Hamming distances");
}

} // namespace faiss_ext
