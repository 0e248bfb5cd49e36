// SPDX-License-Identifier: MIT
#include "hashes/phase_bits.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <utility>

#include "core/parallel.h"
#include "core/random_streams.h"

namespace faiss_ext {

using std::numbers::pi;

void draw_phase_bits(
        int nbits,
        int64_t seed,
        std::vector<float>& offset,
        std::vector<float>& threshold) {
    std::mt19937_64 rng = row_rng(seed, 0, stream_offsets);
    std::uniform_real_distribution<double> uniform;
    offset.resize(nbits);
    threshold.resize(nbits);
    Steps steps;
    for (int i = 0; i < nbits; i++) {
        steps.next();
        offset[i] = float(uniform(rng));
        threshold[i] = float(std::acos(1 - 2 * uniform(rng)) / (2 * pi));
    }
}

void weigh_phase_bits(
        size_t n,
        const std::vector<float>& threshold,
        const std::vector<double>& values,
        const std::vector<double>& slopes,
        float* weights) {
    constexpr double least_variance = 1e-4;
    const size_t nbits = threshold.size();
    for (size_t i = 0; i < n * nbits; i++) {
        const double alpha = 2 * pi * threshold[i % nbits];
        const double a = alpha - 2 * pi * weights[i];
        // compute sin(m alpha) and cos(m a) by recurrence
        const double turn_sin = 2 * std::cos(alpha), turn_cos = 2 * std::cos(a);
        double sine = std::sin(alpha), last_sine = 0;
        double cosine = turn_cos / 2, last_cosine = 1;
        double expected = 2 * alpha / pi - 1, derivative = 0;
        for (size_t m = 1; m <= values.size(); m++) {
            const double term = 4 / (pi * double(m)) * sine * cosine;
            expected += term * values[m - 1];
            derivative += term * slopes[m - 1];
            last_sine = std::exchange(sine, turn_sin * sine - last_sine);
            last_cosine =
                    std::exchange(cosine, turn_cos * cosine - last_cosine);
        }
        weights[i] = float(
                derivative / std::max(1 - expected * expected, least_variance));
    }
}

} // namespace faiss_ext
