// Random matrices.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/projections/AnyProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/random_streams.h"

namespace faiss_ext {

/// A matrix of independent random numbers, the same for any number of threads.
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

/// Order of Walsh-Hadamard transforms for vectors of d components. Smaller ones
/// than 256 make rows of few different values, zero among them, that are far
/// from Gaussian.
inline int hadamard_order(int d) {
    return std::max(256, int(std::bit_ceil(unsigned(d))));
}

/// +-1, n times; those of a row, whatever n is, begin alike.
inline void random_signs(int64_t seed, int64_t row, size_t n, float* signs) {
    std::mt19937_64 rng = row_rng(seed, row, stream_signs);
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++, bits >>= 1) {
        bits = i % 64 == 0 ? rng() : bits;
        signs[i] = bits & 1 ? 1.0f : -1.0f;
    }
}

/// Throws unless all are +-1.
template <class Vector>
void check_signs(faiss::IOReader* f, const Vector& signs) {
    for (float s : signs) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                s == 1 || s == -1,
                "%s is damaged: a sign of a projection is %g",
                f->name.c_str(),
                s);
    }
}

/// Length of a Gaussian vector.
inline double gaussian_length(int64_t seed, int64_t row, int degrees) {
    std::mt19937_64 rng = row_rng(seed, row, stream_lengths);
    return std::sqrt(std::chi_squared_distribution<double>(degrees)(rng));
}

/// Random hyperplanes for angles: normals from N(0, I), structured or dense.
inline AnyProjection gaussian_projection(
        bool structured,
        int d_in,
        int d_out,
        int64_t seed) {
    if (!structured) {
        return random_projection<std::normal_distribution<double>>(
                d_in, d_out, seed);
    }
    std::vector<double> lengths;
    for (int j = 0; j < d_out; j++) {
        lengths.push_back(
                gaussian_length(seed, j, StructuredProjection::order(d_in)));
    }
    return StructuredProjection(d_in, d_out, seed, lengths);
}

} // namespace faiss_ext
