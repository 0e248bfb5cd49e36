// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
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

    /// A bound of the probability that a pair is missing; 0 if the search was
    /// exact
    double missed = 0;
    /// Pairs whose components were compared
    uint64_t compared = 0;
};

/** Finds pairs of vectors with k(x_i, x_j) >= threshold: all of them, or, with
 * missed > 0 and if this is faster, all but a small share.
 *
 * The kernel must have a Kernel::shared_sum for METRIC_INNER_PRODUCT: jaccard,
 * cosine, normalized(chi2), gaussian and others. It bounds the kernel value by
 * a sum over the columns that both vectors have.
 *
 * Exact search. The rarest columns of each vector are put into inverted lists,
 * only so many that the sum over the others is too small. Vectors that meet in
 * no list are never compared. Partial sums and the weights of the vectors
 * (SharedSum) exclude most of the others, and the kernel compares the remaining
 * ones. This is fast if pairs that reach the threshold share rare columns, as
 * texts do. If columns are frequent, or if the threshold is low, each vector
 * searches the inverted lists of all columns instead, as in IndexSparseKernel.
 * This takes time proportional to the number of all pairs, one to a few
 * nanoseconds for each.
 *
 * Search by bands. b bands of r random samples are drawn of each vector. Only
 * vectors that have all samples of a band in common are compared. A sample of
 * two vectors is the same with a probability p, so that a pair is compared with
 * the probability 1 - (1 - p^r)^b:
 *
 * - jaccard: consistent weighted samples (ConsistentSamplingHash). p is the
 *   kernel value.
 * - cosine: signs of random projections (HyperplaneHash). p is 1 - acos(k) /
 *   pi.
 * - normalized(chi2), normalized(js) and normalized(hellinger): the same for
 *   the roots of the components. sqrt(a b) is at least the term of each of
 *   these kernels, so their value bounds the cosine of the roots.
 * - normalized(intersection): consistent weighted samples, whose p is at least
 *   k^2.
 * - Kernels with a bandwidth, and those that are not normalized: as above, with
 *   the least Jaccard coefficient or cosine that a pair at the threshold can
 *   have, given the weights of the vectors in x. It is k again for histograms
 *   that sum to 1 under chi2, js and hellinger. If it has no positive bound,
 *   the search is exact. For gaussian this happens if vectors are near the
 *   origin.
 *
 * Of all r, that one is taken with which the search is expected to be fastest,
 * by the similarities of random pairs, and the smallest b with which pairs at
 * the threshold are missed with a probability of at most `missed`. Pairs above
 * it are missed less often. So, in expectation over seeds, at most that share
 * of the pairs is missing. Pairs that are found have the same values as those
 * of an exact search, and no pair below the threshold is found. Time grows less
 * than with the number of all pairs if most of them are far below the
 * threshold.
 *
 * Bands are taken if the exact search is estimated to take more than a tenth of
 * a second on one thread, and more than twice as long as bands. Estimates come
 * from a sample of the vectors and count steps, so that results depend on the
 * vectors and the seed alone.
 *
 * Equal vectors are compared once, and never missed. Their value is
 * Kernel::self_values.
 *
 * Memory: at most 45 bytes a component, 64 bytes a vector and another 4 for
 * each thread, and 44 bytes a pair. Bands take 8 bytes a vector and band, at
 * most 4 KB a vector, and no memory for inverted lists.
 *
 * Throws a faiss::FaissException if the kernel has no such sum, if its
 * bandwidth is not set, if the kernel is not defined on a vector, or if the
 * threshold is not positive. A kernel with k(x, x) = 1 takes thresholds of at
 * most 1.
 *
 * @param missed  the largest probability with which a pair may be missed, from
 *                0 (exact search) to below 1
 * @param seed    of the samples, >= 0
 */
NearDuplicates near_duplicates(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold,
        double missed = 0,
        int64_t seed = 1234);

/** The same for packed bits, as vectors of zeros and ones. The kernel jaccard
 * is the Tanimoto coefficient.
 *
 * If all bits are frequent, exact search scans the codes by Hamming distance
 * instead of inverted lists, and compares only vectors whose numbers of ones
 * are similar enough.
 *
 * Takes another 8 bytes for each bit that is 1, and the size of the codes.
 *
 * @param d      bits of a vector, a positive multiple of 8
 * @param codes  size n * d / 8
 */
NearDuplicates near_duplicates(
        idx_t n,
        idx_t d,
        const uint8_t* codes,
        const Kernel& kernel,
        float threshold,
        double missed = 0,
        int64_t seed = 1234);

/** Divides vectors into groups. Two vectors are in one group if a chain of
 * pairs that reach the threshold connects them, and near_duplicates finds these
 * pairs.
 *
 * Returns for each vector the first vector of its group. Takes the same
 * arguments as near_duplicates, and only the memory that does not depend on the
 * number of pairs. Pairs that a chain already connects are not compared.
 *
 * With missed > 0, a group may be divided if a pair is missed and no other
 * chain connects the two vectors.
 */
std::vector<idx_t> near_duplicate_groups(
        const SparseVectors& x,
        const Kernel& kernel,
        float threshold,
        double missed = 0,
        int64_t seed = 1234);

/// The same for packed bits.
std::vector<idx_t> near_duplicate_groups(
        idx_t n,
        idx_t d,
        const uint8_t* codes,
        const Kernel& kernel,
        float threshold,
        double missed = 0,
        int64_t seed = 1234);

} // namespace faiss_ext
