// SPDX-License-Identifier: MIT
// The metric of an IndexFlatKernel between vectors and stored ones.

#pragma once

#include <cstddef>
#include <cstdint>

#include <faiss_ext/indexes/IndexFlatKernel.h>

#include "core/prefetch.h"
#include "indexes/gathered_rows.h"
#include "indexes/row_codec.h"

namespace faiss_ext {

/// A block of the metric.
inline void compare_block(
        const Kernel& kernel,
        faiss::MetricType metric,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) {
    if (metric == faiss::METRIC_L2) {
        kernel.distance_block(n, x, m, y, d, out);
    } else {
        kernel.block(n, x, m, y, d, out);
    }
}

/** Distances or negated kernel values, so that smaller is always better,
 * between vectors and stored ones. On the calling thread, without checks.
 */
struct RowScores {
    const IndexFlatKernel& index;
    const StoredRows stored;

    /// Throws unless the index holds as many vectors as it says.
    RowScores(const IndexFlatKernel& index, const char* where)
            : index(index), stored(StoredRows::of(index, where)) {}

    size_t d() const {
        return stored.codec.d;
    }

    /// The stored vector, d floats.
    void decode(int32_t id, float* row) const {
        stored.decode(id, row);
    }

    void prefetch(int32_t id) const {
        prefetch_row(stored.row(id), stored.codec.code_size());
    }

    /// All pairs. x: size n * d; y: size m * d; scores: size n * m
    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            float* scores) const {
        compare_block(
                *index.kernel, index.metric_type, n, x, m, y, d(), scores);
        if (index.metric_type != faiss::METRIC_L2) {
            for (size_t i = 0; i < n * m; i++) {
                scores[i] = -scores[i];
            }
        }
    }

    /// A vector with the stored ones of these ids.
    void operator()(const float* x, size_t n, const int32_t* ids, float* scores)
            const {
        for_gathered_rows(
                stored,
                n,
                ids,
                [&](size_t begin, size_t count, const float* rows) {
                    block(1, x, count, rows, scores + begin);
                });
    }
};

} // namespace faiss_ext
