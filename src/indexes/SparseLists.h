// SPDX-License-Identifier: MIT
// Sparse vectors of an index, and for each column the vectors that have a
// component in it.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/SharedSum.h>

#include "core/SparseRow.h"

namespace faiss_ext {

/// Rows that are appended one after the other.
struct AppendedRows {
    std::vector<size_t> ends; ///< of each row in the arrays below
    MappableVector<int32_t> columns;
    MappableVector<float> values;

    bool are_mapped() const {
        return columns.mapped() || values.mapped();
    }

    size_t size() const {
        return ends.size();
    }

    SparseRow operator[](size_t i) const {
        const size_t begin = i == 0 ? 0 : ends[i - 1], n = ends[i] - begin;
        return {{columns.data() + begin, n}, {values.data() + begin, n}};
    }

    /// Removes the rows from the n-th on.
    void truncate(size_t n);

    /// Appends canonical vectors.
    void append(const SparseVectors& x);
    void append(const SparseRow& row);

    /// The rows as vectors of dimension d, for sequential access. Their indptr
    /// is written to an array.
    SparseVectors vectors(idx_t d, std::vector<int64_t>& indptr) const;
};

/** Inverted lists of up to 65,536 rows.
 *
 * The list of a column contains a number for each row with a component there,
 * and a code for its value: the number of an interval that contains it. The
 * intervals are chosen such that each contains about as many values, or is as
 * narrow as the others relative to its values. If the rows have up to 256
 * different values, each is an interval of its own. An entry takes three bytes,
 * and a search computes the terms of a column once for each code instead of
 * once for each row.
 *
 * For cosine, the lists are of the rows divided by their norms, unless they
 * have few different values. The codes of long and short rows are then as
 * accurate.
 *
 * A column that a sixteenth of the rows have has no list but a level for each
 * row, in four bits: 0 for no component, or one of 15 intervals of its own.
 */
struct SparseLists {
    static constexpr size_t most_rows = 65536;

    size_t num_rows = 0;
    size_t mean_components = 0; ///< of a row
    /// The rows by their numbers in the lists, which ascend with their weights.
    std::vector<uint16_t> order;

    /// A search holds the sums of a block of rows at a time. Rows of a block
    /// have similar weights, so that a search can leave blocks out. Blocks are
    /// large if all weights are about equal: short parts of lists take long to
    /// read.
    static constexpr size_t small_block = 4096, large_block = 32768;
    size_t block = small_block;
    static constexpr size_t num_codes = 256;
    std::vector<float> lows, highs; ///< ends of each interval, ascending
    std::vector<int32_t> columns;   ///< columns with components, ascending
    /// The first list of each group of columns, which have the same upper bits;
    /// one more at the end.
    std::vector<uint32_t> groups;
    int group_shift = 0;
    std::vector<size_t> starts; ///< of each list; one more at the end
    std::vector<uint8_t> low_codes, high_codes; ///< of each list
    std::vector<uint16_t> rows;                 ///< ascending in each list
    std::vector<uint8_t> codes;

    static constexpr size_t num_levels = 16;
    static constexpr size_t rows_per_group = 32; ///< of levels
    using Levels = std::array<float, num_levels>;
    std::vector<int32_t> full_columns; ///< columns with levels, ascending
    std::vector<Levels> level_lows, level_highs; ///< of each full column
    /// Of each full column, all rows. Byte i of a group of 16 has the levels of
    /// its rows i and i + 16.
    std::vector<uint8_t> levels;
    /// The least and largest level but 0 in each block of each full column.
    std::vector<uint8_t> least_levels, largest_levels;

    std::vector<float> weights; ///< of rows in the lists; see SharedSum
    /// Rows in the lists are the given ones times these; empty if they are not
    /// scaled.
    std::vector<float> scales;
    // of the weights in each block
    std::vector<float> least_weights, mean_weights, largest_weights;
    /// Entries of a long list that are rows of one block, from its beginning
    /// on, and their codes.
    struct Part {
        uint32_t begin = 0, end = 0;
        uint8_t low_code = 255, high_code = 0;
    };
    /// Lists of so many entries have parts.
    static constexpr size_t least_long = 256;
    std::vector<uint32_t> long_lists;  ///< ascending
    std::vector<uint32_t> long_groups; ///< of long_lists, as `groups`
    std::vector<Part> parts;           ///< of each long list, for all blocks

    size_t num_blocks() const {
        return (num_rows + block - 1) / block;
    }

    /// Bytes of the levels of a column.
    size_t levels_size() const {
        return (num_rows + rows_per_group - 1) / rows_per_group *
                (rows_per_group / 2);
    }

    bool are_histograms = true; ///< whether no value is negative
    bool have_finite_weights = true;

    /// Makes the lists of the first rows. d: their dimension
    SparseLists(
            const AppendedRows& from,
            size_t num_rows,
            size_t d,
            const SharedSum& sum);

    float scale(size_t number) const {
        return scales.empty() ? 1 : scales[number];
    }

    static constexpr size_t none = size_t(-1);

    /// The list of a column, or none.
    size_t list_of(int32_t column) const {
        const size_t group = uint32_t(column) >> group_shift;
        if (group + 1 >= groups.size()) {
            return none;
        }
        const auto end = columns.begin() + groups[group + 1];
        const auto at =
                std::lower_bound(columns.begin() + groups[group], end, column);
        return at != end && *at == column ? at - columns.begin() : none;
    }

    /// The number of a long list among the long ones.
    /// @param column  of the list
    size_t directory(int32_t column, size_t list) const {
        const size_t group = uint32_t(column) >> group_shift;
        const auto first = long_lists.begin();
        return std::lower_bound(
                       first + long_groups[group],
                       first + long_groups[group + 1],
                       uint32_t(list)) -
                first;
    }

    size_t length(size_t list) const {
        return starts[list + 1] - starts[list];
    }

   private:
    void choose_intervals(
            std::span<const float> values,
            const std::vector<float>& different);
    void set_order(const AppendedRows& from, const SharedSum& sum);
    std::vector<float> scale_rows(const AppendedRows& from);
    void fill(const AppendedRows& from, size_t d);
    void group_columns();
    void choose_block();
    void fill_levels(
            const AppendedRows& from,
            const std::vector<uint32_t>& code_counts);
    void divide_long_lists();
    uint8_t code(float value) const;

    std::vector<float> edges; ///< code(v) is the number of edges <= v
};

/// The weight of a row for a sum over shared components.
float weight_of(const SharedSum& sum, const SparseRow& row);

} // namespace faiss_ext
