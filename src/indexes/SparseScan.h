// SPDX-License-Identifier: MIT
// Finds the rows of inverted lists that a search must compare.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <faiss_ext/kernels/Kernel.h>

#include "indexes/FoundRows.h"
#include "indexes/SparseLists.h"

namespace faiss_ext {

/** The sums of a query with the rows of a block, bounded by the codes of their
 * values.
 *
 * Lists are read from the shortest to the longest, and then the levels of all
 * full columns together. The lists and levels that were not read can add at
 * most offset + slope * weight to the sum of a row. This is either the sum of
 * their largest terms in the block, or follows from the inequality of Cauchy
 * and Schwarz for the components of the query and the row's weight.
 *
 * Sums are kept in 16 bits, as multiples of a step that each query chooses.
 *
 * Source of the second bound: Anastasiu and Karypis, L2AP, ICDE 2014, for the
 * cosine. It holds for all kernels, as each part of the sum is one.
 */
class SparseScan : public FoundRows<SparseScan> {
   public:
    /// Queries with more components have no scan.
    static constexpr size_t most_terms = 8192;

    /// The relative error of sums of a query with so many components.
    static double relative_error(size_t components) {
        return 1e-5 + 2e-7 * double(components);
    }

    /// @param weight  of the query
    SparseScan(
            const SparseLists& lists,
            const SharedSum& sum,
            const SparseRow& query,
            double weight);

    /// The rows of the shortest lists, up to `enough`, each once.
    std::vector<uint32_t> rows_of_shortest(size_t enough) const;

    /// The numbers of all blocks. Rows with about the weight of the query come
    /// first, because they lower the bound the most.
    std::vector<uint32_t> blocks() const;

    /// Finds the rows of a block that may have a score of at most `score`. They
    /// are `found` then, as numbers in the block.
    void find(size_t block, double score);

    /// Of all calls, in units of the time in which an entry is read.
    size_t time = 0;

    /// A row that was found.
    uint32_t row(uint32_t number) const;

    void set_score(double score) {
        if (score != last_score || num_read != read_at_last) {
            set_required(score);
        }
    }

    double margin(uint32_t number) const {
        return sums[number] - last_required.at(lists.weights[begin + number]);
    }

   private:
    struct Term {
        size_t list;
        size_t directory; ///< number among long lists, or `none`
        float value;      ///< of the query
        float mass;       ///< the term of the value with itself
        size_t next, end; ///< entries that are left
        ptrdiff_t bounds; ///< most[bounds + code] is the bound of a code
        int largest;      ///< bound of its terms in the block; 0 if it has none
    };

    /// offset + slope * weight of a row, in steps
    struct Line {
        double offset, slope;
        double at(double weight) const {
            return offset + slope * weight;
        }
    };

    /// A component of the query in a full column.
    struct FullTerm {
        size_t column; ///< number among full columns
        float value;   ///< of the query
        float mass;
        std::array<int16_t, SparseLists::num_levels> most; ///< bounds by level
        /// The lower bytes of the bounds, then the upper ones.
        uint8_t table[2 * SparseLists::num_levels];
    };

    static constexpr size_t none = SparseLists::none;

    const SparseLists& lists;
    const SharedSum& sum;
    double weight, error;
    size_t comparison; ///< the time of one, in the time of an entry of a list
    std::vector<Term> terms;
    std::vector<FullTerm> full_terms;
    double step = 1; ///< bounds of terms are multiples of it, rounded up
    std::vector<int16_t> most; ///< bounds of each term's codes, in steps
    // sums over the terms from each one on, in the block; then the sums of full
    // terms, and 0
    std::vector<double> left, mass_left;

    std::unique_ptr<uint32_t[]> positions; ///< memory of `found`
    size_t begin = 0, end = 0;             ///< of the block
    size_t num_read = 0; ///< terms that are in the sums; full ones are one
    std::unique_ptr<int16_t[]> sums; ///< in steps
    SharedSum::Least least; ///< for last_score, less the rounding errors
    double last_score = std::numeric_limits<double>::quiet_NaN();
    size_t read_at_last = none; ///< num_read at last_required
    Line last_required;

    void find_terms(const SparseRow& query);
    void find_full_terms(const SparseRow& query);
    void set_bounds();
    size_t num_parts() const { ///< that can be read
        return terms.size() + !full_terms.empty();
    }
    size_t length_of_next() const;
    size_t length_of_levels() const;
    size_t read_levels();
    void set_least(double score);
    void set_required(double score);
    void begin_block(size_t first, size_t last);
    void find_entries(size_t term);
    size_t read_next();
    Line left_out(size_t term) const;
    Line required(size_t term) const;
    size_t num_needed() const;
    double least_required(const Line& line) const;
};

} // namespace faiss_ext
