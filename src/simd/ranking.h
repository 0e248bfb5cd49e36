// SPDX-License-Identifier: MIT
// Selects the smallest scores, in order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <faiss/MetricType.h>

namespace faiss_ext {

/** Keeps the m smallest, by score and id, in order. No score may be NaN. Scores
 * are float or int32_t; ids have 32 or 64 bits.
 */
template <class Score, class Id>
void keep_smallest(std::vector<std::pair<Score, Id>>& hits, size_t m);

/// Whether a distance or kernel value is within the radius of a range search.
inline bool is_within(faiss::MetricType metric, float value, float radius) {
    return metric == faiss::METRIC_L2 ? value < radius : value > radius;
}

} // namespace faiss_ext
