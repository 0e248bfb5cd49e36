// SPDX-License-Identifier: MIT
// Counts the bits that sets have in common.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** Counts the bits that a set has in common with others.
 *
 * @param set      size words
 * @param sets     words of 8 bytes for each set, at any address
 * @param n        number of sets
 * @param numbers  of these sets, size n
 * @param counts   output, size n
 */
void common_bits(
        size_t words,
        const uint64_t* set,
        const void* sets,
        size_t n,
        const uint32_t* numbers,
        uint32_t* counts);

/// The same for sets at these addresses, size n.
void common_bits(
        size_t words,
        const uint64_t* set,
        size_t n,
        const uint8_t* const* sets,
        uint32_t* counts);

} // namespace faiss_ext::simd
