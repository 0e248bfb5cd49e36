// SPDX-License-Identifier: MIT
// Finds the pairs of rows that may reach a threshold.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "indexes/RowPairs.h"

namespace faiss_ext {

class RowJoin {
   public:
    /// The pairs must live longer.
    explicit RowJoin(const RowPairs& pairs)
            : pairs(pairs), rows(pairs.rows), bound(pairs.bound) {}
    virtual ~RowJoin() = default;
    RowJoin(const RowJoin&) = delete;
    RowJoin& operator=(const RowJoin&) = delete;

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
        std::vector<uint32_t> touched, candidates, common;
        std::vector<uint32_t> found; ///< of the last call, ascending
        // of all calls:
        uint64_t entries = 0;  ///< of lists, read
        uint64_t counted = 0;  ///< pairs, whose common bits were counted
        uint64_t compared = 0; ///< pairs, whose components were compared
    };

    /// Finds rows before a row that may reach the least sum with it.
    virtual void find(size_t row, State& state) const = 0;

    // Times are in units of the time in which an entry of a list is read,
    // about a nanosecond.

    /// Of the kernel, for a pair that was found.
    static constexpr double time_of_kernel = 300;

    /// Estimates the time of all calls of find from a sample of the rows.
    double estimated_time() const;

    /// Of the comparison of the components of a pair, in the mean.
    static double time_to_compare(const OrderedRows& rows);

   protected:
    using Line = SumBound::Line;

    const RowPairs& pairs;
    const OrderedRows& rows;
    const SumBound& bound;

    /// Begins a call of find: rows that need no shared column are found. Those
    /// from the range's begin on remain.
    RowPairs::Range start(size_t row, State& state) const;

    /// Adds the candidates that may reach the least sum to those found, and
    /// orders these.
    void compare(size_t row, const Line& line, State& state) const;
};

} // namespace faiss_ext
