// The expected Hamming distance of codes made by a cosine and a random
// threshold.

#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/bisection.h"

namespace faiss_ext {

/** 8/pi^2 sum_{m>=1} (1 - K(m)) / (4 m^2 - 1), where kernel(m) = K(m delta) for
 * a fixed delta, decreasing in m (Raginsky and Lazebnik 2009, lemma 2.2).
 *
 * With sum_{m>=1} 1 / (4 m^2 - 1) = 1/2 it is 4/pi^2 less a series in K(m). Up
 * to `exact` that is summed term by term; then runs of terms of 1/256 of their
 * m in length share the kernel value at their middle, and their weights are
 * known: sum_{m=a}^{b-1} 1 / (4 m^2 - 1) = 1/2 (1 / (2 a - 1) - 1 / (2 b - 1)).
 * The error is below 1e-9.
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

/** The r >= 0 at which a normalised Hamming distance is expected; expected(r)
 * is increasing, from 0 at 0 towards 4/pi^2.
 *
 * @param distance  above 0, below 4/pi^2
 */
template <class Expected>
double inverse_distance(double distance, Expected&& expected) {
    return bisect([&](double r) { return expected(r) < distance; });
}

} // namespace faiss_ext
