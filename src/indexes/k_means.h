// SPDX-License-Identifier: MIT
// k-means, and the comparison of vectors with centroids.

#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Centroids, packed for products with them.
struct PackedCentroids {
    size_t d, count;
    AlignedVector<float> panels;     ///< as in simd/projection.h
    std::vector<float> half_squares; ///< half their squared lengths

    /// centroids: size count * d. Throws if a squared length overflows.
    PackedCentroids(size_t d, size_t count, const float* centroids);

    /// Inner products, on the calling thread. y: size n * count
    void products(idx_t n, const float* x, float* y) const;

    /// Half the squared distances to the centroids, but for |x|^2 / 2, on the
    /// calling thread. y: size n * count
    void half_distances(idx_t n, const float* x, float* y) const;

    /// The nearest centroid of each vector, on all threads; of those at equal
    /// distances the first.
    std::vector<idx_t> nearest(idx_t n, const float* x) const;
};

/** Centroids by Lloyd's algorithm, begun at k of the vectors chosen at random.
 * An empty cluster takes half of the largest one. The result does not depend on
 * the number of threads.
 *
 * @param n        from k
 * @param verbose  prints how far it is
 * @return         size k * d
 */
AlignedVector<float> k_means(
        size_t d,
        size_t k,
        idx_t n,
        const float* x,
        int iterations,
        uint64_t seed,
        bool verbose = false);

} // namespace faiss_ext
