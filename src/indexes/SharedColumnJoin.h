// SPDX-License-Identifier: MIT
// Finds the pairs of rows whose sum over shared columns is large.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "indexes/OrderedRows.h"
#include "indexes/SumBound.h"

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
class SharedColumnJoin {
   public:
    SharedColumnJoin(const OrderedRows& rows, const SumBound& bound);

    /// A column of a row, and the mass behind it or its root.
    struct Part {
        uint32_t column;
        float term;
        float rest;
    };

    /// What a thread needs.
    struct State {
        std::vector<float> sums; ///< by row; all 0 between calls
        std::vector<Part> prefix;
        std::vector<uint32_t> touched, candidates;
        std::vector<uint32_t> found; ///< of the last call, ascending
    };

    /// Finds the rows before a row that may reach the least sum with it.
    void find(size_t row, State& state) const;

   private:
    /// A row in the list of a column.
    struct Entry {
        uint32_t row;
        float term;
        float rest; ///< as in a Part
        float weight;
    };
    using Line = SumBound::Line;

    const OrderedRows& rows;
    SumBound bound;
    size_t first_row;           ///< rows before it have no similar ones
    std::vector<size_t> starts; ///< of the list of each column
    std::vector<Entry> entries;

    double term_mass(float term) const {
        return bound.has_minima ? term : double(term) * term;
    }
    float rest_term(double mass) const {
        return float(bound.has_minima ? mass : std::sqrt(mass));
    }
    double mass(size_t row) const {
        return bound.mass_of_weight(rows.weights[row]);
    }
    double heaviest() const {
        return rows.weights.back();
    }

    int64_t prefix_limit(size_t row, double least) const;
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
    void compare(size_t row, const Line& line, State& state) const;
    bool reaches(size_t row, size_t other, double least) const;
};

} // namespace faiss_ext
