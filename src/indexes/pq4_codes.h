// SPDX-License-Identifier: MIT
// Product quantisation with 4 bits per part, in the layout of simd/pq4_scan.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/compat.h>

#include "simd/pq4_scan.h"

namespace faiss_ext {

/// Number of centroids of a part.
constexpr size_t pq4_numbers = 16;

struct Pq4Codes {
    size_t d, M; ///< M divides d
    size_t size; ///< components of a part
    size_t rows; ///< rows of a block; each row holds two parts
    /// component j of centroid k of part m at [(m * size + j) * 16 + k]
    const float* codebook;

    Pq4Codes(size_t d, size_t M, const float* codebook)
            : d(d), M(M), size(d / M), rows((M + 1) / 2), codebook(codebook) {}

    /// Writes the number of the nearest centroid of each part. code: size M
    void encode(const float* x, uint8_t* code) const;
    void decode(const uint8_t* code, float* x) const;

    /// Returns the squared length of centroid k of part m at [m * 16 + k].
    AlignedVector<float> squares() const;
};

/// Trains the codebook of Pq4Codes by k-means, part by part. M must divide d; n
/// is at least 16.
AlignedVector<float> train_pq4_codebook(
        size_t d,
        size_t M,
        idx_t n,
        const float* x,
        uint64_t seed);

/// Position of code i in the blocks.
struct Pq4Slot {
    uint8_t* bytes; ///< the byte in the first row

    Pq4Slot(uint8_t* blocks, size_t i, size_t rows)
            : bytes(blocks + i / simd::pq4_block * rows * simd::pq4_block +
                    simd::pq4_byte(i % simd::pq4_block)) {}

    void set(const uint8_t* code, size_t M);
    void get(uint8_t* code, size_t M) const;
    void copy(const Pq4Slot& from, size_t rows);
};

/// A slot that is only read.
inline Pq4Slot read_slot(const uint8_t* blocks, size_t i, size_t rows) {
    return Pq4Slot(const_cast<uint8_t*>(blocks), i, rows);
}

/// Computes a query's tables without rounding. Entry [m * 16 + k] is factor *
/// <q, centroid k of part m> + plus. If M is odd, the missing part is filled
/// with zeros.
void make_float_tables(
        const Pq4Codes& codes,
        const float* q,
        float factor,
        const float* plus,
        std::vector<float>& tables);

/// Adds up the table entries for each code of a block.
void sum_block(
        size_t rows,
        const float* tables,
        const uint8_t* block,
        float* sums);

/// Tables rounded to bytes, to be added up by shuffles.
struct Pq4Tables {
    AlignedVector<uint8_t> entries, arranged;
    float scale = 0; ///< multiplies a sum of entries
    float bias = 0;  ///< is added to the product

    /** Makes tables of factor * <q, the vector of a code>.
     *
     * @param plus  addend for centroid k of part m, at [m * 16 + k]; or null
     */
    void make(
            const Pq4Codes& codes,
            const float* q,
            float factor,
            const float* plus = nullptr);
};

} // namespace faiss_ext
