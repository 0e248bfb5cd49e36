// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

namespace faiss_ext {

struct Kernel;

/** A bound of a kernel by a sum over the components that two vectors share,
 * which are 0 in neither of them. Sparse search uses it to skip vectors.
 *
 * The sum is terms->block(x, y) of a kernel whose value adds up over the
 * components: chi2, intersection, Jensen-Shannon, Hellinger, or linear. Sparse
 * vectors share few components, so the sums of a query with all vectors are
 * computed from lists of the vectors that have a component.
 */
struct SharedSum {
    /// A kernel that is a sum over components, and 0 if one of two components
    /// is 0. It must live as long as the kernel with this sum.
    const Kernel* terms = nullptr;

    /// Whether `terms` is the kernel itself.
    bool is_kernel = false;

    /// Whether all components of both vectors must be >= 0.
    bool is_of_histograms = false;

    /// Whether the sum of x and y is at most the weight of y.
    bool is_at_most_weight = false;

    /// The weight of a vector y is terms(y, y), or its square root.
    bool has_roots = false;

    /// The least sum of a vector y with weight w: offset + slope * w.
    struct Least {
        double offset, slope;
    };

    /** If the score of x and y is at most `score`, their sum is at least
     * least(score, weight of x) at the weight of y. The slope is >= 0. It may
     * be called as long as the kernel with this sum lives.
     */
    std::function<Least(double score, double weight)> least;
};

} // namespace faiss_ext
