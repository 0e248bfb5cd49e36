// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/FrequencyHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.h"
#include "core/field_strings.h"
#include "hashes/angle.h"
#include "hashes/phase_bits.h"
#include "projections/given_frequencies.h"
#include "simd/margins.h"

namespace faiss_ext {

using std::numbers::pi;

FrequencyHash::FrequencyHash(int d, int nbits, const float* omega, int64_t seed)
        : seed(seed) {
    projection = given_frequencies(d, nbits, omega, "FrequencyHash");
    set_dimensions(d, nbits);
    check_fields(*this);
    draw_phase_bits(nbits, seed, offset, threshold);
    restore();
}

void FrequencyHash::fields(FieldVisitor& v) const {
    v.integer("seed", seed, 0, INT64_MAX, "seed of the phases and thresholds");
    learned_fields(v, nbits);
    v.array("offset", offset, nbits);
}

void FrequencyHash::restore() {
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained, "the hash is not trained, though it needs no training");
    check_projection(true);
    longest = longest_vector(*projection);
}

std::string FrequencyHash::description() const {
    return "SIK" + std::to_string(nbits) + "(" + text_of_given("frequencies") +
            ")";
}

void FrequencyHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_given_phases(projection.get(), d_in, longest, n, x, d, where);
}

void FrequencyHash::finish(size_t n, float* margins) const {
    simd::fold_phases(n, nbits, offset.data(), threshold.data(), margins);
}

std::optional<SparseVectors> FrequencyHash::sparse_features(
        const SparseVectors& x,
        SparseRows&) const {
    return x;
}

bool FrequencyHash::has_independent_bits() const {
    return true;
}

template <class F>
double FrequencyHash::mean_of_phases(
        const float* x,
        const float* y,
        const char* where,
        F&& f) const {
    check_pair(x, y, where);
    std::vector<float> difference(d_in), turns(nbits);
    for (int k = 0; k < d_in; k++) {
        difference[k] = x[k] - y[k];
    }
    projection->apply(1, difference.data(), turns.data());
    double sum = 0;
    for (const float turn : turns) {
        sum += f(2 * pi * turn);
    }
    return sum / nbits;
}

double FrequencyHash::kernel_value(const float* x, const float* y) const {
    return mean_of_phases(
            x, y, "kernel_value", [](double phase) { return std::cos(phase); });
}

double FrequencyHash::expected_hamming_of_pair(const float* x, const float* y)
        const {
    return nbits *
            mean_of_phases(x, y, "expected_hamming_of_pair", [](double phase) {
                return 2 / pi * std::abs(std::sin(phase / 2));
            });
}

std::pair<double, double> FrequencyHash::hamming_bounds(
        double kernel_value) const {
    check_kernel_value(kernel_value, -1);
    const double square = (1 - std::clamp(kernel_value, -1.0, 1.0)) / 2;
    return {nbits * 2 / pi * square, nbits * 2 / pi * std::sqrt(square)};
}

double FrequencyHash::expected_hamming(double) const {
    FAISS_EXT_THROW_MSG(
            "expected_hamming: for frequencies of your own, the kernel value does not determine the expected distance; use hamming_bounds or expected_hamming_of_pair");
}

double FrequencyHash::kernel_estimate(double) const {
    FAISS_EXT_THROW_MSG(
            "kernel_estimate: for frequencies of your own, the expected distance does not determine the kernel value; use kernel_interval");
}

void FrequencyHash::query_weights(size_t n, float* weights) const {
    // K_m = K^(m^2), and its derivative by K
    constexpr double K = 0.5;
    std::vector<double> values, slopes;
    for (int m = 1; m <= most_terms; m++) {
        values.push_back(std::pow(K, m * m));
        slopes.push_back(m * m * std::pow(K, m * m - 1));
        if (slopes.back() < negligible_term) {
            break;
        }
    }
    weigh_phase_bits(n, threshold, values, slopes, weights);
}

double FrequencyHash::asymmetric_kernel_estimate(double) const {
    FAISS_EXT_THROW_MSG(
            "asymmetric_kernel_estimate: not available for frequencies of your own; use kernel_interval with Hamming distances");
}

} // namespace faiss_ext
