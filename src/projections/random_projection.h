// SPDX-License-Identifier: MIT
// Random projection matrices.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/projections/DenseProjection.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/random_streams.h"

namespace faiss_ext {

/// Makes a matrix of independent random numbers. It does not depend on the
/// number of threads.
template <class Distribution>
DenseProjection random_projection(int d_in, int d_out, int64_t seed) {
    DenseProjection projection(d_in, d_out);
    parallel_blocks(d_out, 1, [&](idx_t begin, idx_t end) {
        std::vector<float> row(d_in);
        for (idx_t j = begin; j < end; j++) {
            std::mt19937_64 rng = row_rng(seed, j, stream_rows);
            Distribution distribution;
            for (float& v : row) {
                v = float(distribution(rng));
            }
            projection.set_row(int(j), row.data());
        }
    });
    return projection;
}

/// Returns the order of the Walsh-Hadamard transforms for vectors of d
/// components. With orders below 256, rows would have few different values,
/// zero among them, and be far from Gaussian.
inline int hadamard_order(int d) {
    return std::max(256, int(std::bit_ceil(unsigned(d))));
}

/// Draws n random signs, +-1. A row begins with the same signs for every n.
inline void random_signs(int64_t seed, int64_t row, size_t n, float* signs) {
    std::mt19937_64 rng = row_rng(seed, row, stream_signs);
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++, bits >>= 1) {
        bits = i % 64 == 0 ? rng() : bits;
        signs[i] = bits & 1 ? 1.0f : -1.0f;
    }
}

/// Throws unless all signs are +-1.
template <class Vector>
void check_signs(const Vector& signs) {
    for (float s : signs) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                s == 1 || s == -1,
                "a sign of a projection is %g, expected 1 or -1",
                s);
    }
}

/// Draws the length of a Gaussian vector.
inline double gaussian_length(int64_t seed, int64_t row, int degrees) {
    std::mt19937_64 rng = row_rng(seed, row, stream_lengths);
    return std::sqrt(std::chi_squared_distribution<double>(degrees)(rng));
}

} // namespace faiss_ext
