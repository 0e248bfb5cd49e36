// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// Pairs of vectors whose kernel values reach a threshold.
struct NearDuplicates {
    /// The two vectors of each pair, i < j, one pair after the other; ascending
    std::vector<idx_t> pairs;
    std::vector<float> values; ///< k(x_i, x_j) of each pair
};

/** Finds all pairs of vectors with k(x_i, x_j) >= threshold. None is missed.
 *
 * The kernel must have a Kernel::shared_sum for METRIC_INNER_PRODUCT: jaccard,
 * cosine, normalized(chi2), gaussian and others. It bounds the kernel value by
 * a sum over the columns that both vectors have. The rarest columns of each
 * vector are put into inverted lists, only so many that the sum over the others
 * is too small. Vectors that meet in no list are never compared. Partial sums
 * and the weights of the vectors (SharedSum) exclude most of the others, and
 * the kernel compares the remaining ones.
 *
 * This is fast if pairs that reach the threshold share rare columns, as texts
 * do. If all columns are frequent, or if the threshold is low, it takes time
 * proportional to the number of all pairs.
 *
 * Equal vectors are compared once. Their value is Kernel::self_values.
 *
 * Memory: at most 40 bytes a component, 64 bytes a vector and another 4 for
 * each thread, and 44 bytes a pair.
 *
 * Throws a faiss::FaissException if the kernel has no such sum, if its
 * bandwidth is not set, if the kernel is not defined on a vector, or if the
 * threshold is not positive. A kernel with k(x, x) = 1 takes thresholds of at
 * most 1.
 */
NearDuplicates near_duplicates(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold);

/** Divides vectors into groups. Two vectors are in one group if a chain of
 * near_duplicates connects them.
 *
 * Returns for each vector the first vector of its group. Takes the same
 * arguments as near_duplicates, and only the memory that does not depend on the
 * number of pairs. Pairs that a chain already connects are not compared.
 */
std::vector<idx_t> near_duplicate_groups(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold);

} // namespace faiss_ext
