// SPDX-License-Identifier: MIT
// Kernels that decrease exponentially with a distance.

#pragma once

#include <cmath>
#include <cstddef>

#include "simd/elementwise.h"

namespace faiss_ext {

/// Replaces distances v >= 0 by k = exp(-rate v), or by 2 (1 - k); size n.
inline void exponential_kernel(double rate, size_t n, float* v, bool distance) {
    if (rate < 1e-30 || rate > 1e30) { // a float would be far off
        for (size_t i = 0; i < n; i++) {
            const double power = -rate * v[i];
            v[i] = float(distance ? -2 * std::expm1(power) : std::exp(power));
        }
    } else if (distance) {
        simd::expm1_scaled(n, float(-rate), -2, v);
    } else {
        simd::exp_affine(n, float(-rate), 0, v);
    }
}

} // namespace faiss_ext
