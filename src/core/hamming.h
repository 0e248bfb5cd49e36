// SPDX-License-Identifier: MIT
// Hamming distances of two codes.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace faiss_ext {

/// The bytes of a code of d bits.
inline int bytes_of_bits(int d) {
    return d / 8 + (d % 8 != 0);
}

/// The bits in the bytes of a code of d bits.
inline int padded_bits(int d) {
    return 8 * bytes_of_bits(d);
}

/// Returns the word at byte i of a code of `size` bytes, padded with zeros.
inline uint64_t word_at(const uint8_t* code, size_t i, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, code + i, std::min<size_t>(8, size - i));
    return word;
}

inline int32_t number_of_ones(const uint8_t* code, size_t size) {
    int32_t sum = 0;
    for (size_t i = 0; i < size; i += 8) {
        sum += std::popcount(word_at(code, i, size));
    }
    return sum;
}

/// a, b: size `size` bytes
inline int32_t hamming_distance(
        const uint8_t* a,
        const uint8_t* b,
        size_t size) {
    int32_t sum = 0;
    for (size_t i = 0; i < size; i += 8) {
        sum += std::popcount(word_at(a, i, size) ^ word_at(b, i, size));
    }
    return sum;
}

} // namespace faiss_ext
