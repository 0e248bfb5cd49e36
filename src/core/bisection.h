// SPDX-License-Identifier: MIT
// Bisection.

#pragma once

namespace faiss_ext {

/// The largest r >= 0 of a range from 0 on where is_below(r), which is true at
/// 0 and false from some r on; exact to the last digit.
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
