// SPDX-License-Identifier: MIT
// Rows that a scan found, in the order in which they are compared.

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/sort_keys.h"

namespace faiss_ext {

/** The rows of a block that may have a score, and their order.
 *
 * Scan is the derived class. Its margin(number) tells by how much the sum of a
 * row, or a bound of it, exceeds the least one with which the row may have the
 * score of the last set_score(score).
 */
template <class Scan>
class FoundRows {
   public:
    std::span<uint32_t> found; ///< numbers in the block

    /// Whether a row that was found may have this score.
    bool may_have(uint32_t number, double score) {
        scan().set_score(score);
        return scan().margin(number) >= 0;
    }

    /// Orders the rows that were found, the most promising for this score
    /// first.
    void sort_found(double score) {
        if (found.size() < 2) {
            return;
        }
        set_keys(score);
        sort_keys(keys.data(), keys.size());
        take_order();
    }

    /// Removes the most promising of more than n rows from `found`, and returns
    /// them.
    std::vector<uint32_t> take_promising(size_t n, double score) {
        set_keys(score);
        std::partial_sort(keys.begin(), keys.begin() + n, keys.end());
        take_order();
        std::vector<uint32_t> taken(found.begin(), found.begin() + n);
        found = found.subspan(n);
        return taken;
    }

    /// Removes the rows from `found` that may not have a score of at most
    /// `score`.
    void keep_possible(double score) {
        scan().set_score(score);
        size_t kept = 0; // branches would often be mispredicted
        for (const uint32_t number : found) {
            found[kept] = number;
            kept += scan().margin(number) >= 0;
        }
        found = found.first(kept);
    }

   private:
    std::vector<uint64_t> keys;

    Scan& scan() {
        return static_cast<Scan&>(*this);
    }

    /// Sets a key for each row that was found. The most promising has the
    /// smallest.
    void set_keys(double score) {
        scan().set_score(score);
        keys.resize(found.size());
        for (size_t i = 0; i < found.size(); i++) {
            const auto more = float(std::max(0.0, scan().margin(found[i])));
            // floats that are not negative are ordered like their bits
            keys[i] = uint64_t(~std::bit_cast<uint32_t>(more)) << 32 | found[i];
        }
    }

    void take_order() {
        for (size_t i = 0; i < found.size(); i++) {
            found[i] = uint32_t(keys[i]);
        }
    }
};

} // namespace faiss_ext
