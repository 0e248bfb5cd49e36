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

/// Throws unless the stored vectors are as many and as large as the index
/// says: fields may have been set by hand.
void check_rows(const IndexFlatKernel& index, const char* where);

/** Distances or negated kernel values, so that smaller is always better,
 * between vectors and stored ones. On the calling thread, without checks.
 */
struct RowScores {
    const IndexFlatKernel& index;
    const RowCodec codec;

    explicit RowScores(const IndexFlatKernel& index)
            : index(index), codec(index) {}

    size_t d() const {
        return codec.d;
    }
    const uint8_t* code(int32_t id) const {
        return index.codes.data() + size_t(id) * codec.code_size();
    }

    /// The stored vector, d floats.
    void decode(int32_t id, float* row) const {
        codec.decode(1, code(id), row);
    }

    void prefetch(int32_t id) const {
        prefetch_row(code(id), codec.code_size());
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
                codec,
                index.codes.data(),
                n,
                ids,
                [&](size_t begin, size_t count, const float* rows) {
                    block(1, x, count, rows, scores + begin);
                });
    }
};

} // namespace faiss_ext
