// SPDX-License-Identifier: MIT
#include "indexes/SparseQuery.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
    for (size_t i = 0; i < rows.size(); i += together) {
        compare(metric,
                rows.subspan(i, std::min(together, rows.size() - i)),
                out + i);
    }
}

/// Writes rows as dense vectors: the columns of the query, and the norm of the
/// other components.
void SparseQuery::merge(
        std::span<const SparseRow> rows,
        Kernel::ComponentNorm norm,
        float* y) const {
    const bool is_l1 = norm == Kernel::ComponentNorm::l1;
    const size_t n = x.size();
    for (const SparseRow& row : rows) {
        std::fill_n(y, n, 0.0f);
        const int32_t* columns = row.columns.data();
        const float* values = row.values.data();
        double others = 0;
        for (size_t j = 0; j < row.size(); j++) {
            const Slot& slot = find(columns[j]);
            const float value = values[j];
            const bool is_shared = slot.column == columns[j];
            const double size = is_l1 ? std::abs(value) : double(value) * value;
            y[is_shared ? size_t(slot.position) : n] = value;
            others += is_shared ? 0 : size;
        }
        y[n] = float(is_l1 ? others : std::sqrt(others));
        y += n + 1;
    }
}

/// Writes rows as dense vectors: the columns of the query, and the other
/// components. Returns their size; y has size rows.size() * stride.
size_t SparseQuery::align(
        std::span<const SparseRow> rows,
        size_t stride,
        float* y) const {
    const size_t n = x.size();
    size_t width = n + 1; // no vector is empty
    size_t ends[together];
    for (size_t i = 0; i < rows.size(); i++) {
        float* to = y + i * stride;
        std::fill_n(to, n, 0.0f);
        const int32_t* columns = rows[i].columns.data();
        const float* values = rows[i].values.data();
        size_t next = n;
        for (size_t j = 0; j < rows[i].size(); j++) {
            const Slot& slot = find(columns[j]);
            const bool is_shared = slot.column == columns[j];
            to[is_shared ? size_t(slot.position) : next] = values[j];
            next += !is_shared;
        }
        ends[i] = next;
        width = std::max(width, next);
    }
    for (size_t i = 0; i < rows.size(); i++) { // bring the rows together
        float* to = y + i * width;
        std::copy_n(y + i * stride, ends[i], to);
        std::fill(to + ends[i], to + width, 0.0f);
    }
    return width;
}

void SparseQuery::compare(
        faiss::MetricType metric,
        std::span<const SparseRow> rows,
        float* out) const {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
        if (row.size() > 0) {
            prefetch_row(row.columns.data(), row.columns.size_bytes());
            prefetch_row(row.values.data(), row.values.size_bytes());
        }
    }
    const auto norm = kernel.norm_of_unshared();
    const bool can_merge = norm != Kernel::ComponentNorm::none;
    size_t width = x.size() + 1 + (can_merge ? 0 : most);
    const Scratch dense((rows.size() + 1) * width);
    if (can_merge) {
        merge(rows, norm, dense.get());
    } else {
        width = align(rows, width, dense.get());
    }
    float* query = dense.get() + rows.size() * width;
    std::fill(
            std::copy(x.values.begin(), x.values.end(), query),
            query + width,
            0.0f);
    kernel.score_block(metric, 1, query, rows.size(), dense.get(), width, out);
}

} // namespace faiss_ext
