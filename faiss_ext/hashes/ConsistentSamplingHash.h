// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/** CWS: binary codes for histograms, bags of words and sets under the
 * generalised Jaccard kernel (JaccardKernel), without training.
 *
 * The method is one-bit consistent weighted sampling. For each bit, points (k,
 * w, r) are scattered evenly over all components k, weights w > 0 and ranks r >
 * 0: they form a Poisson process. The sample of a vector x is the point with
 * the smallest rank out of all points with w < x_k.
 *
 * Out of the points below x or y, the one with the smallest rank is equally
 * likely to be anywhere. If it is below both vectors, it is the sample of both.
 * Otherwise the samples differ. So two vectors have the same sample with
 * probability
 *
 *     J(x, y) = sum min(x_k, y_k) / sum max(x_k, y_k).
 *
 * The bit is a random function of the sample, and therefore differs with
 * probability (1 - J) / 2. The bits are independent, because those points of a
 * Poisson process that are assigned to different bits at random form
 * independent Poisson processes.
 *
 *     auto hash = kernel_hash_factory(d, "CWS512");
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, counts, codes.data());
 *     double jaccard = hash->kernel_estimate(64); // 0.75
 *
 * Strings: `CWS512`, `CWS512(seed=3)`.
 *
 * The scale matters: J(x, 2 x) = 1/2. On vectors of zeros and ones the method
 * is minwise hashing. A row of zeros has a code of its own.
 *
 * A hash takes a few bytes at any dimension. All random numbers are hashes of
 * the seed, the component and the place, so that only the points of small rank
 * are generated. A code of b bits takes about b log b points, and a step for
 * each component that is not 0. Other components take no time in sparse
 * vectors. Weights may have any size that a float can express. Codes do not
 * depend on the instruction set. Margins are 1 and -1.
 *
 * Sources: S. Ioffe, Improved consistent sampling, weighted minhash and L1
 * sketching, ICDM 2010; points of a Poisson process: T. Christiani,
 * DartMinHash: fast sketching for weighted sets, arXiv:2005.11547, 2020; bits
 * of the samples: P. Li and A. C. Konig, b-bit minwise hashing, WWW 2010.
 */
struct ConsistentSamplingHash : KernelHash {
    int64_t seed = 1234;

    ConsistentSamplingHash(int d, int nbits, int64_t seed = 1234);
    ConsistentSamplingHash() = default;

    /// Expected Hamming distance in bits: nbits (1 - kernel_value) / 2 for
    /// kernel_value from 0 to 1.
    double expected_hamming(double kernel_value) const override;
    double least_kernel_value() const override; ///< 0
    double kernel_estimate(double hamming) const override;

    /// Both bounds are the expected distance itself.
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    /// The Jaccard kernel J(x, y); 1 for two rows of zeros.
    double kernel_value(const float* x, const float* y) const override;

    /// The same as kernel_estimate(distance), since the margins of queries are
    /// 1 and -1.
    double asymmetric_kernel_estimate(double distance) const override;

    void margins(size_t n, const float* x, float* margins) const override;
    void map_sparse(const SparseVectors& x, float* xt) const override;
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void fields(FieldVisitor& v) const override;
    void init() override;

   protected:
    bool has_independent_bits() const override {
        return true;
    }

   private:
    /// Computes the margins of a vector with `count` components that are not 0.
    /// `work` is memory that is kept for the next call.
    void margins_of_components(
            size_t count,
            const int32_t* components,
            const float* weights,
            float* margins,
            std::vector<uint32_t>& work) const;
};

} // namespace faiss_ext
