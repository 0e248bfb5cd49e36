// SPDX-License-Identifier: MIT
// Bisection.

#pragma once

#include <bit>
#include <cstdint>
#include <limits>

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

/// Returns the largest float x with holds(x), by bisection over floats as
/// ordered integers. The predicate must be true for the least finite float if
/// it is for any, and false from some x on.
template <class Holds>
float largest_float(Holds&& holds) {
    const auto float_of = [](int64_t number) {
        const auto bits = int32_t(number >= 0 ? number : INT32_MIN - number);
        return std::bit_cast<float>(bits);
    };
    int64_t high = std::bit_cast<int32_t>(std::numeric_limits<float>::max());
    int64_t low = -high;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (holds(float_of(middle))) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return float_of(low);
}

} // namespace faiss_ext
