// SPDX-License-Identifier: MIT
// Sums over shared components for several kernels; see SharedSum.

#pragma once

#include <limits>
#include <utility>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/SharedSum.h>

namespace faiss_ext {

/// No sum is too small.
constexpr SharedSum::Least any_sum = {
        -std::numeric_limits<double>::infinity(),
        0};

/// For scores that are |phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y) of
/// the kernel `terms`.
inline SharedSum sum_of_distance(const Kernel& terms, bool is_of_histograms) {
    SharedSum sum;
    sum.terms = &terms;
    sum.is_of_histograms = is_of_histograms;
    sum.least = [](double score, double weight) {
        return SharedSum::Least{(weight - score) / 2, 0.5};
    };
    return sum;
}

/// For a kernel that is itself a sum over components.
inline SharedSum sum_of_kernel(
        const Kernel& kernel,
        faiss::MetricType metric,
        bool is_of_histograms) {
    SharedSum sum = sum_of_distance(kernel, is_of_histograms);
    sum.is_kernel = true;
    if (metric != faiss::METRIC_L2) {
        sum.least = [](double score, double) {
            return SharedSum::Least{-score, 0};
        };
    }
    return sum;
}

/// The kernel value at a score, for a kernel with k(x, x) = 1.
inline double normalized_value(faiss::MetricType metric, double score) {
    return metric == faiss::METRIC_L2 ? 1 - score / 2 : -score;
}

/// For terms(x, y) / sqrt(terms(x, x) terms(y, y)).
inline SharedSum sum_of_normalized(
        const Kernel& terms,
        faiss::MetricType metric,
        bool is_of_histograms) {
    SharedSum sum;
    sum.terms = &terms;
    sum.is_of_histograms = is_of_histograms;
    sum.has_roots = true;
    sum.least = [metric](double score, double weight) {
        const double k = normalized_value(metric, score);
        return k > 0 ? SharedSum::Least{0, k * weight} : any_sum;
    };
    return sum;
}

} // namespace faiss_ext
