// SPDX-License-Identifier: MIT
// Product-quantised vectors, 4 bits a part, as simd/pq4_scan.h scans them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/compat.h>

#include "simd/pq4_scan.h"

namespace faiss_ext {

/// Centroids of a part.
constexpr size_t pq4_numbers = 16;

struct Pq4Codes {
    size_t d, M; ///< M divides d
    size_t size; ///< of a part
    size_t rows; ///< of a block, each with two parts
    /// component j of centroid k of part m at [(m * size + j) * 16 + k]
    const float* codebook;

    Pq4Codes(size_t d, size_t M, const float* codebook)
            : d(d), M(M), size(d / M), rows((M + 1) / 2), codebook(codebook) {}

    /// The number of the nearest centroid of each part. code: size M
    void encode(const float* x, uint8_t* code) const;
    void decode(const uint8_t* code, float* x) const;

    /// The squared length of centroid k of part m, at [m * 16 + k].
    AlignedVector<float> squares() const;
};

/// The centroids of the parts by k-means, as Pq4Codes takes them. M divides
/// d; n is at least 16.
AlignedVector<float> train_pq4_codebook(
        size_t d,
        size_t M,
        idx_t n,
        const float* x,
        uint64_t seed);

/// The place of code i in blocks.
struct Pq4Slot {
    uint8_t* bytes; ///< that of the first row

    Pq4Slot(uint8_t* blocks, size_t i, size_t rows)
            : bytes(blocks + i / simd::pq4_block * rows * simd::pq4_block +
                    simd::pq4_byte(i % simd::pq4_block)) {}

    void set(const uint8_t* code, size_t M);
    void get(uint8_t* code, size_t M) const;
    void copy(const Pq4Slot& from, size_t rows);
};

/// The place of a code that is only read.
inline Pq4Slot read_slot(const uint8_t* blocks, size_t i, size_t rows) {
    return Pq4Slot(const_cast<uint8_t*>(blocks), i, rows);
}

/// What a query sums up for each code, without rounding: factor * <q, centroid
/// k of part m> + plus, at [m * 16 + k]; with zeros for the part that an odd M
/// lacks.
void make_float_tables(
        const Pq4Codes& codes,
        const float* q,
        float factor,
        const float* plus,
        std::vector<float>& tables);

/// The sums of a block of codes.
void sum_block(
        size_t rows,
        const float* tables,
        const uint8_t* block,
        float* sums);

/// The same, rounded so that shuffles add them up.
struct Pq4Tables {
    AlignedVector<uint8_t> entries, arranged;
    float scale = 0; ///< of a sum of entries
    float bias = 0;  ///< what is to be added to it

    /** Tables of factor * <q, the vector of a code>.
     *
     * @param plus  is added for centroid k of part m, at [m * 16 + k]; or null
     */
    void make(
            const Pq4Codes& codes,
            const float* q,
            float factor,
            const float* plus = nullptr);
};

} // namespace faiss_ext
