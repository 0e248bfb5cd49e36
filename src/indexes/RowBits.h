// SPDX-License-Identifier: MIT
// Tells from a few bits of two rows that they share too little.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "indexes/OrderedRows.h"

namespace faiss_ext {

/** A bitmap of each row's columns, shorter than the row.
 *
 * The bit of a column is its number modulo the number of bits. If a row has a
 * bit that another row has not, then it has a column that the other has not,
 * and the term of that column adds nothing to their sum. This is the bitmap
 * filter of set similarity joins (Sandes, Teodoro, Melo: Bitmap filter,
 * Information Systems 88, 2020), for terms of any size.
 */
class RowBits {
   public:
    RowBits(const OrderedRows& rows, bool has_minima);

    /// Counts the bits that a row has in common with n others.
    void count_common(
            size_t row,
            size_t n,
            const uint32_t* others,
            uint32_t* common) const;

    /// The mass of a row without the columns that are surely not shared with a
    /// row with which it has some bits in common.
    double mass_shared(size_t row, double mass, uint32_t common) const {
        return mass - double(ones[row] - common) * least_mass[row];
    }

    size_t num_words() const { ///< of 64 bits, for each row
        return words;
    }

    /// Of count_common, for one other row, in units of RowJoin.
    double time_to_count() const {
        return 8 + double(words);
    }

   private:
    size_t words;
    std::vector<uint64_t> bits;
    std::vector<uint32_t> ones;
    std::vector<float> least_mass; ///< of a term
};

} // namespace faiss_ext
