// Vectors that lie apart in memory, as blocks for a kernel.

#pragma once

#include <algorithm>
#include <cstddef>

#include <faiss_ext/core/compat.h>

#include "core/scratch.h"

namespace faiss_ext {

/// Asks for a vector before it is needed.
inline void prefetch_vector(const float* x, size_t d) {
    constexpr size_t cache_line = 16; // in floats
    for (size_t i = 0; i < d; i += cache_line) {
        __builtin_prefetch(x + i);
    }
}

/** Calls fn(begin, count, rows) for consecutive pieces of the ids, where `rows`
 * are their vectors one after the other. Those of the next piece come from
 * memory meanwhile: a vector that has to be waited for takes several times as
 * long as to compare it.
 *
 * @param vectors  of dimension d, by id
 * @param ids      size n, each with a vector
 */
template <class F>
void for_gathered_rows(
        const float* vectors,
        size_t d,
        size_t n,
        const idx_t* ids,
        F&& fn) {
    const size_t piece = std::clamp<size_t>(4096 / d, 4, 32);
    const Scratch rows(std::min(piece, n) * d);
    const auto vector = [&](size_t i) { return vectors + ids[i] * d; };
    for (size_t i = 0; i < std::min(piece, n); i++) {
        prefetch_vector(vector(i), d);
    }
    for (size_t begin = 0; begin < n; begin += piece) {
        const size_t count = std::min(piece, n - begin);
        for (size_t i = 0; i < count; i++) {
            if (begin + i + piece < n) {
                prefetch_vector(vector(begin + i + piece), d);
            }
            std::copy_n(vector(begin + i), d, rows.get() + i * d);
        }
        fn(begin, count, rows.get());
    }
}

} // namespace faiss_ext
