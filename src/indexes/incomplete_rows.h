// SPDX-License-Identifier: MIT
// Queries that a search has found fewer than k results for.

#pragma once

#include <algorithm>
#include <vector>

#include <faiss_ext/core/compat.h>

#include "indexes/batch_calls.h"

namespace faiss_ext {

class IncompleteRows {
   public:
    /// @param labels  results of the queries, size n * k, padded with -1
    IncompleteRows(const VectorBatch& x, idx_t k, const idx_t* labels)
            : k(k), numbers(find(x.n, k, labels)), queries(x, numbers) {}

    bool empty() const {
        return numbers.empty();
    }

    /// Calls search(x, distances, labels) for these queries, and replaces
    /// their results.
    template <class Search>
    void search_again(float* distances, idx_t* labels, Search&& search) const {
        std::vector<float> values(numbers.size() * k);
        std::vector<idx_t> ids(numbers.size() * k);
        search(queries.get(), values.data(), ids.data());
        for (size_t i = 0; i < numbers.size(); i++) {
            std::copy_n(&values[i * k], k, distances + numbers[i] * k);
            std::copy_n(&ids[i * k], k, labels + numbers[i] * k);
        }
    }

   private:
    idx_t k;
    std::vector<idx_t> numbers;
    GatheredVectors queries;

    static std::vector<idx_t> find(idx_t n, idx_t k, const idx_t* labels) {
        std::vector<idx_t> found;
        for (idx_t i = 0; i < n; i++) {
            if (labels[(i + 1) * k - 1] == -1) {
                found.push_back(i);
            }
        }
        return found;
    }
};

} // namespace faiss_ext
