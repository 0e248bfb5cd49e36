// SPDX-License-Identifier: MIT
// The collision probability of hyperplanes.

#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.h"

namespace faiss_ext {

/// acos(cosine) / pi; what is beyond +-1 counts as +-1
inline double normalized_angle(double cosine) {
    return std::acos(std::clamp(cosine, -1.0, 1.0)) / std::numbers::pi;
}

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
