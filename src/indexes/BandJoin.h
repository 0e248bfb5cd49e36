// SPDX-License-Identifier: MIT
// Finds the pairs of rows that share a band of random samples.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "indexes/RowJoin.h"

namespace faiss_ext {

/// How many random samples are drawn of each row.
struct Bands {
    int number = 0;    ///< bands
    int samples = 0;   ///< of each band
    double missed = 1; ///< at most this share of the needed pairs has no band
    double time = 0;   ///< estimated, in units of RowJoin
};

/** The probability that a random sample of two rows is the same.
 *
 * If terms are minima, samples are consistent weighted samples
 * (ConsistentSamplingHash): the probability is the Jaccard coefficient.
 * Otherwise they are signs of Gaussian projections (HyperplaneHash): it is 1 -
 * angle / pi.
 *
 * @param similarity  see RowPairs::similarity
 */
double probability_of_equal_samples(bool has_minima, double similarity);

/** Chooses the bands that take the least time.
 *
 * A pair with the probability p shares one of b bands of r samples with the
 * probability 1 - (1 - p^r)^b. For each r, b is the smallest number with which
 * a pair of the least similarity that reaches the threshold is missed with a
 * probability of at most `missed`. The similarities of random pairs give the
 * expected number of comparisons.
 *
 * Returns nothing if the least similarity has no lower bound.
 */
std::optional<Bands> choose_bands(
        const RowPairs& pairs,
        double missed,
        int64_t seed);

/** Buckets of rows with the same samples in a band.
 *
 * Memory: 8 bytes a row and band.
 */
class BandJoin : public RowJoin {
   public:
    BandJoin(const RowPairs& pairs, const Bands& bands, int64_t seed);

    /// Finds only rows that share a bucket with the row.
    void find(size_t row, State& state) const override;

   private:
    size_t num_bands;
    // of each band, for each row:
    std::vector<uint32_t> order;   ///< rows, bucket by bucket, then ascending
    std::vector<uint32_t> buckets; ///< where the bucket of a row begins

    void set_buckets(size_t band);
};

} // namespace faiss_ext
