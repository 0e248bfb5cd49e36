// SPDX-License-Identifier: MIT
// Selects vectors by sums that they have with a query.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/** Finds the positions i with sums[i] >= offset + slope * weights[i], in
 * ascending order. Returns their number. NaN on the right selects none.
 *
 * @param least  a number that no offset + slope * weights[i] is below
 * @param found  size n + 16; the first ones are the result
 */
size_t positions_at_least(
        size_t n,
        const int16_t* sums,
        const float* weights,
        float offset,
        float slope,
        float least,
        uint32_t* found);

/** Finds the positions i with sums[i] >= offset + slope * weights[i], in
 * ascending order. Returns their number. NaN selects none. The right side is
 * rounded to float.
 *
 * @param first  is added to the positions
 * @param found  size n + 16; the first ones are the result
 */
size_t positions_at_least(
        size_t n,
        const float* sums,
        const float* weights,
        float offset,
        float slope,
        uint32_t first,
        uint32_t* found);

/** Adds numbers from tables, chosen by levels of four bits, to sums:
 * sums[i] += sum_j tables[j][level of row i in levels[j]], modulo 2^16.
 *
 * Levels are in groups of 32 rows: byte i of the 16 bytes of a group has the
 * level of row i in its lower half and that of row i + 16 in its upper half.
 *
 * @param tables  16 numbers each: their lower bytes, then their upper bytes
 * @param levels  of n rows, and 64 bytes more that may be read
 * @param sums    of n rows, and 128 more that may be written
 */
void add_levels(
        size_t num_tables,
        const uint8_t* const* tables,
        const uint8_t* const* levels,
        size_t n,
        int16_t* sums);

} // namespace faiss_ext::simd
