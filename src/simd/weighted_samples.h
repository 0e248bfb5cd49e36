// SPDX-License-Identifier: MIT
// Consistent weighted sampling: chooses a component of a vector for each bit.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** Chooses, for each bit j, the component i that minimises
 *
 *     cost - l_i - rate (1 - q + floor(q)),   q = l_i / rate + shift.
 *
 * There are `count` components with logarithms l_i. The values of rate, shift
 * and cost are at [components[i] * nbits + j]. The first of equal components is
 * chosen.
 *
 * @param nbits    a multiple of 8
 * @param chosen   output, components[i] for each bit; size nbits. -1 if count
 *                 is 0
 * @param level    output, floor(q) of the chosen component; size nbits. 0 if
 *                 count is 0
 */
void weighted_samples(
        size_t count,
        const int32_t* components,
        const float* logarithms,
        size_t nbits,
        const float* rate,
        const float* shift,
        const float* cost,
        int32_t* chosen,
        int32_t* level);

} // namespace faiss_ext::simd
