// SPDX-License-Identifier: MIT
// k-means clustering, and comparison of vectors with centroids.

#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Centroids, packed for matrix products.
struct PackedCentroids {
    size_t d, count;
    AlignedVector<float> panels;     ///< as in simd/projection.h
    std::vector<float> half_squares; ///< half of the squared lengths

    /// centroids: size count * d. Throws if a squared length overflows.
    PackedCentroids(size_t d, size_t count, const float* centroids);

    /// Computes inner products on the calling thread. y: size n * count
    void products(idx_t n, const float* x, float* y) const;

    /// Computes half the squared distances to the centroids, less |x|^2 / 2, on
    /// the calling thread. y: size n * count
    void half_distances(idx_t n, const float* x, float* y) const;

    /// Finds the nearest centroid of each vector, on all threads. Of centroids
    /// at equal distances the first is taken.
    std::vector<idx_t> nearest(idx_t n, const float* x) const;
};

/** Computes centroids by Lloyd's algorithm, starting from k random vectors. An
 * empty cluster takes half of the largest one. The result does not depend on
 * the number of threads.
 *
 * @param n        at least k
 * @param verbose  whether to print progress
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
