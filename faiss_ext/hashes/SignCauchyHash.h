#pragma once

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/projections/DenseProjection.h>

namespace faiss_ext {

struct Spec;

/** SCR: sign Cauchy projections for the chi2 kernel (Li, Samorodnitsky and
 * Hopcroft, NIPS 2013).
 *
 * Bit: sum_i c_i x_i >= 0 on vectors with components >= 0, c_i independent
 * Cauchy(0, 1). Two of them differ in a bit with a probability of about
 * acos(k) / pi, k = sum 2 x y / (x + y) of the L1-normalised vectors: an
 * approximation, good to 0.035, not an identity.
 *
 * String: `SCR1024`, `SCR1024(seed=3)`; proj=dense. Needs no training. A row of
 * zeros has all bits 1.
 */
struct SignCauchyHash : KernelHash {
    int64_t seed = 1234;
    DenseProjection projection; ///< c, nbits rows

    SignCauchyHash(int d, int nbits, int64_t seed = 1234);
    SignCauchyHash(int d, int nbits, Spec& spec);
    SignCauchyHash() = default;

    /// nbits acos(kernel_value) / pi, kernel_value from 0 to 1
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    void margins(size_t n, const float* x, float* margins) const override;
    void check_input(idx_t n, const float* x, const char* where) const override;
    void write_fields(faiss::IOWriter* f) const override;
    void read_fields(faiss::IOReader* f) override;

   private:
    void init();
};

} // namespace faiss_ext
