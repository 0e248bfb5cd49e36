#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** SCR: sign Cauchy random projections for the chi2 kernel (Li, Samorodnitsky
 * and Hopcroft, NIPS 2013).
 *
 * Bit: sum_i c_i x_i >= 0 on vectors with components >= 0, c_i independent
 * Cauchy(0, 1). Two of them differ in a bit with a probability of about
 * acos(k) / pi, k = sum 2 x y / (x + y) of the L1-normalised vectors: an
 * approximation, good to 0.035, not an identity.
 *
 * String: `SCR1024`, `SCR1024(seed=3)`. Needs no training. A row of
 * zeros has all bits 1.
 */
struct SignCauchyHash : ProjectionHash {
    int64_t seed = 1234;

    SignCauchyHash(int d, int nbits, int64_t seed = 1234);
    SignCauchyHash() = default;

    /// nbits acos(kernel_value) / pi, kernel_value from 0 to 1
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    void check_input(idx_t n, const float* x, const char* where) const override;
    void fields(FieldVisitor& v) override;
    void init() override;
    void restore() override;
};

} // namespace faiss_ext
