// Random matrices, and what hashes by hyperplanes have in common.

#pragma once

#include <random>
#include <vector>

#include <faiss_ext/DenseProjection.h>
#include <faiss_ext/compat.h>

#include "parallel.h"
#include "sample.h"

namespace faiss_ext {

/// A matrix of independent random numbers, the same for any number of threads.
template <class Distribution>
DenseProjection random_projection(int d_in, int d_out, int64_t seed) {
    DenseProjection projection(d_in, d_out);
    parallel_blocks(d_out, 1, [&](idx_t begin, idx_t end) {
        std::vector<float> row(d_in);
        for (idx_t j = begin; j < end; j++) {
            std::seed_seq sequence{seed & 0xffffffff, seed >> 32, int64_t(j)};
            std::mt19937_64 rng(sequence);
            Distribution distribution;
            for (float& v : row) {
                v = float(distribution(rng));
            }
            projection.set_row(int(j), row.data());
        }
    });
    return projection;
}

/** Mean of what features(n, x, out) makes of vectors, from a sample of at most
 * 65,536 of them; the same for any number of threads.
 *
 * @param x     size n * d
 * @param mean  its size is that of the features of a vector
 */
template <class Features>
void mean_of_features(
        idx_t n,
        const float* x,
        size_t d,
        int64_t seed,
        std::vector<float>& mean,
        Features&& features) {
    constexpr idx_t max_vectors = 65536, block = 1024;
    const std::vector<idx_t> ids = sample_ids(n, max_vectors, seed);
    const idx_t m = ids.size(), nblocks = (m + block - 1) / block;
    const size_t size = mean.size();
    std::vector<double> sums(nblocks * size);
    parallel_blocks(nblocks, 1, [&](idx_t b, idx_t) {
        std::vector<float> one(size);
        for (idx_t i = b * block; i < std::min(m, (b + 1) * block); i++) {
            features(1, x + ids[i] * d, one.data());
            for (size_t k = 0; k < size; k++) {
                sums[b * size + k] += one[k];
            }
        }
    });
    for (size_t k = 0; k < size; k++) {
        double sum = 0;
        for (idx_t b = 0; b < nblocks; b++) {
            sum += sums[b * size + k];
        }
        mean[k] = float(sum / double(m));
    }
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
