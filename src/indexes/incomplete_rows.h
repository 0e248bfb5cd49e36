// SPDX-License-Identifier: MIT
// Queries that a search has found fewer than k results for.

#pragma once

#include <algorithm>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

class IncompleteRows {
   public:
    /// @param x       queries, size n * d
    /// @param labels  their results, size n * k, padded with -1
    IncompleteRows(
            idx_t n,
            const float* x,
            size_t d,
            idx_t k,
            const idx_t* labels)
            : k(k) {
        for (idx_t i = 0; i < n; i++) {
            if (labels[(i + 1) * k - 1] == -1) {
                numbers.push_back(i);
                queries.insert(queries.end(), x + i * d, x + (i + 1) * d);
            }
        }
    }

    bool empty() const {
        return numbers.empty();
    }

    /// Calls search(n, x, distances, labels) for these queries, and replaces
    /// their results.
    template <class Search>
    void search_again(float* distances, idx_t* labels, Search&& search) const {
        std::vector<float> values(numbers.size() * k);
        std::vector<idx_t> ids(numbers.size() * k);
        search(idx_t(numbers.size()),
               queries.data(),
               values.data(),
               ids.data());
        for (size_t i = 0; i < numbers.size(); i++) {
            std::copy_n(&values[i * k], k, distances + numbers[i] * k);
            std::copy_n(&ids[i * k], k, labels + numbers[i] * k);
        }
    }

   private:
    idx_t k;
    std::vector<idx_t> numbers;
    std::vector<float> queries;
};

} // namespace faiss_ext
