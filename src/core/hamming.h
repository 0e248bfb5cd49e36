// SPDX-License-Identifier: MIT
// Hamming distance of two codes.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace faiss_ext {

/// a, b: of `size` bytes
inline int32_t hamming_distance(
        const uint8_t* a,
        const uint8_t* b,
        size_t size) {
    int32_t sum = 0;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t u = 0, v = 0;
        const size_t m = std::min<size_t>(8, size - i);
        std::memcpy(&u, a + i, m);
        std::memcpy(&v, b + i, m);
        sum += std::popcount(u ^ v);
    }
    return sum;
}

} // namespace faiss_ext
