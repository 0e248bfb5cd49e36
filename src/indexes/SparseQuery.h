// SPDX-License-Identifier: MIT
// Compares a sparse vector with others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/Kernel.h>

#include "indexes/SparseLists.h"

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

   private:
    const Kernel& kernel;
    SparseRow x;
    int shift = 32;
    std::vector<int32_t> slots; ///< positions in x by hash of the column, or -1

    size_t slot(int32_t column) const {
        return size_t((uint32_t(column) * 0x9e3779b1u) >> shift);
    }

    /// The position of a column in x, or -1.
    int32_t find(int32_t column) const {
        const size_t mask = slots.size() - 1;
        for (size_t s = slot(column);; s = (s + 1) & mask) {
            const int32_t at = slots[s];
            if (at < 0 || x.columns[at] == column) {
                return at;
            }
        }
    }

    void compare(
            faiss::MetricType metric,
            std::span<const SparseRow> rows,
            float* out) const;
};

} // namespace faiss_ext
