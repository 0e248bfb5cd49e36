// SPDX-License-Identifier: MIT
// Independent random numbers for each use of a seed, and shuffles.

#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "core/parallel.h"

namespace faiss_ext {

/// One stream of random numbers per purpose.
enum {
    stream_rows = 0,
    stream_w = 1,
    stream_v = 2,
    stream_signs = 3,
    stream_pairs = 4,
    stream_offsets = 5,
    stream_shuffle = 6,
    stream_lengths = 7,
    stream_rotations = 8,
    stream_bands = 9,
};

/// Returns an independent generator for each row and stream.
inline std::mt19937_64 row_rng(int64_t seed, int64_t row, int stream) {
    std::seed_seq sequence{seed & 0xffffffff, seed >> 32, row, int64_t(stream)};
    return std::mt19937_64(sequence);
}

/// Moves k random items, in random order, to the beginning.
template <class T>
void partial_shuffle(std::vector<T>& items, size_t k, std::mt19937_64& rng) {
    Steps steps;
    for (size_t i = 0; i < k; i++) {
        steps.next();
        std::uniform_int_distribution<T> rest(T(i), T(items.size() - 1));
        std::swap(items[i], items[rest(rng)]);
    }
}

} // namespace faiss_ext
