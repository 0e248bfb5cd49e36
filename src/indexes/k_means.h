// SPDX-License-Identifier: MIT
// k-means clustering, and comparison of vectors with centroids.

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/compat.h>

#include "core/scratch.h"

namespace faiss_ext {

/// Centroids, rounded to bytes.
struct CentroidBytes {
    AlignedVector<uint8_t> panels; ///< as in simd/byte_products.h
    AlignedVector<float> rows;     ///< the centroids as they are
    std::vector<float> zeros;      ///< instead of half_squares
    float scale = 0;               ///< of the bytes
    float most_length = 0, most_lost = 0;
};

/** Centroids, packed for comparison with vectors.
 *
 * The score of a centroid c is half the squared distance to the vector x, less
 * |x|^2 / 2, or else the negated product <x, c>. All its operations are in
 * float.
 *
 * If there are many centroids, bytes serve to find those with small scores: x
 * and c are rounded to x' and c', and <x', c'> deviates from <x, c> by at most
 *
 *     |x| |c - c'| + |x - x'| |c'|.
 *
 * Only centroids whose scores may be among the smallest by this bound are
 * compared as floats. So the results are the same as without bytes.
 */
struct PackedCentroids {
    size_t d, count;

    /// centroids: size count * d. Throws if a squared length overflows.
    PackedCentroids(size_t d, size_t count, const float* centroids);

    /// Estimates of the scores of all centroids for some vectors.
    struct Estimates {
        const float* x;
        bool by_distance; ///< or by products
        Scratch values;   ///< one row of `count` for each vector
        /// An estimate deviates from the score by up to half of this.
        std::vector<float> slack;

        /// Computes them on the calling thread. x: in use as long as this
        Estimates(
                const PackedCentroids& centroids,
                idx_t n,
                const float* x,
                bool by_distance);
    };

    /// Finds the k centroids with the smallest scores for vector i of the
    /// estimates. The smallest comes first, and equal ones are sorted by
    /// number. work: any size and content
    void smallest(
            const Estimates& estimates,
            idx_t i,
            size_t k,
            std::vector<std::pair<float, uint32_t>>& found,
            std::vector<float>& work) const;

    /// Returns the centroid, or null if there are no bytes.
    const float* row(size_t c) const {
        return bytes ? &bytes->rows[c * d] : nullptr;
    }

    /// Finds the nearest centroid of each vector, on all threads. Of centroids
    /// at equal distances the first is taken.
    std::vector<idx_t> nearest(idx_t n, const float* x) const;

   private:
    /// half of the squared lengths; zeros up to whole panels
    std::vector<float> half_squares;
    AlignedVector<float> panels; ///< as in simd/projection.h; or bytes
    std::optional<CentroidBytes> bytes;

    void pack_bytes(const float* centroids);
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
