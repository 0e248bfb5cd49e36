// SPDX-License-Identifier: MIT
// Sums of table entries that numbers of 4 bits choose: the distances of a query
// to vectors that are product-quantised with 16 centroids for each part.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace faiss_ext::simd {

/// Codes that lie together. A block has a row of 32 bytes for each two parts:
/// byte pq4_byte(i) of row r holds the number of part 2 r of code i in its
/// low bits, and that of part 2 r + 1 in its high ones.
constexpr size_t pq4_block = 32;

constexpr size_t pq4_byte(size_t i) {
    return i < 16 ? 2 * i : 2 * (i - 16) + 1;
}

/// The largest sum of entries of the four parts in rows r and r + 2, of each
/// four rows that begin at a multiple of 4: scans add them up as bytes. Sums of
/// all parts fit into 16 bits.
constexpr int pq4_max_sum = 255;
constexpr size_t pq4_max_parts = 512;

/// The largest sum of the widths of such four parts.
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

/** Tables of factor * <q, the vector of a code>, rounded: entry e of part m
 * stands for lowest + scale * e, where the lowest of all parts sum up to bias.
 *
 * @param size      components of a part
 * @param codebook  component j of centroid k of part m at
 *                  [(m * size + j) * 16 + k]
 * @param q         size parts * size
 * @param plus      what is added for centroid k of part m, at [m * 16 + k]; or
 *                  null
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

/// Bytes of the tables of one query for `rows` rows, as scan_pq4 takes
/// them.
size_t pq4_tables_size(size_t rows);

/// Arranges tables (size 2 * rows * 16) for the instruction set in use.
void arrange_pq4_tables(size_t rows, const uint8_t* tables, uint8_t* arranged);

/// What a scan appends to.
struct Pq4Hits {
    float* scores;
    uint32_t* positions; ///< of codes in what is scanned
    size_t size;
};

/** Appends all codes whose score is below the bound, by position: the score is
 * offsets[i] + scale * (the sum of the entries).
 *
 * @param tables   made by arrange_pq4_tables
 * @param codes    nblocks blocks of rows * 32 bytes
 * @param offsets  size 32 * nblocks; the largest float where there is no code
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
