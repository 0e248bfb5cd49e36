// SPDX-License-Identifier: MIT
// Expected Hamming distance of codes that threshold a cosine at a random value.

#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/bisection.h"

namespace faiss_ext {

/** Computes 8/pi^2 sum_{m>=1} (1 - K(m)) / (4 m^2 - 1), where kernel(m) = K(m
 * delta) for a fixed delta decreases with m (Raginsky and Lazebnik 2009, lemma
 * 2.2).
 *
 * As sum_{m>=1} 1 / (4 m^2 - 1) = 1/2, this is 4/pi^2 minus a series in K(m).
 * The series is summed term by term up to `exact`. Beyond, it is summed in runs
 * of terms whose length is 1/256 of their m. The terms of a run share the
 * kernel value at their middle, and the sum of their weights is known:
 * sum_{m=a}^{b-1} 1 / (4 m^2 - 1) = 1/2 (1 / (2 a - 1) - 1 / (2 b - 1)). The
 * error is below 1e-9.
 */
template <class Kernel>
double expected_distance(Kernel&& kernel) {
    using std::numbers::pi;
    constexpr double exact = 1024, negligible = 1e-16;
    double sum = 0;
    for (double a = 1, b; a < 1e18; a = b) {
        b = a < exact ? a + 1 : std::floor(a * (257.0 / 256));
        const double k = kernel((a + b - 1) / 2);
        if (!(k >= negligible)) {
            break;
        }
        sum += k * 0.5 * (1 / (2 * a - 1) - 1 / (2 * b - 1));
    }
    return std::max(0.0, 4 / (pi * pi) - 8 / (pi * pi) * sum);
}

/** Computes 64/pi^4 sum_{m,n>=1} (K(m^2 + n^2) - K(m^2) K(n^2)) / ((4 m^2 - 1)
 * (4 n^2 - 1)), where kernel(s) = K(sqrt(s) delta) for a fixed delta decreases
 * with s (Kim and Choi 2015, lemma 5). This is the covariance of two bits that
 * each differ with the probability of expected_distance.
 *
 * Terms are summed in runs as in expected_distance, of 1/64 of their m from 64
 * on. The error is below 1e-6.
 */
template <class Kernel>
double bit_covariance(Kernel&& kernel) {
    using std::numbers::pi;
    constexpr double exact = 64, negligible = 1e-9;
    struct Run {
        double square, k, weight;
    };
    std::vector<Run> runs;
    double mean = 0, sum = 0;
    for (double a = 1, b; a < 1e18; a = b) {
        b = a < exact ? a + 1 : std::floor(a * (65.0 / 64));
        const double square = (a + b - 1) / 2 * ((a + b - 1) / 2);
        const double k = kernel(square);
        if (!(k / a >= negligible)) {
            break;
        }
        const double weight = 0.5 * (1 / (2 * a - 1) - 1 / (2 * b - 1));
        runs.push_back({square, k, weight});
        mean += weight * k;
    }
    for (size_t i = 0; i < runs.size(); i++) {
        for (size_t j = 0; j <= i; j++) {
            const double of_both = kernel(runs[i].square + runs[j].square);
            sum += (i == j ? 1 : 2) * runs[i].weight * runs[j].weight * of_both;
        }
    }
    return std::max(0.0, 64 / std::pow(pi, 4) * (sum - mean * mean));
}

/** Returns the r >= 0 at which a normalised Hamming distance is expected.
 * expected(r) increases from 0 at r = 0 towards 4/pi^2.
 *
 * @param distance  above 0, below 4/pi^2
 */
template <class Expected>
double inverse_distance(double distance, Expected&& expected) {
    return bisect([&](double r) { return expected(r) < distance; });
}

} // namespace faiss_ext
