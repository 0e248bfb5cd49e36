// SPDX-License-Identifier: MIT
// Exact scans on all threads.

#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

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

/// Calls fn(begin, end) for consecutive chunks of [begin, end), and checks for
/// interrupts in between. It is meant for tasks of a BlockedScan.
template <class F>
void for_chunks(idx_t begin, idx_t end, idx_t chunk, F&& fn) {
    for (idx_t i = begin; i < end; i += chunk) {
        if (omp_get_thread_num() == 0) {
            check_interrupt();
        }
        fn(i, std::min(end, i + chunk));
    }
}

/** Scans ntotal vectors and brings together what the slices have found.
 *
 * @param scan    task of BlockedScan::run, with one more argument: it calls
 *                found(query, hits) with the hits of each query
 * @param result  result(query, hits) receives a span of Hits, one for each
 *                slice, in order
 */
template <class Hits, class Scan, class Result>
void scan_slices(
        const BlockedScan& blocks,
        idx_t ntotal,
        Scan&& scan,
        Result&& result) {
    const idx_t nslices = blocks.nslices;
    std::vector<Hits> all(nslices > 1 ? blocks.n * nslices : 0);
    blocks.run(
            0,
            ntotal,
            [&](idx_t q0, idx_t nq, idx_t slice, idx_t begin, idx_t end) {
                scan(q0, nq, slice, begin, end, [&](idx_t q, Hits&& hits) {
                    if (nslices > 1) {
                        all[q * nslices + slice] = std::move(hits);
                    } else {
                        result(q, std::span(&hits, 1));
                    }
                });
            });
    parallel_blocks(
            nslices > 1 ? blocks.n : 0, 16, [&](idx_t begin, idx_t end) {
                for (idx_t q = begin; q < end; q++) {
                    result(q, std::span(&all[q * nslices], nslices));
                }
            });
}

/// Appends the hits of all slices to those of the first, which are returned.
template <class Hit>
std::vector<Hit>& concatenated(std::span<std::vector<Hit>> slices) {
    for (const auto& more : slices.subspan(1)) {
        slices[0].insert(slices[0].end(), more.begin(), more.end());
    }
    return slices[0];
}

} // namespace faiss_ext
