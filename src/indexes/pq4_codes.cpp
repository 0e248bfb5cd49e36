// SPDX-License-Identifier: MIT
#include "indexes/pq4_codes.h"

#include <algorithm>
#include <functional>

#include "core/progress.h"
#include "core/scratch.h"
#include "indexes/k_means.h"

namespace faiss_ext {

void Pq4Codes::encode(const float* x, uint8_t* code) const {
    for (size_t m = 0; m < M; m++) {
        float distances[pq4_numbers] = {};
        for (size_t j = m * size; j < (m + 1) * size; j++) {
            const float* row = codebook + j * pq4_numbers;
            for (size_t k = 0; k < pq4_numbers; k++) {
                distances[k] += (x[j] - row[k]) * (x[j] - row[k]);
            }
        }
        code[m] =
                uint8_t(std::min_element(distances, distances + pq4_numbers) -
                        distances);
    }
}

void Pq4Codes::decode(const uint8_t* code, float* x) const {
    for (size_t i = 0; i < d; i++) {
        x[i] = codebook[i * pq4_numbers + code[i / size]];
    }
}

AlignedVector<float> Pq4Codes::squares() const {
    AlignedVector<float> sums(M * pq4_numbers);
    for (size_t j = 0; j < d; j++) {
        for (size_t k = 0; k < pq4_numbers; k++) {
            const float component = codebook[j * pq4_numbers + k];
            sums[j / size * pq4_numbers + k] += component * component;
        }
    }
    return sums;
}

AlignedVector<float> train_pq4_codebook(
        size_t d,
        size_t M,
        idx_t n,
        const float* x,
        uint64_t seed) {
    constexpr int iterations = 25;
    const size_t size = d / M;
    AlignedVector<float> codebook(d * pq4_numbers);
    std::vector<float> part(n * size);
    Progress progress("codebooks", M);
    for (size_t m = 0; m < M; m++) {
        for (idx_t i = 0; i < n; i++) {
            std::copy_n(x + i * d + m * size, size, &part[i * size]);
        }
        const auto centroids = k_means(
                size, pq4_numbers, n, part.data(), iterations, seed + m);
        for (size_t k = 0; k < pq4_numbers; k++) {
            for (size_t j = 0; j < size; j++) {
                codebook[(m * size + j) * pq4_numbers + k] =
                        centroids[k * size + j];
            }
        }
        progress.at(m + 1);
    }
    return codebook;
}

void Pq4Slot::set(const uint8_t* code, size_t M) {
    for (size_t m = 0; m < M; m += 2) {
        const uint8_t high = m + 1 < M ? code[m + 1] : uint8_t(0);
        bytes[m / 2 * simd::pq4_block] = uint8_t(code[m] | high << 4);
    }
}

void Pq4Slot::get(uint8_t* code, size_t M) const {
    for (size_t m = 0; m < M; m++) {
        code[m] = bytes[m / 2 * simd::pq4_block] >> m % 2 * 4 & 15;
    }
}

void Pq4Slot::copy(const Pq4Slot& from, size_t rows) {
    for (size_t r = 0; r < rows; r++) {
        bytes[r * simd::pq4_block] = from.bytes[r * simd::pq4_block];
    }
}

void make_float_tables(
        const Pq4Codes& codes,
        const float* q,
        float factor,
        const float* plus,
        std::vector<float>& tables) {
    tables.assign(codes.rows * 2 * pq4_numbers, 0);
    for (size_t j = 0; j < codes.d; j++) {
        float* table = &tables[j / codes.size * pq4_numbers];
        for (size_t k = 0; k < pq4_numbers; k++) {
            table[k] += factor * q[j] * codes.codebook[j * pq4_numbers + k];
        }
    }
    std::transform(
            plus,
            plus + codes.M * pq4_numbers,
            tables.begin(),
            tables.begin(),
            std::plus<>());
}

void sum_block(
        size_t rows,
        const float* tables,
        const uint8_t* block,
        float* sums) {
    std::fill_n(sums, simd::pq4_block, 0.0f);
    for (size_t r = 0; r < rows; r++) {
        const float* low = tables + 2 * r * pq4_numbers;
        const float* high = low + pq4_numbers;
        const uint8_t* row = block + r * simd::pq4_block;
        for (size_t i = 0; i < simd::pq4_block; i++) {
            const uint8_t numbers = row[simd::pq4_byte(i)];
            sums[i] += low[numbers & 15] + high[numbers >> 4];
        }
    }
}

void Pq4Tables::make(
        const Pq4Codes& codes,
        const float* q,
        float factor,
        const float* plus) {
    const Scratch scratch(codes.M * (pq4_numbers + 2));
    // if M is odd, the missing part is filled with zeros
    entries.assign(codes.rows * 2 * pq4_numbers, 0);
    simd::make_pq4_tables(
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
    arranged.resize(simd::pq4_tables_size(codes.rows));
    simd::arrange_pq4_tables(codes.rows, entries.data(), arranged.data());
}

} // namespace faiss_ext
