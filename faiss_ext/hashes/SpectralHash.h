// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** SH: spectral hashing, codes learnt from data, for few bits under L2. It is a
 * baseline for the other schemes.
 *
 * Along a principal direction v, the projections of the training vectors range
 * from a to b. The eigenfunctions of the Laplacian of a uniform distribution on
 * [a, b] are sines of frequencies omega = j pi / (b - a), j = 1, 2, ... Of all
 * j and the first min(nbits, d) principal directions, the nbits smallest
 * frequencies are taken. A bit of x is 1 if
 *
 *     sin(pi / 2 + omega (v . x - a)) >= 0.
 *
 * The sine is the margin. Bits are ordered by frequency, and bits of equal
 * frequency by direction. Directions of large range have several bits,
 * directions of small range none. The formula also applies to vectors outside
 * [a, b].
 *
 *     auto hash = kernel_hash_factory(d, "SH64");
 *     hash->train(n, x);
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *
 * Strings: `SH64`, `SH64(seed=3)`.
 *
 * FAISS's IndexIVFSpectralHash (`IVF256,ITQ64,SH1.2`) is another method: it
 * takes one bit of each dimension, by a sine whose period is a parameter and
 * the same for all dimensions.
 *
 * Directions are learnt from up to 16,384 vectors, of up to 8,192 dimensions,
 * in memory of 32 bytes times the square of the dimension. Ranges are learnt
 * from all vectors. Training throws if there are fewer than two vectors, or if
 * all are the same.
 *
 * Source: Y. Weiss, A. Torralba and R. Fergus, Spectral hashing, NIPS 2008.
 */
struct SpectralHash : KernelHash {
    int64_t seed = 1234; ///< seed of the sample

    /// Projects onto the principal directions that have bits, the one of
    /// largest variance first.
    ClonePtr<Projection> projection;
    std::vector<float> lowest, highest; ///< a and b of each direction

    /// The direction of each bit, as a row of the projection, and its j.
    std::vector<int32_t> component, mode;

    SpectralHash(int d, int nbits, int64_t seed = 1234);
    SpectralHash();

    /// Throws: Hamming distances are not known to estimate a kernel.
    double expected_hamming(double kernel_value) const override;
    /// Throws, as expected_hamming does.
    double kernel_estimate(double hamming) const override;

    void margins(size_t n, const float* x, float* margins) const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    void learn(idx_t n, const float* x) override;
    bool learn_sparse(const SparseVectors& x) override;

   private:
    void check_training(idx_t n) const;
};

} // namespace faiss_ext
