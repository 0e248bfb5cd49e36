// Random matrices, and what hashes by hyperplanes have in common.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/AnyProjection.h>
#include <faiss_ext/DenseProjection.h>
#include <faiss_ext/Spec.h>
#include <faiss_ext/StructuredProjection.h>
#include <faiss_ext/compat.h>

#include "errors.h"
#include "parallel.h"
#include "sample.h"

namespace faiss_ext {

/// Streams of random numbers, apart for what they are used for.
enum {
    stream_rows = 0,
    stream_w = 1,
    stream_v = 2,
    stream_signs = 3,
    stream_pairs = 4,
    stream_offsets = 5,
    stream_shuffle = 6,
    stream_lengths = 7,
};

/// Random numbers of their own for each row and stream.
inline std::mt19937_64 row_rng(int64_t seed, int64_t row, int stream) {
    std::seed_seq sequence{seed & 0xffffffff, seed >> 32, row, int64_t(stream)};
    return std::mt19937_64(sequence);
}

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

/// The choice between structured and dense projections in a string.
inline bool get_structured(Spec& spec) {
    return spec.get_word("proj", "structured", {"structured", "dense"}) ==
            "structured";
}

/** Mean of what features(x_i, out) makes of vectors, from a sample of at most
 * 65,536 of them; the same for any number of threads.
 *
 * @param x     size n * d
 * @param size  of the features of a vector, and of the result
 */
template <class Features>
std::vector<double> mean_of_features(
        idx_t n,
        const float* x,
        size_t d,
        int64_t seed,
        size_t size,
        Features&& features) {
    constexpr idx_t max_vectors = 65536, block = 1024;
    const std::vector<idx_t> ids = sample_ids(n, max_vectors, seed);
    const idx_t m = ids.size(), nblocks = (m + block - 1) / block;
    std::vector<double> sums(nblocks * size);
    parallel_blocks(nblocks, 1, [&](idx_t b, idx_t) {
        std::vector<double> one(size);
        for (idx_t i = b * block; i < std::min(m, (b + 1) * block); i++) {
            features(x + ids[i] * d, one.data());
            for (size_t k = 0; k < size; k++) {
                sums[b * size + k] += one[k];
            }
        }
    });
    std::vector<double> mean(size);
    for (size_t k = 0; k < size; k++) {
        for (idx_t b = 0; b < nblocks; b++) {
            mean[k] += sums[b * size + k];
        }
        mean[k] /= double(m);
    }
    return mean;
}

/// Throws unless a projection fits a hash: fields may have been set by hand.
inline void check_projection(const Projection* projection, int d, int nbits) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            projection && projection->d_in == d && projection->d_out == nbits,
            "the hash has no projection from %d dimensions to %d bits; was it trained?",
            d,
            nbits);
}

/// Subtracts the thresholds, if there are any, from the margins of n vectors.
inline void subtract_thresholds(
        const std::vector<float>& threshold,
        size_t n,
        float* margins) {
    const size_t nbits = threshold.size();
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < nbits; j++) {
            margins[i * nbits + j] -= threshold[j];
        }
    }
}

} // namespace faiss_ext
