// SPDX-License-Identifier: MIT
// Bits that compare the cosine of a random phase with a random threshold.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace faiss_ext {

/// Draws b_i / 2 pi and acos(-t_i) / 2 pi, with b_i uniform on [0, 2 pi] and
/// t_i on [-1, 1] (ShiftInvariantHash).
void draw_phase_bits(
        int nbits,
        int64_t seed,
        std::vector<float>& offset,
        std::vector<float>& threshold);

/** Turns margins into the weights of ShiftInvariantHash::query_weights.
 *
 * @param values   K_m at K = 1/2, for m = 1, 2, ...
 * @param slopes   the derivatives of K_m by K there
 * @param weights  margins of n vectors, size n * threshold.size()
 */
void weigh_phase_bits(
        size_t n,
        const std::vector<float>& threshold,
        const std::vector<double>& values,
        const std::vector<double>& slopes,
        float* weights);

/// Terms whose value and slope are below this can be left out.
constexpr double negligible_term = 1e-4;

/// Terms with which weights are accurate enough.
constexpr int most_terms = 64;

} // namespace faiss_ext
