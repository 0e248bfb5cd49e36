// SPDX-License-Identifier: MIT
// Hamming distances between given and stored codes, as scores.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/prefetch.h"
#include "core/scratch.h"
#include "indexes/vertex_scores.h"
#include "simd/hamming_scan.h"

namespace faiss_ext {

/// The floats that hold a code; bytes after the code are 0.
inline size_t floats_of_code(size_t code_size) {
    return (code_size + sizeof(float) - 1) / sizeof(float);
}

inline void copy_code(const uint8_t* code, size_t code_size, float* to) {
    to[floats_of_code(code_size) - 1] = 0;
    std::memcpy(to, code, code_size);
}

struct CodeScores : VertexScores {
    const uint8_t* const codes;
    const size_t code_size;

    CodeScores(const uint8_t* codes, size_t code_size)
            : codes(codes), code_size(code_size) {}

    size_t d() const override {
        return floats_of_code(code_size);
    }

    const uint8_t* code(int32_t vertex) const {
        return codes + size_t(vertex) * code_size;
    }

    void decode(int32_t vertex, float* x) const override {
        copy_code(code(vertex), code_size, x);
    }

    void prefetch(int32_t vertex) const override {
        prefetch_row(code(vertex), code_size);
    }

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            float* scores) const override {
        for (size_t i = 0; i < n; i++) {
            simd::hamming_distances(
                    bytes_of(x + i * d()),
                    m,
                    bytes_of(y),
                    d() * sizeof(float),
                    scores + i * m);
        }
    }

    void operator()(
            const float* x,
            size_t n,
            const int32_t* vertices,
            float* scores) const override {
        constexpr size_t piece = 16, ahead = 32;
        const size_t width = d();
        const Scratch rows(std::min(piece, n) * width);
        for (size_t i = 0; i < std::min(ahead, n); i++) {
            prefetch(vertices[i]);
        }
        for (size_t begin = 0; begin < n; begin += piece) {
            const size_t count = std::min(piece, n - begin);
            for (size_t i = 0; i < count; i++) {
                if (begin + i + ahead < n) {
                    prefetch(vertices[begin + i + ahead]);
                }
                decode(vertices[begin + i], rows.get() + i * width);
            }
            block(1, x, count, rows.get(), scores + begin);
        }
    }

   private:
    static const uint8_t* bytes_of(const float* x) {
        return reinterpret_cast<const uint8_t*>(x);
    }
};

} // namespace faiss_ext
