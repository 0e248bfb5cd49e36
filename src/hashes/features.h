// What hashes by hyperplanes have in common: mean features, projections,
// thresholds.

#pragma once

#include <algorithm>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/projections/Projection.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"

namespace faiss_ext {

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
