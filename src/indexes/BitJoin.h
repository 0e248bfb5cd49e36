// SPDX-License-Identifier: MIT
// Finds the pairs of rows of bits that share many of them.

#pragma once

#include <cstddef>

#include "indexes/BitRows.h"
#include "indexes/RowJoin.h"

namespace faiss_ext {

/** A scan of packed bits by Hamming distance, for rows of zeros and ones.
 *
 * All terms are 1. Rows of a and b ones that differ in h bits share (a + b - h)
 * / 2, so that a least sum is a largest distance. Only rows whose numbers of
 * ones are similar enough are compared.
 */
class BitJoin : public RowJoin {
   public:
    /// @param bits  must live as long as this object
    BitJoin(const RowPairs& pairs, const BitRows& bits);

    void find(size_t row, State& state) const override;

    /// Estimates the time of all calls of find.
    static double estimated_time(const RowPairs& pairs, const BitRows& bits);

   private:
    const BitRows& bits;

    /// The largest distance of a row and one of another weight.
    double largest_distance(size_t row, const Line& line, double weight) const;
};

} // namespace faiss_ext
