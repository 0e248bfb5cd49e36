// SPDX-License-Identifier: MIT
// Root finding by bisection.

#pragma once

namespace faiss_ext {

/// Returns the largest r >= 0 with is_below(r), exact to the last digit. The
/// predicate must be true at 0 and false from some r on.
template <class IsBelow>
double bisect(IsBelow&& is_below) {
    double low = 0, high = 1;
    while (is_below(high)) {
        low = high;
        high *= 2;
    }
    while (true) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) {
            return low;
        }
        (is_below(middle) ? low : high) = middle;
    }
}

} // namespace faiss_ext
