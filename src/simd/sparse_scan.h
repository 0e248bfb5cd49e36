// SPDX-License-Identifier: MIT
// Selects vectors by sums that they have with a query.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** Finds the positions i with sums[i] >= offset + slope * weights[i], in
 * ascending order. Returns their number. NaN on the right selects none.
 *
 * @param found  size n + 16; the first ones are the result
 */
size_t positions_at_least(
        size_t n,
        const float* sums,
        const float* weights,
        float offset,
        float slope,
        uint32_t* found);

} // namespace faiss_ext::simd
