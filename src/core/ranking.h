// The smallest of some scores, in order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace faiss_ext {

/// A score and its position; smaller scores are better.
using Ranked = std::pair<float, uint32_t>;

/** Leaves the m smallest, in order; of equal scores the first. Positions must
 * increase, and no score may be NaN.
 */
void keep_smallest(std::vector<Ranked>& items, size_t m);

} // namespace faiss_ext
