// SPDX-License-Identifier: MIT
// Which pairs of rows may reach a threshold.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "indexes/OrderedRows.h"
#include "indexes/RowBits.h"
#include "indexes/SumBound.h"

namespace faiss_ext {

/** The pairs of a row and one before it, and bounds of their sums over shared
 * columns. The rows must live longer.
 */
class RowPairs {
   public:
    RowPairs(const OrderedRows& rows, const SumBound& bound);

    const OrderedRows& rows;
    const SumBound bound;
    const RowBits bits;
    size_t first_row; ///< rows before it have no similar ones

    /// Rows before a row.
    struct Range {
        SumBound::Line line; ///< the least sum with the row
        size_t light;        ///< those up to here need no shared column
        size_t begin;        ///< others before this one cannot reach it
    };

    Range range_of(size_t row) const;

    /** Keeps the rows whose bits do not exclude that they reach the least sum
     * with a row.
     *
     * @param line    see Range
     * @param common  memory, kept for the next call
     */
    void keep_possible(
            size_t row,
            const SumBound::Line& line,
            std::vector<uint32_t>& others,
            std::vector<uint32_t>& common) const;

    /// Whether the sum over the shared columns of two rows may be `least` or
    /// more.
    bool reaches(size_t a, size_t b, double least) const;

    /** How similar the terms of two rows are if they have a sum over shared
     * columns. From 0 to 1: the Jaccard coefficient if terms are minima, and
     * otherwise the cosine.
     */
    double similarity(double sum, double mass, double other_mass) const;

    /// The same, with the sum of the terms of two rows.
    double similarity(size_t a, size_t b) const;

    /// The least similarity of a row with one before it that may reach the
    /// least sum; infinity if there is none.
    double least_similarity(size_t row) const;

    double mass(size_t row) const {
        return bound.mass_of_weight(rows.weights[row]);
    }
    double term_mass(float term) const {
        return bound.has_minima ? term : double(term) * term;
    }
};

} // namespace faiss_ext
