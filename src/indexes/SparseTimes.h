// SPDX-License-Identifier: MIT
// Chooses between lists and dense rows by measured times.

#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Measured times of searches among sparse vectors, on one thread. Searches may
/// use it in parallel.
class SparseTimes {
   public:
    /// In the part of the vectors that was searched.
    struct Seconds {
        double by_lists;  ///< of a query, for each of its components
        double for_block; ///< to make rows dense for a block of queries
        double by_dense;  ///< of a query in a block

        /// Whether dense rows are faster for n queries in blocks.
        bool is_dense_faster(idx_t n, idx_t num_blocks, size_t components)
                const {
            return double(num_blocks) * for_block + double(n) * by_dense <
                    by_lists * double(components);
        }
    };

    /// Returns the times, measured by the first call, and again if the number
    /// of stored components is less than half of what it was then, or more than
    /// twice.
    template <class Measure>
    Seconds get(size_t components, Measure&& measure) {
        {
            const std::lock_guard<std::mutex> hold(mutex);
            if (known && components >= of / 2 && components / 2 <= of) {
                return *known;
            }
        }
        const Seconds measured = measure(); // others need not wait
        const std::lock_guard<std::mutex> hold(mutex);
        known = measured;
        of = components;
        return measured;
    }

   private:
    std::mutex mutex;
    std::optional<Seconds> known;
    size_t of = 0; ///< stored components
};

} // namespace faiss_ext
