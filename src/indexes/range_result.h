// SPDX-License-Identifier: MIT
// Assembles the results of a range search, query by query.

#pragma once

#include <cstddef>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

namespace faiss_ext {

/// Copies the hits of each query; distance(hit) and label(hit) return the
/// distance and label of a hit.
template <class Hit, class Distance, class Label>
void fill_range_result(
        const std::vector<std::vector<Hit>>& found,
        faiss::RangeSearchResult* result,
        Distance&& distance,
        Label&& label) {
    for (size_t q = 0; q < found.size(); q++) {
        result->lims[q] = found[q].size();
    }
    result->do_allocation();
    for (size_t q = 0; q < found.size(); q++) {
        size_t at = result->lims[q];
        for (const Hit& hit : found[q]) {
            result->distances[at] = distance(hit);
            result->labels[at++] = label(hit);
        }
    }
}

} // namespace faiss_ext
