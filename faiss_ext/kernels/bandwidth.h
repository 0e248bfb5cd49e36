// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** Mean distance from a vector to its neighbor-th nearest other vector.
 *
 * Raginsky and Lazebnik 2009, section 3, use this radius to set the bandwidth
 * and to define the true neighbours in their experiments.
 *
 * The mean is over a sample of max_queries vectors, drawn by the seed without
 * replacement. By default neighbours are searched among all vectors, in time
 * proportional to max_queries n d. With max_points they are searched in a
 * sample of that size, which begins with the queries: this is faster, but the
 * neighbours in a sample are farther than in the whole set.
 *
 * @param l1        L1 distances; Euclidean if false
 * @param n         number of vectors, at least 2
 * @param x         vectors, size n * d
 * @param neighbor  rank of the neighbour, from 1; if there are fewer vectors,
 *                  the last one counts
 * @param max_points  0: all
 */
double mean_neighbor_distance(
        bool l1,
        idx_t n,
        const float* x,
        size_t d,
        int neighbor = 50,
        idx_t max_queries = 1000,
        idx_t max_points = 0,
        int64_t seed = 1234);

#ifndef SWIG
/// The same for vectors that may be sparse, without dense copies. It is the
/// same for sparse and dense vectors, up to rounding.
double mean_neighbor_distance(
        bool l1,
        const VectorBatch& x,
        int neighbor = 50,
        idx_t max_queries = 1000,
        idx_t max_points = 0,
        int64_t seed = 1234);
#endif

} // namespace faiss_ext
