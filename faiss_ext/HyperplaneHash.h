#pragma once

#include <vector>

#include <faiss_ext/DenseProjection.h>
#include <faiss_ext/KernelHash.h>

namespace faiss_ext {

struct Spec;

/** RHBE: random hyperplanes on the vectors as they are (Charikar, STOC 2002).
 *
 * Bit: w . x >= 0, w ~ N(0, I). Two vectors at an angle theta differ in a bit
 * with probability theta / pi; the kernel is the cosine.
 *
 * center=1 learns the mean of the training vectors and the bit is w . x >= w .
 * mean: theta is then the angle as seen from the mean, and the kernel the
 * cosine of that angle.
 *
 * String: `RHBE256`, `RHBE256(center=1,seed=3)`; proj=dense.
 */
struct HyperplaneHash : KernelHash {
    bool center = false;
    int64_t seed = 1234;

    DenseProjection projection;   ///< w, nbits rows
    std::vector<float> threshold; ///< w . mean, size nbits; empty if center=0

    HyperplaneHash(int d, int nbits, bool center = false, int64_t seed = 1234);
    HyperplaneHash(int d, int nbits, Spec& spec);
    HyperplaneHash() = default;

    /// Learns the mean if center=1, from at most 65,536 vectors. Does nothing
    /// if the hash is trained.
    void train(idx_t n, const float* x) override;

    /// nbits acos(kernel_value) / pi, kernel_value a cosine from -1 to 1
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    void margins(size_t n, const float* x, float* margins) const override;
    void write_fields(faiss::IOWriter* f) const override;
    void read_fields(faiss::IOReader* f) override;

   private:
    void init();
};

} // namespace faiss_ext
