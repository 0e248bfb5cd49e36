// SPDX-License-Identifier: MIT
// The smallest of some scores, in order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace faiss_ext {

/** Leaves the m smallest, by score and id, in order. No score may be NaN. For
 * ids of 32 and 64 bits.
 */
template <class Id>
void keep_smallest(std::vector<std::pair<float, Id>>& hits, size_t m);

} // namespace faiss_ext
