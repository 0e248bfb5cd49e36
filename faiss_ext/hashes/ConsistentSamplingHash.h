// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/** CWS: binary codes for histograms, bags of words and sets under the
 * generalised Jaccard kernel (JaccardKernel), without training.
 *
 * The method is one-bit consistent weighted sampling. For each bit, and every
 * component k, r and c are drawn from Gamma(2, 1), and beta uniformly from [0,
 * 1). The sample of a vector x is the component k with the smallest
 *
 *     a_k = c / (y_k exp(r)),   y_k = exp(r (t_k - beta)),
 *     t_k = floor(log(x_k) / r + beta),      over components x_k > 0,
 *
 * together with its t_k. Two vectors have the same sample with probability
 *
 *     J(x, y) = sum min(x_k, y_k) / sum max(x_k, y_k).
 *
 * The bit is a random function of the sample. Each bit therefore differs with
 * probability (1 - J) / 2, and bits are independent.
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
 * The time to compute a code is proportional to the number of nonzero
 * components and to the number of bits. The random numbers take 12 d nbits
 * bytes. Margins are 1 and -1.
 *
 * Source: S. Ioffe, Improved consistent sampling, weighted minhash and L1
 * sketching, ICDM 2010, algorithm 1; bits of the samples: P. Li and A. C.
 * Konig, b-bit minwise hashing, WWW 2010.
 */
struct ConsistentSamplingHash : KernelHash {
    int64_t seed = 1234;

    // The number of component k and bit j is at [k * nbits + j].
    AlignedVector<float> rate;  ///< r
    AlignedVector<float> shift; ///< beta
    AlignedVector<float> cost;  ///< log(c)

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
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    bool has_independent_bits() const override {
        return true;
    }
};

} // namespace faiss_ext
