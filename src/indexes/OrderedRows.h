// SPDX-License-Identifier: MIT
// Sparse vectors in the order in which near_duplicates compares them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/kernels/SharedSum.h>

#include "indexes/SumBound.h"

namespace faiss_ext {

/** The different vectors by ascending weight. The components of each are
 * ordered by the number of vectors that have the column, the rarest first.
 *
 * A term stands for each component: terms(v, v) if the terms are minima, and
 * otherwise its root. The term of two components is then at most the smaller of
 * their terms, or the product. Roots have the sign of v if the terms are
 * products themselves.
 */
struct OrderedRows {
    std::vector<int64_t> starts;   ///< of each row; one more at the end
    std::vector<uint32_t> columns; ///< numbered by frequency; ascending
    std::vector<float> terms;
    std::vector<double> weights;     ///< see SharedSum
    std::vector<uint32_t> frequency; ///< rows that have a column
    std::vector<float> largest;      ///< terms of a column, in magnitude

    // the vectors that are equal to each row, the first one first
    std::vector<int64_t> member_starts;
    std::vector<int32_t> members;

    OrderedRows(const SparseVectors& x, const SumBound& bound);

    size_t size() const {
        return weights.size();
    }
    std::span<const int32_t> equal(size_t row) const {
        return {members.data() + member_starts[row],
                size_t(member_starts[row + 1] - member_starts[row])};
    }

   private:
    void set_rows(const SparseVectors& x, const SumBound& bound);
    void set_columns(const SparseVectors& x, const SumBound& bound);
};

} // namespace faiss_ext
