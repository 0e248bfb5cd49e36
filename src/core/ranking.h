// SPDX-License-Identifier: MIT
// Selects the smallest scores, in order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace faiss_ext {

/** Keeps the m smallest, by score and id, in order. No score may be NaN. Scores
 * are float or int32_t; ids have 32 or 64 bits.
 */
template <class Score, class Id>
void keep_smallest(std::vector<std::pair<Score, Id>>& hits, size_t m);

} // namespace faiss_ext
