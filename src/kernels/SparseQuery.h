// SPDX-License-Identifier: MIT
// Compares a sparse vector with others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/Kernel.h>

#include "core/sparse_row.h"

namespace faiss_ext {

/** A sparse vector that a kernel compares with others.
 *
 * Each pair is written as two short dense vectors: the columns of the query,
 * followed by the other columns of the row. The kernel's own loops compare
 * them. The vectors must outlive the query.
 */
class SparseQuery {
   public:
    SparseQuery(const Kernel& kernel, const SparseRow& x);

    const SparseRow& components() const {
        return x;
    }

    /// Computes scores (Kernel::score_block) for rows, on the calling thread.
    void scores(
            faiss::MetricType metric,
            std::span<const SparseRow> rows,
            float* out) const;

    /// Computes kernel values (Kernel::block) for rows, on the calling thread.
    void values(std::span<const SparseRow> rows, float* out) const;

   private:
    const Kernel& kernel;
    SparseRow x;
    int shift = 0;
    /// Column and position in x, by hash of the column. Seven of eight are
    /// free, so that the first one tried is nearly always the right one.
    struct Slot {
        int32_t column = -1;
        int32_t position = 0;
    };
    std::vector<Slot> slots;

    size_t first_slot(int32_t column) const {
        return size_t((uint32_t(column) * 0x9e3779b1u) >> shift);
    }

    /// The slot of a column, or a free one.
    const Slot& find(int32_t column) const {
        size_t s = first_slot(column);
        while (slots[s].column != column && slots[s].column >= 0) {
            s = (s + 1) & (slots.size() - 1);
        }
        return slots[s];
    }

    /// Calls compare(query, m, y, d, out) for a few rows at a time, as short
    /// dense vectors.
    template <class F>
    void for_rows(std::span<const SparseRow> rows, float* out, F&& compare)
            const;

    /// Writes the query and rows as vectors of d components, and calls
    /// compare(query, m, y, d).
    template <class F>
    void write_pairs(std::span<const SparseRow> rows, F&& compare) const;
};

} // namespace faiss_ext
