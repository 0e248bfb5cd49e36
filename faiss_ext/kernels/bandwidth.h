#pragma once

#include <cstddef>
#include <cstdint>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** Mean distance from a vector to its neighbor-th nearest other vector.
 *
 * The radius by which Raginsky and Lazebnik 2009, section 3, set the bandwidth
 * and the truth of their experiments. It is measured on a sample: up to
 * max_points vectors, the first max_queries of which are the queries, drawn
 * without replacement by the seed. It depends on the number of vectors: a
 * sample finds farther neighbours than the whole set.
 *
 * @param l1        L1 distances; Euclidean if false
 * @param n         number of vectors, at least 2
 * @param x         vectors, size n * d
 * @param neighbor  rank of the neighbour, from 1; the last one counts where
 *                  there are fewer
 */
double mean_neighbor_distance(
        bool l1,
        idx_t n,
        const float* x,
        size_t d,
        int neighbor = 50,
        idx_t max_queries = 1000,
        idx_t max_points = 65536,
        int64_t seed = 1234);

} // namespace faiss_ext
