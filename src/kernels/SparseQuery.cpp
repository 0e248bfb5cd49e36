// SPDX-License-Identifier: MIT
#include "kernels/SparseQuery.h"

#include <algorithm>
#include <bit>

#include "core/prefetch.h"
#include "core/scratch.h"

namespace faiss_ext {

namespace {

/// Rows that are compared together.
constexpr size_t together = 16;

} // namespace

SparseQuery::SparseQuery(const Kernel& kernel, const SparseRow& x)
        : kernel(kernel), x(x) {
    const size_t size = std::bit_ceil(8 * x.size() + 2);
    slots.resize(size);
    shift = 32 - std::countr_zero(size);
    for (size_t i = 0; i < x.size(); i++) {
        size_t s = first_slot(x.columns[i]);
        while (slots[s].column >= 0) {
            s = (s + 1) & (size - 1);
        }
        slots[s] = {x.columns[i], int32_t(i)};
    }
}

void SparseQuery::scores(
        faiss::MetricType metric,
        std::span<const SparseRow> rows,
        float* out) const {
    for_rows(
            rows,
            out,
            [&](const float* query,
                size_t m,
                const float* y,
                size_t d,
                float* to) {
                kernel.score_block(metric, 1, query, m, y, d, to);
            });
}

void SparseQuery::values(std::span<const SparseRow> rows, float* out) const {
    for_rows(
            rows,
            out,
            [&](const float* query,
                size_t m,
                const float* y,
                size_t d,
                float* to) { kernel.block(1, query, m, y, d, to); });
}

template <class F>
void SparseQuery::for_rows(
        std::span<const SparseRow> rows,
        float* out,
        F&& compare) const {
    for (size_t i = 0; i < rows.size(); i += together) {
        write_pairs(
                rows.subspan(i, std::min(together, rows.size() - i)),
                [&](const float* query, size_t m, const float* y, size_t d) {
                    compare(query, m, y, d, out + i);
                });
    }
}

template <class F>
void SparseQuery::write_pairs(std::span<const SparseRow> rows, F&& compare)
        const {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
        if (row.size() > 0) {
            prefetch_row(row.columns.data(), row.columns.size_bytes());
            prefetch_row(row.values.data(), row.values.size_bytes());
        }
    }
    const size_t n = x.size(), stride = n + most + 1; // no vector is empty
    const Scratch dense((rows.size() + 1) * stride);
    float* y = dense.get();
    size_t width = n + 1;
    size_t ends[together];
    for (size_t i = 0; i < rows.size(); i++, y += stride) {
        std::fill_n(y, n, 0.0f);
        const int32_t* columns = rows[i].columns.data();
        const float* values = rows[i].values.data();
        size_t next = n;
        for (size_t j = 0; j < rows[i].size(); j++) {
            const Slot& slot = find(columns[j]);
            const bool is_shared = slot.column == columns[j];
            y[is_shared ? size_t(slot.position) : next] = values[j];
            next += !is_shared;
        }
        ends[i] = next;
        width = std::max(width, next);
    }
    for (size_t i = 0; i < rows.size(); i++) { // bring the rows together
        float* to = dense.get() + i * width;
        std::copy_n(dense.get() + i * stride, ends[i], to);
        std::fill(to + ends[i], to + width, 0.0f);
    }
    float* query = dense.get() + rows.size() * width;
    std::fill(
            std::copy(x.values.begin(), x.values.end(), query),
            query + width,
            0.0f);
    compare(query, rows.size(), dense.get(), width);
}

} // namespace faiss_ext
