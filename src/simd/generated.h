// SPDX-License-Identifier: MIT
// Products with matrices of random numbers that are computed where they are
// needed, rather than stored.

#pragma once

#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

enum class Law { normal, cauchy };

/// Random bits that differ from those of other columns.
struct ColumnKey {
    uint32_t first, second;
};

/// Random bits of a matrix, from which the keys of its rows follow.
struct RowsKey {
    uint32_t offset, mask;
};

/// Rows are computed in blocks of this many, or of twice as many.
constexpr size_t generated_block = 16;

/// Number of sums that generated_sums computes for a matrix of `rows` rows.
inline size_t num_sums(Law law, size_t rows) {
    const size_t size = generated_block * (law == Law::normal ? 2 : 1);
    return (rows + size - 1) / size * size;
}

/// The standard deviation of the numbers for Law::normal. Those for Law::cauchy
/// have the scale 1.
double generated_deviation();

/** Computes sums[j] = sum_i values[i] a(j, columns[i]) on the calling thread.
 *
 * Results are the same for every instruction set. Products are rounded to float
 * and summed one after the other: runs of 256 in float, and the runs in double.
 *
 * @param count  number of columns
 * @param sums   output, size num_sums(law, rows); those after `rows` have no
 *               meaning
 */
void generated_sums(
        Law law,
        size_t count,
        const ColumnKey* columns,
        const float* values,
        size_t rows,
        const RowsKey& key,
        float* sums);

} // namespace faiss_ext::simd
