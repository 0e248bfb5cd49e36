// SPDX-License-Identifier: MIT
// Collision probability of random hyperplanes.

#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.h"

namespace faiss_ext {

/// Returns acos(cosine) / pi; the cosine is clamped to [-1, 1].
inline double normalized_angle(double cosine) {
    return std::acos(std::clamp(cosine, -1.0, 1.0)) / std::numbers::pi;
}

/// The caution of hashes that learn from data.
inline constexpr const char* caution_of_learnt =
        "rough numbers: the hash has learnt from data, and pairs at one kernel value differ in different numbers of bits";

/// Throws unless low <= value <= 1, up to rounding.
inline void check_kernel_value(double value, double low) {
    constexpr double rounding = 1e-4;
    FAISS_EXT_THROW_IF_NOT_FMT(
            value >= low - rounding && value <= 1 + rounding,
            "the kernel value is %g, expected a value from %g to 1",
            value,
            low);
}

} // namespace faiss_ext
