// SPDX-License-Identifier: MIT
// Finds the rows of inverted lists that a batch of queries must compare, by
// dense copies of some rows at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include <faiss_ext/kernels/Kernel.h>

#include "core/scratch.h"
#include "indexes/FoundRows.h"
#include "indexes/SparseLists.h"

namespace faiss_ext {

/// A query, and the sum that bounds its scores.
struct SparseSearch;

/// Queries as dense vectors of dimension d.
struct DenseQueries {
    std::span<const SparseSearch> searches;
    size_t d;
    const float* x;
};

/// The sums of a batch of queries with the rows of a block.
class DenseScan : public FoundRows<DenseScan> {
   public:
    /// Most queries whose sums are computed together. Dense copies of the rows
    /// cost the less for each, the more queries there are.
    static constexpr size_t most_queries = 512;

    /// All queries have sums of the same kernel.
    DenseScan(
            const AppendedRows& all,
            const SparseLists& lists,
            const DenseQueries& queries);

    /// Rows of a block, at most. The more there are, the fewer are compared
    /// before the nearest.
    size_t block_size() const;

    /// Computes the sums of all queries with the rows from `begin` to `end`.
    void set_block(size_t begin, size_t end);

    /// Finds the rows of the block that may have a score of at most `score` for
    /// a query.
    void find(size_t query, double score);

    /// A row that was found.
    uint32_t row(uint32_t number) const {
        return lists.order[begin + number];
    }

    void set_score(double score);

    double margin(uint32_t number) const {
        return sum(number) - (offset + slope * lists.weights[begin + number]);
    }

   private:
    /// Rows that are dense at a time.
    static constexpr size_t at_a_time = 64;

    const AppendedRows& all;
    const SparseLists& lists;
    const DenseQueries queries;
    const Scratch rows, sums;
    std::unique_ptr<uint32_t[]> positions; ///< memory of `found`
    size_t begin = 0, end = 0;             ///< of the block
    size_t query = 0;                      ///< of the last find
    double last_score = std::numeric_limits<double>::quiet_NaN();
    double offset = 0, slope = 0; ///< of the least sum at a weight

    /// The sums of a query with the rows from `first` on, a multiple of
    /// at_a_time.
    float* sums_from(size_t of, size_t first) const {
        return &sums
                [(first * queries.searches.size()) +
                 of * std::min(at_a_time, end - begin - first)];
    }

    float sum(uint32_t number) const {
        const size_t first = number / at_a_time * at_a_time;
        return sums_from(query, first)[number - first];
    }
};

} // namespace faiss_ext
