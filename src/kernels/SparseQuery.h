// SPDX-License-Identifier: MIT
// Compares a sparse vector with others.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/Kernel.h>

#include "core/SparseRow.h"
#include "core/scratch.h"
#include "simd/split_columns.h"

namespace faiss_ext {

/** A sparse vector that a kernel compares with others, on the calling thread.
 *
 * Each pair is written as two short dense vectors: the columns of this vector,
 * followed by the other columns of the row, or by the norm of these if the
 * kernel has Kernel::norm_of_unshared. The kernel's own loops compare them. The
 * kernel and the vectors must outlive the query.
 */
class SparseQuery {
   public:
    SparseQuery(const Kernel& kernel, const SparseRow& x);

    const SparseRow& components() const {
        return x;
    }

    /// Computes scores (Kernel::score_block) for rows.
    void scores(
            faiss::MetricType metric,
            std::span<const SparseRow> rows,
            float* out) const {
        for_rows(
                rows,
                out,
                [&](const float* query,
                    size_t m,
                    const float* dense,
                    size_t width,
                    float* to) {
                    kernel.score_block(metric, 1, query, m, dense, width, to);
                });
    }

    /// Computes kernel values for rows.
    void values(std::span<const SparseRow> rows, float* out) const {
        for_rows(
                rows,
                out,
                [&](const float* query,
                    size_t m,
                    const float* dense,
                    size_t width,
                    float* to) {
                    kernel.block(1, query, m, dense, width, to);
                });
    }

   private:
    /// Rows that are compared together.
    static constexpr size_t together = 16;
    /// Numbers that simd::split_columns may write beyond its results.
    static constexpr size_t spare = 16;

    const Kernel& kernel;
    SparseRow x;
    ComponentNorm norm;
    /// The columns of x; see simd::split_columns. At least 16 bits for each.
    std::vector<uint32_t> bits;
    /// Column and position in x, by hash of the column. Three of four are free,
    /// so that the first one tried is often the right one.
    struct Slot {
        int32_t column = -1;
        int32_t position = 0;
    };
    std::vector<Slot> slots;
    int bits_shift = 0, slots_shift = 0;

    /// Returns the position of a column in x, or x.size() if x does not have
    /// it.
    size_t position_of(int32_t column) const {
        size_t s = simd::hash_of_column(column) >> slots_shift;
        while (slots[s].column != column && slots[s].column >= 0) {
            s = (s + 1) & (slots.size() - 1);
        }
        return slots[s].column == column ? slots[s].position : x.size();
    }

    /// Calls compare(query, m, dense, width, out) for the query and m rows at a
    /// time, as dense vectors of `width` components. compare writes m values to
    /// out.
    template <class F>
    void for_rows(std::span<const SparseRow> rows, float* out, F&& compare)
            const {
        for (size_t i = 0; i < rows.size(); i += together) {
            const auto some =
                    rows.subspan(i, std::min(together, rows.size() - i));
            const size_t most = most_components(some);
            const Scratch dense((some.size() + 1) * most + spare);
            const size_t width = write(some, most, dense.get());
            const float* query = dense.get() + some.size() * width;
            compare(query, some.size(), dense.get(), width, out + i);
        }
    }

    /// Most components of a pair; at least 1.
    size_t most_components(std::span<const SparseRow> rows) const;

    /// Writes the rows, then the vector, as dense vectors; returns the number
    /// of their components, at most `most`.
    size_t write(std::span<const SparseRow> rows, size_t most, float* dense)
            const;
    size_t write_components(
            std::span<const SparseRow> rows,
            size_t most,
            float* dense) const;
    size_t write_norms(std::span<const SparseRow> rows, float* y) const;
    size_t write_shared(
            const SparseRow& row,
            uint32_t* found,
            float* y,
            float* rest) const;
};

} // namespace faiss_ext
