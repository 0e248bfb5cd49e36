// SPDX-License-Identifier: MIT
// Scans vectors that are product-quantised with 16 centroids per part. The
// distance to a query is a sum of table entries, selected by numbers of 4 bits.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/// Number of codes in a block. A block has a row of 32 bytes for every two
/// parts. Byte pq4_byte(i) of row r holds the number of part 2 r of code i in
/// its low bits, and the number of part 2 r + 1 in its high bits.
constexpr size_t pq4_block = 32;

constexpr size_t pq4_byte(size_t i) {
    return i < 16 ? 2 * i : 2 * (i - 16) + 1;
}

/// Largest sum of the entries of the four parts in rows r and r + 2 of a group
/// of four rows, which scans add up as bytes. Groups begin at multiples of 4.
/// The sums of all parts fit into 16 bits.
constexpr int pq4_max_sum = 255;
constexpr size_t pq4_max_parts = 512;

/// Returns the largest sum of the widths of four such parts.
inline float widest_pq4_pair(size_t parts, const float* width) {
    float widest = 0;
    for (size_t first = 0; first < parts; first += 8) {
        for (size_t m = first; m < first + 4; m += 2) {
            float sum = 0;
            for (size_t part : {m, m + 1, m + 4, m + 5}) {
                sum += part < parts ? width[part] : 0;
            }
            widest = std::max(widest, sum);
        }
    }
    return widest;
}

/** Makes rounded tables of factor * <q, the vector of a code>. Entry e of part
 * m stands for lowest + scale * e; the sum of `lowest` over all parts is bias.
 *
 * @param size      components of a part
 * @param codebook  component j of centroid k of part m is at [(m * size + j) *
 *                  16 + k]
 * @param q         size parts * size
 * @param plus      addend for centroid k of part m, at [m * 16 + k]; or null
 * @param tables    size parts * 16
 * @param scratch   size parts * 18
 */
void make_pq4_tables(
        size_t parts,
        size_t size,
        const float* codebook,
        const float* q,
        float factor,
        const float* plus,
        uint8_t* tables,
        float& scale,
        float& bias,
        float* scratch);

/// Returns the size in bytes of the tables of one query for scan_pq4.
size_t pq4_tables_size(size_t rows);

/// Arranges tables (size 2 * rows * 16) for the instruction set in use.
void arrange_pq4_tables(size_t rows, const uint8_t* tables, uint8_t* arranged);

/// Output of a scan.
struct Pq4Hits {
    float* scores;
    uint32_t* positions; ///< positions of codes in the scanned blocks
    size_t size;
};

/** Appends all codes with a score below the bound, by position. The score is
 * offsets[i] + scale * (the sum of the entries).
 *
 * @param tables   made by arrange_pq4_tables
 * @param codes    nblocks blocks of rows * 32 bytes
 * @param offsets  size 32 * nblocks; the largest float if there is no code
 * @param bound    at most the largest float
 * @param hits     with room for 32 * nblocks + 16 more
 */
void scan_pq4(
        size_t rows,
        const uint8_t* tables,
        float scale,
        size_t nblocks,
        const uint8_t* codes,
        const float* offsets,
        float bound,
        Pq4Hits& hits);

} // namespace faiss_ext::simd
