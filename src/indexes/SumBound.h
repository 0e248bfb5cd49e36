// SPDX-License-Identifier: MIT
// Bounds of the sum over the columns that two vectors share.

#pragma once

#include <algorithm>
#include <cmath>

#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/SharedSum.h>

namespace faiss_ext {

/** The least sum of a vector that may have a score, less the rounding errors.
 *
 * A score of nearly 2 is accurate to `error`, and so is the kernel value near 0
 * that it stands for. The slope may be negative.
 *
 * @param weight  of the query
 */
inline SharedSum::Least least_with_error(
        const SharedSum& sum,
        double score,
        double weight,
        double error) {
    SharedSum::Least least = sum.least(score, weight);
    if (!std::isfinite(least.offset)) {
        return {least.offset, 0};
    }
    if (sum.has_roots) {
        least.slope -= error * weight;
    } else {
        least.offset -= error * (std::abs(least.offset) + weight);
        least.slope -= error;
    }
    return least;
}

/** Tells from parts of two vectors that their score exceeds a bound.
 *
 * The mass of a set of components is the sum of terms(v, v) over them. The sum
 * over the columns that two sets share is at most most(mass, mass): the smaller
 * mass if the terms are minima, and otherwise the root of the product
 * (Cauchy-Schwarz).
 */
struct SumBound {
    SharedSum sum;
    bool has_minima; ///< whether the term of two components is the smaller one
    double score;    ///< pairs with larger scores are not needed
    double error;    ///< relative error of sums and scores

    SumBound(const SharedSum& sum, double score, size_t most_components)
            : sum(sum),
              has_minima(
                      dynamic_cast<const IntersectionKernel*>(sum.terms) !=
                      nullptr),
              score(score),
              // kernels are accurate to 1e-4 for any number of components
              error(std::min(3e-4, 1e-5 + 2e-7 * double(most_components))) {}

    double most(double a, double b) const {
        return has_minima ? std::min(a, b) : std::sqrt(a * b);
    }

    double mass_of_weight(double weight) const {
        return sum.has_roots ? weight * weight : weight;
    }

    /// The least sum with a vector, as a function of that vector's weight. The
    /// slope is not negative.
    struct Line {
        double offset, slope;
        double at(double weight) const {
            return offset + slope * weight;
        }
    };

    /// The least sum of a vector with one that weighs at most `heaviest`.
    Line least(double weight, double heaviest) const {
        const auto least = least_with_error(sum, score, weight, error);
        Line line = {least.offset, least.slope};
        if (line.slope < 0) {
            line = {line.at(heaviest), 0};
        }
        return line;
    }

    /// Whether a part of a vector with the mass `rest` is too small to reach
    /// the least sum with any vector that weighs from `low` to `high`.
    bool excludes(const Line& line, double rest, double low, double high)
            const {
        if (has_minima) {
            return rest < line.at(low);
        }
        const double root = std::sqrt(rest);
        if (sum.has_roots) { // both sides are linear
            return root * low < line.at(low) && root * high < line.at(high);
        }
        // line.at(w) - root * sqrt(w) is convex
        const double bottom = root / (2 * line.slope);
        const double worst =
                line.slope > 0 ? std::clamp(bottom * bottom, low, high) : high;
        return root * std::sqrt(worst) < line.at(worst);
    }

    /// Whether vectors of two weights can reach the least sum.
    bool may_reach(const Line& line, double weight, double other) const {
        return most(mass_of_weight(weight), mass_of_weight(other)) >=
                line.at(other);
    }

    /// Whether all weights w up to `weight` for which may_reach(line, weight,
    /// w) is true are above all for which it is false. Then most - line
    /// ascends.
    bool excludes_light(const Line& line) const {
        return sum.has_roots || line.slope <= 0.5;
    }
};

} // namespace faiss_ext
