// SPDX-License-Identifier: MIT
// Frequencies that a caller drew, as projections to phases in turns.

#pragma once

#include <memory>

#include <faiss_ext/projections/DenseProjection.h>

namespace faiss_ext {

/// The most frequencies of a map or a hash.
constexpr int most_frequencies = 1 << 26;

/// Returns the projection omega_i . x / 2 pi. Throws unless d and n are
/// positive, n is at most most_frequencies, and all components are finite.
///
/// @param omega  size n * d
/// @param where  names the class in messages
std::unique_ptr<DenseProjection> given_frequencies(
        int d,
        int n,
        const float* omega,
        const char* where);

/** The length of the longest vectors whose phases are accurate.
 *
 * The length scale of frequencies is sqrt(d) / median |omega_i|. For a Gaussian
 * kernel this is nearly the one that ShiftInvariantKernel::check_phases takes,
 * and the limit is the same: max_radius length scales. No phase exceeds 1e30
 * turns.
 */
double longest_vector(const Projection& turns);

/// Throws unless there are frequencies of d_in dimensions, all components are
/// finite, and no vector is longer than `longest`.
void check_given_phases(
        const Projection* turns,
        int d_in,
        double longest,
        idx_t n,
        const float* x,
        size_t d,
        const char* where);

} // namespace faiss_ext
