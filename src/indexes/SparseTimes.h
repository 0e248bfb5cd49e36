// SPDX-License-Identifier: MIT
// Chooses between lists and dense rows by measured times.

#pragma once

#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Measured times of searches among sparse vectors, on one thread. Searches may
/// use it in parallel.
class SparseTimes {
   public:
    /// Queries that are compared with dense rows together.
    static constexpr idx_t block = 32;

    struct Seconds {
        /// by lists, of a query, for each of its components
        double by_lists;
        // by dense rows, of a query that is alone or in a block
        double alone = std::numeric_limits<double>::infinity();
        double in_block;

        /// Whether dense rows are faster for n queries.
        bool is_dense_faster(idx_t n, size_t components) const {
            const double dense = n < block ? alone : in_block;
            return double(n) * dense < by_lists * double(components);
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
