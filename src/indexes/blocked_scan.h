// SPDX-License-Identifier: MIT
// Exact scans on all threads.

#pragma once

#include <algorithm>

#include <faiss_ext/core/compat.h>

#include "core/parallel.h"

namespace faiss_ext {

/// Compares queries with stored vectors in blocks. If there are too few blocks
/// for all threads, several slices of the vectors are scanned at once.
struct BlockedScan {
    idx_t n; ///< queries
    idx_t block, nblocks, nslices;

    /** @param block        queries that are compared together
     * @param tasks        tasks per thread to aim for by slicing
     * @param least_slice  minimum number of vectors in a slice
     */
    BlockedScan(
            idx_t n,
            idx_t ntotal,
            idx_t block,
            idx_t tasks,
            idx_t least_slice)
            : n(n),
              block(block),
              nblocks((n + block - 1) / block),
              nslices(std::clamp<idx_t>(
                      tasks * omp_get_max_threads() /
                              std::max<idx_t>(nblocks, 1),
                      1,
                      ntotal / least_slice + 1)) {}

    /// Calls task(first query, queries, slice, begin, end) for every block of
    /// queries and slice of vectors [j0, j1).
    template <class Task>
    void run(idx_t j0, idx_t j1, Task&& task) const {
        parallel_blocks(nblocks * nslices, 1, [&](idx_t t, idx_t) {
            const idx_t q0 = t / nslices * block, slice = t % nslices;
            task(q0,
                 std::min(block, n - q0),
                 slice,
                 j0 + (j1 - j0) * slice / nslices,
                 j0 + (j1 - j0) * (slice + 1) / nslices);
        });
    }
};

} // namespace faiss_ext
