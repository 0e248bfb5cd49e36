// SPDX-License-Identifier: MIT
// Finds the pairs of rows whose sum over shared columns is large.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "indexes/RowJoin.h"

namespace faiss_ext {

/** Inverted lists of the rarest columns of each row.
 *
 * A pair consists of a heavier row and one that comes before it. Each row has
 * two prefixes of its columns, which are ordered from the rarest on: one with
 * which it is the heavier row, and one in the lists, with which it is the other
 * row. If the prefixes of a pair share no column, then all shared columns are
 * behind the end of one of the prefixes. The rest behind each prefix is too
 * small for the least sum.
 */
class SharedColumnJoin : public RowJoin {
   public:
    explicit SharedColumnJoin(const RowPairs& pairs);

    void find(size_t row, State& state) const override;

   private:
    /// A row in the list of a column.
    struct Entry {
        uint32_t row;
        float term;
        float rest; ///< as in a Part
        float weight;
    };
    std::vector<size_t> starts; ///< of the list of each column
    std::vector<Entry> entries;

    float rest_term(double mass) const {
        return float(bound.has_minima ? mass : std::sqrt(mass));
    }
    double heaviest() const {
        return rows.weights.back();
    }

    template <class F>
    void for_prefix(
            size_t row,
            const Line& line,
            double low,
            double high,
            F&& f) const;
    template <class F>
    void for_listed(size_t row, F&& f) const;
    template <bool has_minima>
    void read_lists(const Line& line, size_t begin, size_t end, State& state)
            const;
    void collect(State& state) const;
};

} // namespace faiss_ext
