// SPDX-License-Identifier: MIT
// Finds the pairs of rows as an exact search among sparse vectors does.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "indexes/RowJoin.h"
#include "indexes/SparseLists.h"

namespace faiss_ext {

/** Inverted lists of all columns, which a SparseScan reads for each row.
 *
 * Its time grows with the number of all pairs, but little with the number of
 * rows that share a column. It is the fastest join if columns are frequent.
 */
class ScanJoin : public RowJoin {
   public:
    /// @param x  canonical; they and the pairs must live longer
    ScanJoin(const RowPairs& pairs, const SparseVectors& x);

    void find(size_t row, State& state) const override;

    /// About the least time that any rows of these numbers of components have
    /// taken, lists included.
    static double least_time(const RowPairs& pairs);

   private:
    /// Consecutive rows.
    struct Segment {
        size_t first = 0;
        std::unique_ptr<const SparseLists> lists;
        /// The first and last row of each block, counted from `first`.
        std::vector<uint32_t> least_rows, largest_rows;
    };

    const SparseVectors x;
    std::vector<Segment> segments;

    SparseRow vector_of(size_t row) const {
        return SparseRow::of(x, rows.equal(row).front());
    }
};

} // namespace faiss_ext
