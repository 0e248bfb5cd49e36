// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** SCR: binary codes for histograms under the chi2 kernel, without a map and
 * without training.
 *
 * The method is sign Cauchy random projections. A bit of x, whose components
 * are >= 0, is 1 if
 *
 *     sum_i c_i x_i >= 0,  c_i independent Cauchy(0, 1).
 *
 * Two vectors differ in a bit with a probability of about acos(k) / pi, where k
 * = sum 2 x y / (x + y) of the L1-normalised vectors. This is an approximation,
 * good to 0.035, not an identity.
 *
 *     auto hash = kernel_hash_factory(d, "SCR1024");
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, histograms, codes.data());
 *     double k = hash->kernel_estimate(200); // if 200 bits differ
 *
 * Strings: `SCR1024`, `SCR1024(seed=3)`.
 *
 * A row of zeros has all bits 1. If there are more than 2^26 numbers c_i, they
 * are not stored (GeneratedProjection).
 *
 * Source: P. Li, G. Samorodnitsky and J. Hopcroft, Sign Cauchy projections and
 * chi-square kernel, NIPS 2013.
 */
struct SignCauchyHash : ProjectionHash {
    int64_t seed = 1234;

    SignCauchyHash(int d, int nbits, int64_t seed = 1234);
    SignCauchyHash() = default;

    /// Expected Hamming distance in bits: nbits acos(kernel_value) / pi for
    /// kernel_value from 0 to 1.
    double expected_hamming(double kernel_value) const override;
    double least_kernel_value() const override; ///< 0
    double kernel_estimate(double hamming) const override;

    /// chi2 of the L1-normalised vectors; 0 if one of them is 0.
    double kernel_value(const float* x, const float* y) const override;

    /// Weights are atan of the margins divided by the median of their
    /// magnitudes. This makes Cauchy numbers uniform, so that no large one
    /// outweighs all others.
    void query_weights(size_t n, float* weights) const override;

    /// Throws: the expected distance is not known.
    double asymmetric_kernel_estimate(double distance) const override;

    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    std::optional<SparseVectors> sparse_features(
            const SparseVectors& x,
            SparseRows& space) const override;
    bool has_independent_bits() const override {
        return true;
    }
};

} // namespace faiss_ext
