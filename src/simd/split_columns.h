// SPDX-License-Identifier: MIT
// Divides the components of a sparse vector by a set of columns.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/// A number of 32 bits for a column.
inline uint32_t hash_of_column(int32_t column) {
    return uint32_t(column) * 0x9e3779b1u;
}

/** Finds the components whose columns may be in a set, and copies the values of
 * the others. The bit of a column c is bit (hash_of_column(c) >> shift) of an
 * array; it is 1 if c is in the set, and may be 1 if not. Returns the number of
 * components whose bit is 1.
 *
 * @param found  their positions, ascending; size n + 16
 * @param rest   the values of the others, in their order; size n + 16
 */
size_t split_columns(
        size_t n,
        const int32_t* columns,
        const float* values,
        const uint32_t* bits,
        int shift,
        uint32_t* found,
        float* rest);

} // namespace faiss_ext::simd
