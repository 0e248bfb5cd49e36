// SPDX-License-Identifier: MIT
// Selects the smallest of some values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace faiss_ext::simd {

/// Returns the position of the smallest value, the first if several are equal;
/// 0 if there is none. NaN is never the smallest.
size_t first_smallest(size_t n, const float* v);

/// Returns the first position from `from` on whose value is below the bound; n
/// if there is none.
size_t first_below(size_t n, const float* v, size_t from, float bound);

/// Returns the k-th smallest of n values, none of them NaN; k from 1 to n. The
/// time does not depend on their order, because no branch is mispredicted.
float kth_smallest(size_t n, const float* v, size_t k);

/** Finds the k smallest values and their positions; all of them if k >= n. The
 * smallest comes first, and equal ones are sorted by position. NaN is skipped.
 *
 * It reads the values twice, first for a bound. TopK (top_k.h), which needs
 * only one pass, takes two to three times as long if all values are there.
 *
 * @param work   any size and content; the caller keeps it from call to call
 * @param slack  also finds values above the k-th smallest by up to this. They
 *               are then in no order.
 */
void k_smallest(
        size_t n,
        const float* v,
        size_t k,
        std::vector<std::pair<float, uint32_t>>& found,
        std::vector<float>& work,
        float slack = 0);

} // namespace faiss_ext::simd
