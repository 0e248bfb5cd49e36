// SPDX-License-Identifier: MIT
// Assembles the results of a range search, query by query.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

namespace faiss_ext {

/// A distance >= 0 as a float that is not larger, so that it is below every
/// radius that the distance is below.
inline float float_at_most(int32_t distance) {
    const auto rounded = float(distance);
    return int64_t(rounded) > distance ? std::nextafter(rounded, 0.0f)
                                       : rounded;
}

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

/// Joins the results of consecutive queries.
inline void join_results(
        const std::vector<std::unique_ptr<faiss::RangeSearchResult>>& parts,
        faiss::RangeSearchResult* result) {
    size_t q = 0;
    for (const auto& part : parts) {
        for (size_t i = 0; i < part->nq; i++) {
            result->lims[q++] = part->lims[i + 1] - part->lims[i];
        }
    }
    result->do_allocation();
    size_t at = 0;
    for (const auto& part : parts) {
        const size_t found = part->lims[part->nq];
        std::copy_n(part->distances, found, result->distances + at);
        std::copy_n(part->labels, found, result->labels + at);
        at += found;
    }
}

} // namespace faiss_ext
