// SPDX-License-Identifier: MIT
#include "indexes/nibble_codes.h"

#include <algorithm>
#include <functional>

#include "core/progress.h"
#include "core/scratch.h"
#include "indexes/k_means.h"

namespace faiss_ext {

void NibbleCodes::encode(const float* x, uint8_t* code) const {
    for (size_t m = 0; m < M; m++) {
        float distances[nibble_numbers] = {};
        for (size_t j = m * size; j < (m + 1) * size; j++) {
            const float* row = codebook + j * nibble_numbers;
            for (size_t k = 0; k < nibble_numbers; k++) {
                distances[k] += (x[j] - row[k]) * (x[j] - row[k]);
            }
        }
        code[m] = uint8_t(
                std::min_element(distances, distances + nibble_numbers) -
                distances);
    }
}

void NibbleCodes::decode(const uint8_t* code, float* x) const {
    for (size_t i = 0; i < d; i++) {
        x[i] = codebook[i * nibble_numbers + code[i / size]];
    }
}

AlignedVector<float> NibbleCodes::squares() const {
    AlignedVector<float> sums(M * nibble_numbers);
    for (size_t j = 0; j < d; j++) {
        for (size_t k = 0; k < nibble_numbers; k++) {
            const float component = codebook[j * nibble_numbers + k];
            sums[j / size * nibble_numbers + k] += component * component;
        }
    }
    return sums;
}

AlignedVector<float> train_nibble_codebook(
        size_t d,
        size_t M,
        idx_t n,
        const float* x,
        uint64_t seed) {
    constexpr int iterations = 25;
    const size_t size = d / M;
    AlignedVector<float> codebook(d * nibble_numbers);
    std::vector<float> part(n * size);
    Progress progress("codebooks", M);
    for (size_t m = 0; m < M; m++) {
        for (idx_t i = 0; i < n; i++) {
            std::copy_n(x + i * d + m * size, size, &part[i * size]);
        }
        const auto centroids = k_means(
                size, nibble_numbers, n, part.data(), iterations, seed + m);
        for (size_t k = 0; k < nibble_numbers; k++) {
            for (size_t j = 0; j < size; j++) {
                codebook[(m * size + j) * nibble_numbers + k] =
                        centroids[k * size + j];
            }
        }
        progress.at(m + 1);
    }
    return codebook;
}

void NibbleSlot::set(const uint8_t* code, size_t M) {
    for (size_t m = 0; m < M; m += 2) {
        const uint8_t high = m + 1 < M ? code[m + 1] : uint8_t(0);
        bytes[m / 2 * simd::nibble_block] = uint8_t(code[m] | high << 4);
    }
}

void NibbleSlot::get(uint8_t* code, size_t M) const {
    for (size_t m = 0; m < M; m++) {
        code[m] = bytes[m / 2 * simd::nibble_block] >> m % 2 * 4 & 15;
    }
}

void NibbleSlot::copy(const NibbleSlot& from, size_t rows) {
    for (size_t r = 0; r < rows; r++) {
        bytes[r * simd::nibble_block] = from.bytes[r * simd::nibble_block];
    }
}

void make_float_tables(
        const NibbleCodes& codes,
        const float* q,
        float factor,
        const float* plus,
        std::vector<float>& tables) {
    tables.assign(codes.rows * 2 * nibble_numbers, 0);
    for (size_t j = 0; j < codes.d; j++) {
        float* table = &tables[j / codes.size * nibble_numbers];
        for (size_t k = 0; k < nibble_numbers; k++) {
            table[k] += factor * q[j] * codes.codebook[j * nibble_numbers + k];
        }
    }
    std::transform(
            plus,
            plus + codes.M * nibble_numbers,
            tables.begin(),
            tables.begin(),
            std::plus<>());
}

void sum_block(
        size_t rows,
        const float* tables,
        const uint8_t* block,
        float* sums) {
    std::fill_n(sums, simd::nibble_block, 0.0f);
    for (size_t r = 0; r < rows; r++) {
        const float* low = tables + 2 * r * nibble_numbers;
        const float* high = low + nibble_numbers;
        const uint8_t* row = block + r * simd::nibble_block;
        for (size_t i = 0; i < simd::nibble_block; i++) {
            const uint8_t numbers = row[simd::nibble_byte(i)];
            sums[i] += low[numbers & 15] + high[numbers >> 4];
        }
    }
}

void NibbleTables::make(
        const NibbleCodes& codes,
        const float* q,
        float factor,
        const float* plus) {
    const Scratch scratch(codes.M * (nibble_numbers + 2));
    // zeros for the part that an odd M lacks
    entries.assign(codes.rows * 2 * nibble_numbers, 0);
    simd::make_nibble_tables(
            codes.M,
            codes.size,
            codes.codebook,
            q,
            factor,
            plus,
            entries.data(),
            scale,
            bias,
            scratch.get());
    arranged.resize(simd::nibble_tables_size(codes.rows));
    simd::arrange_nibble_tables(codes.rows, entries.data(), arranged.data());
}

} // namespace faiss_ext
