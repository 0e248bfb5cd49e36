// SPDX-License-Identifier: MIT
// Hamming distances, and scans of all codes that keep only a few.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

constexpr int hamming_shift = 40;

/// Number of keys that may be written at once.
constexpr size_t hamming_group = 8;

/** Collects keys (distance << hamming_shift) + position for distances below
 * `bound`, in order of the positions.
 */
struct HammingSink {
    uint32_t bound = 0;
    /// of keys; room for hamming_group more follows
    size_t size = 0, capacity = 0;
    uint64_t* keys = nullptr;

    /// Called if size >= capacity. It must make room, and may lower the bound.
    void (*make_room)(HammingSink& sink) = nullptr;
};

/** Scans codes on the calling thread.
 *
 * @param nq          queries
 * @param queries     size nq * words; each is padded with zeros to words of
 *                    8 bytes
 * @param n           codes
 * @param codes       size n * code_size
 * @param position    of the first code, for the keys
 * @param sinks       one for each query
 */
void hamming_scan(
        size_t nq,
        const uint64_t* queries,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        uint64_t position,
        HammingSink* const* sinks);

/** Computes the distances between a code and n others.
 *
 * @param codes      size n * code_size
 * @param code_size  a multiple of 4
 */
void hamming_distances(
        const uint8_t* code,
        size_t n,
        const uint8_t* codes,
        size_t code_size,
        float* distances);

} // namespace faiss_ext::simd
