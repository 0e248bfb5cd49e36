// SPDX-License-Identifier: MIT
// Scores of an IndexFlatKernel between given and stored vectors; smaller is
// nearer.

#pragma once

#include <cstddef>
#include <cstdint>

#include <faiss_ext/indexes/IndexFlatKernel.h>

#include "core/prefetch.h"
#include "indexes/batch_calls.h"
#include "indexes/gathered_rows.h"
#include "indexes/row_codec.h"
#include "indexes/vertex_scores.h"

namespace faiss_ext {

/// The distance reported with id -1.
float worst_of(faiss::MetricType metric);

/// Turns the scores of one query's results into the values that search returns,
/// in order. On input they are in order, with padding (id -1) at the end.
void finish_results(
        const IndexFlatKernel& index,
        idx_t k,
        float* scores,
        idx_t* labels);

/** Chooses the k nearest of m candidates of each query.
 *
 * @param scores  size n * m; candidates with NaN are left out
 * @param ids     size n * m; candidates with -1 are left out
 * @param found   scores in order, size n * k, padded with worst_score
 * @param labels  size n * k, padded with -1
 */
void choose_nearest(
        idx_t n,
        idx_t m,
        const float* scores,
        const idx_t* ids,
        idx_t k,
        float* found,
        idx_t* labels);

/// Searches again, exactly, for queries with fewer than k results. All stored
/// vectors that the selector selects are compared.
void complete_results(
        const IndexFlatKernel& index,
        const faiss::IDSelector& sel,
        const VectorBatch& x,
        idx_t k,
        float* scores,
        idx_t* labels);

/// Scores under the kernel of an index.
struct RowScores final : VertexScores {
    const IndexFlatKernel& index;
    const StoredRows stored;
    const bool has_l2_of_bytes; ///< see simd::squared_l2_of_byte_rows

    /// Throws unless the index holds ntotal vectors.
    RowScores(const IndexFlatKernel& index, const char* where);

    size_t d() const override {
        return stored.codec.d;
    }

    void decode(int32_t id, float* row) const override {
        stored.decode(id, row);
    }

    void prefetch(int32_t id) const override {
        prefetch_row(stored.row(id), stored.codec.code_size());
    }

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            float* scores) const override {
        index.kernel->score_block(index.metric_type, n, x, m, y, d(), scores);
    }

    void operator()(const float* x, size_t n, const int32_t* ids, float* scores)
            const override;
};

} // namespace faiss_ext
