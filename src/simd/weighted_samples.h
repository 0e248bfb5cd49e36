// SPDX-License-Identifier: MIT
// Consistent weighted sampling: draws a sample of a vector for each bit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace faiss_ext::simd {

/// The most bits of one call of weighted_samples.
constexpr size_t max_weighted_samples = 4096;

/** Finds, for each bit, the random point of least rank that lies below the
 * weight of its component.
 *
 * Each bit and component has a Poisson process of points (weight, rank), which
 * depend on the seeds alone. Their density is nearly the same for all bits, and
 * exactly the same for all components and weights of a bit. A point has a key:
 * keys ascend with ranks, and their last bit is random. Points of different
 * processes are independent.
 *
 * @param count       positive
 * @param components  different numbers
 * @param weights     positive and finite, size count
 * @param nbits       from 1 to max_weighted_samples
 * @param keys        output, the least key of each bit; size nbits
 * @param work        memory, kept for the next call
 */
void weighted_samples(
        size_t count,
        const int32_t* components,
        const float* weights,
        uint32_t seed_a,
        uint32_t seed_b,
        size_t nbits,
        uint32_t* keys,
        std::vector<uint32_t>& work);

/** Finds the positive components of a vector, in ascending order. Returns their
 * number.
 *
 * @param components  output, size d + 1
 * @param values      output, size d + 1
 */
size_t positive_components(
        size_t d,
        const float* x,
        int32_t* components,
        float* values);

} // namespace faiss_ext::simd
