// SPDX-License-Identifier: MIT
// Splits long calls into batches.

#pragma once

#include <algorithm>
#include <chrono>

#include <faiss_ext/core/compat.h>

#include "core/parallel.h"

namespace faiss_ext {

/** Calls fn(begin, end) for consecutive slices of [0, n) and checks for
 * interrupts in between. It is meant for searches of FAISS that do not check.
 *
 * A slice takes about a tenth of a second, but has at least 128 queries, or 4
 * per thread, because FAISS searches for fewer on one thread. Results must not
 * depend on where a slice ends.
 */
template <class F>
void for_timed_batches(idx_t n, F&& fn) {
    using Clock = std::chrono::steady_clock;
    using std::chrono::milliseconds;
    const idx_t least = std::max(128, 4 * omp_get_max_threads());
    idx_t size = least;
    for (idx_t begin = 0; begin < n;) {
        check_interrupt();
        const idx_t end = begin + std::min(size, n - begin);
        const auto start = Clock::now();
        fn(begin, end);
        const auto time = Clock::now() - start;
        if (time < milliseconds(50)) {
            size *= 2;
        } else if (time > milliseconds(200)) {
            size = std::max(least, size / 2);
        }
        begin = end;
    }
}

/// Calls fn(begin, end) for consecutive parts of [0, n) of at most `most`
/// items. It limits the memory of searches that need memory for each query.
template <class F>
void for_batches(idx_t n, idx_t most, F&& fn) {
    for (idx_t begin = 0; begin < n;) {
        const idx_t end = begin + std::min(most, n - begin);
        fn(begin, end);
        begin = end;
    }
}

} // namespace faiss_ext
