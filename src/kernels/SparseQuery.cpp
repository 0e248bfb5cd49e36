// SPDX-License-Identifier: MIT
#include "kernels/SparseQuery.h"

#include <bit>
#include <cmath>

#include "core/prefetch.h"

namespace faiss_ext {

SparseQuery::SparseQuery(const Kernel& kernel, const SparseRow& x)
        : kernel(kernel), x(x), norm(kernel.norm_of_unshared()) {
    const size_t columns = x.size() > 0 ? size_t(x.columns.back()) + 1 : 0;
    if (columns > 0 && columns <= 16 * x.size()) { // no more memory than slots
        positions.assign(columns, int32_t(x.size()));
        for (size_t i = 0; i < x.size(); i++) {
            positions[x.columns[i]] = int32_t(i);
        }
        return;
    }
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

size_t SparseQuery::most_components(std::span<const SparseRow> rows) const {
    size_t most = 0;
    for (const SparseRow& row : rows) {
        most = std::max(most, row.size());
        if (row.size() > 0) {
            prefetch_row(row.columns.data(), row.columns.size_bytes());
            prefetch_row(row.values.data(), row.values.size_bytes());
        }
    }
    // no vector is empty
    return x.size() + 1 + (norm == ComponentNorm::none ? most : 0);
}

size_t SparseQuery::write(
        std::span<const SparseRow> rows,
        size_t most,
        float* dense) const {
    const size_t width = norm == ComponentNorm::none
            ? write_components(rows, most, dense)
            : write_norms(rows, dense);
    float* query = dense + rows.size() * width;
    std::fill(
            std::copy(x.values.begin(), x.values.end(), query),
            query + width,
            0.0f);
    return width;
}

/// Writes rows as the columns of the vector, and the norm of the others.
size_t SparseQuery::write_norms(std::span<const SparseRow> rows, float* y)
        const {
    const bool is_l1 = norm == ComponentNorm::l1;
    const size_t n = x.size();
    with_positions([&](const auto& position_of) {
        for (const SparseRow& row : rows) {
            std::fill_n(y, n, 0.0f);
            const int32_t* columns = row.columns.data();
            const float* values = row.values.data();
            double others = 0;
            for (size_t j = 0; j < row.size(); j++) {
                const size_t position = position_of(columns[j]);
                const float value = values[j];
                y[position] = value;
                // a branch would often be mispredicted
                constexpr double counts[] = {0, 1};
                others += counts[position == n] *
                        (is_l1 ? std::abs(value) : double(value) * value);
            }
            y[n] = float(is_l1 ? others : std::sqrt(others));
            y += n + 1;
        }
    });
    return n + 1;
}

/// Writes rows as the columns of the vector, and all others.
size_t SparseQuery::write_components(
        std::span<const SparseRow> rows,
        size_t most,
        float* dense) const {
    const size_t n = x.size();
    float* y = dense;
    size_t width = n + 1;
    size_t ends[together];
    with_positions([&](const auto& position_of) {
        for (size_t i = 0; i < rows.size(); i++, y += most) {
            std::fill_n(y, n, 0.0f);
            const int32_t* columns = rows[i].columns.data();
            const float* values = rows[i].values.data();
            size_t next = n;
            for (size_t j = 0; j < rows[i].size(); j++) {
                const size_t position = position_of(columns[j]);
                y[position < n ? position : next] = values[j];
                next += position == n;
            }
            ends[i] = next;
            width = std::max(width, next);
        }
    });
    for (size_t i = 0; i < rows.size(); i++) { // bring the rows together
        float* to = dense + i * width;
        std::copy_n(dense + i * most, ends[i], to);
        std::fill(to + ends[i], to + width, 0.0f);
    }
    return width;
}

} // namespace faiss_ext
