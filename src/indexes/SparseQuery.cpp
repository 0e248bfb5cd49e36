// SPDX-License-Identifier: MIT
#include "indexes/SparseQuery.h"

#include <algorithm>
#include <bit>

#include "core/scratch.h"

namespace faiss_ext {

namespace {

/// Rows that are compared together.
constexpr size_t together = 16;

} // namespace

SparseQuery::SparseQuery(const Kernel& kernel, const SparseRow& x)
        : kernel(kernel), x(x) {
    const size_t size = std::bit_ceil(2 * x.size() + 2);
    slots.assign(size, -1);
    shift = 32 - std::countr_zero(size);
    for (size_t i = 0; i < x.size(); i++) {
        size_t s = slot(x.columns[i]);
        while (slots[s] >= 0) {
            s = (s + 1) & (size - 1);
        }
        slots[s] = int32_t(i);
    }
}

void SparseQuery::scores(
        faiss::MetricType metric,
        std::span<const SparseRow> rows,
        float* out) const {
    for (size_t i = 0; i < rows.size(); i += together) {
        compare(metric,
                rows.subspan(i, std::min(together, rows.size() - i)),
                out + i);
    }
}

void SparseQuery::compare(
        faiss::MetricType metric,
        std::span<const SparseRow> rows,
        float* out) const {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
    }
    const size_t stride = x.size() + most + 1; // no vector is empty
    const Scratch dense((rows.size() + 1) * stride);
    float* query = dense.get() + rows.size() * stride;
    std::fill(
            std::copy(x.values.begin(), x.values.end(), query),
            query + stride,
            0.0f);
    size_t width = x.size() + 1;
    for (size_t i = 0; i < rows.size(); i++) {
        float* y = dense.get() + i * stride;
        std::fill_n(y, stride, 0.0f);
        size_t next = x.size();
        for (size_t j = 0; j < rows[i].size(); j++) {
            const int32_t at = find(rows[i].columns[j]);
            y[at >= 0 ? size_t(at) : next++] = rows[i].values[j];
        }
        width = std::max(width, next);
    }
    if (width < stride) { // bring the rows together
        for (size_t i = 1; i < rows.size(); i++) {
            std::copy_n(
                    dense.get() + i * stride, width, dense.get() + i * width);
        }
    }
    kernel.score_block(metric, 1, query, rows.size(), dense.get(), width, out);
}

} // namespace faiss_ext
