// SPDX-License-Identifier: MIT
#include "kernels/sparse_blocks.h"

#include <vector>

#include "core/SparseRow.h"
#include "core/errors.h"
#include "kernels/SparseQuery.h"

namespace faiss_ext {

namespace {

/// Calls compare(query, rows, out) for each vector of x, with all rows of y.
template <class F>
void for_queries(
        const Kernel& kernel,
        const SparseVectors& x,
        const SparseVectors& y,
        float* out,
        F&& compare) {
    std::vector<SparseRow> rows;
    rows.reserve(y.n);
    for (idx_t j = 0; j < y.n; j++) {
        rows.push_back(SparseRow::of(y, j));
    }
    for (idx_t i = 0; i < x.n; i++) {
        const SparseQuery query(kernel, SparseRow::of(x, i));
        compare(query, rows, out + i * y.n);
    }
}

} // namespace

void check_ignores_zeros(const Kernel& kernel, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            kernel.ignores_zeros(),
            "%s: the kernel %s may depend on components that are 0 in both vectors, so sparse vectors cannot be compared",
            where,
            kernel.description().c_str());
}

void block_of(
        const Kernel& kernel,
        const VectorBatch& x,
        const VectorBatch& y,
        float* out) {
    if (!y.is_sparse) {
        kernel.block(x.n, x.dense, y.n, y.dense, y.d, out);
        return;
    }
    for_queries(
            kernel,
            x.sparse,
            y.sparse,
            out,
            [](const SparseQuery& query,
               const std::vector<SparseRow>& rows,
               float* to) { query.values(rows, to); });
}

void score_block_of(
        const Kernel& kernel,
        faiss::MetricType metric,
        const VectorBatch& x,
        const VectorBatch& y,
        float* out) {
    if (!y.is_sparse) {
        kernel.score_block(metric, x.n, x.dense, y.n, y.dense, y.d, out);
        return;
    }
    for_queries(
            kernel,
            x.sparse,
            y.sparse,
            out,
            [&](const SparseQuery& query,
                const std::vector<SparseRow>& rows,
                float* to) { query.scores(metric, rows, to); });
}

void self_values_of(const Kernel& kernel, const VectorBatch& x, float* out) {
    if (!x.is_sparse) {
        kernel.self_values(x.n, x.dense, x.d, out);
        return;
    }
    constexpr float zero = 0;
    for (idx_t i = 0; i < x.n; i++) {
        const SparseRow row = SparseRow::of(x.sparse, i);
        const bool is_empty = row.size() == 0;
        kernel.self_values(
                1,
                is_empty ? &zero : row.values.data(),
                is_empty ? 1 : row.size(),
                out + i);
    }
}

} // namespace faiss_ext
