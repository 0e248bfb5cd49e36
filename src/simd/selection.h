// SPDX-License-Identifier: MIT
// The smallest of some values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace faiss_ext::simd {

/// The position of the smallest value, the first of equal ones; 0 if there is
/// none. NaN is never the smallest.
size_t first_smallest(size_t n, const float* v);

/// The first position from `from` on where the value is below the bound; n if
/// there is none.
size_t first_below(size_t n, const float* v, size_t from, float bound);

/// The k-th smallest of n values, none of them NaN or infinite; k from 1 to n.
/// The time does not depend on their order: there is nothing to guess wrong.
float kth_smallest(size_t n, const float* v, size_t k);

/** The k smallest values with their positions, the smallest first and of equal
 * ones the first; all of them if k >= n. NaN is left out.
 *
 * @param work  of any size and content; kept by the caller from call to call
 */
void k_smallest(
        size_t n,
        const float* v,
        size_t k,
        std::vector<std::pair<float, uint32_t>>& found,
        std::vector<float>& work);

} // namespace faiss_ext::simd
