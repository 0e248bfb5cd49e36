// SPDX-License-Identifier: MIT
// Features of phases, for the maps of frequencies.

#pragma once

#include <cmath>

#include "core/scratch.h"
#include "simd/elementwise.h"

namespace faiss_ext {

/// Computes the features (cos(2 pi u_1), ..., sin(2 pi u_1), ...) of n vectors,
/// scaled to length 1. project(u) computes the phases in turns, size n * half.
///
/// @param xt  size n * 2 half
template <class F>
void fourier_features(size_t n, size_t half, float* xt, F&& project) {
    const Scratch phases(n * half);
    project(phases.get());
    const auto length = float(std::sqrt(1.0 / double(half)));
    for (size_t i = 0; i < n; i++) {
        float* row = xt + i * 2 * half;
        simd::cos_sin_turns(half, length, &phases[i * half], row, row + half);
    }
}

} // namespace faiss_ext
