// SPDX-License-Identifier: MIT
// Consistent weighted sampling: of the components of a vector one for each bit.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** For each bit j the component i, of `count` with logarithms l_i, that
 * minimises
 *
 *     cost - l_i - rate (1 - q + floor(q)),   q = l_i / rate + shift,
 *
 * where rate, shift and cost are those at [components[i] * nbits + j]; of equal
 * ones the first.
 *
 * @param nbits    a multiple of 8
 * @param chosen   output, components[i] for each bit; size nbits. -1 if count
 *                 is 0
 * @param level    output, floor(q) of it; size nbits. 0 if count is 0
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
