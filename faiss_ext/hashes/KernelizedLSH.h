// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/maps/KernelPCA.h>

namespace faiss_ext {

/** KLSH: kernelised locality-sensitive hashing. For any kernel, through its
 * values against p landmarks alone: kernel PCA (KernelPCA, whose parameters it
 * shares), followed by random hyperplanes, the two being multiplied out.
 *
 * K is the kernel matrix of the landmarks, K' = HKH with H = I - 11'/p its
 * centred form, K' = U Theta U' its eigenvectors, of which the `rank` largest
 * are kept (all above `tolerance`, if rank is 0). A bit of x is 1 where
 *
 *     sum_i w_i k(x, x_i) >= c,
 *
 *     draw=clt    w = U Theta^(-1/2) U' e_S, e_S the indicator of t landmarks
 *                 drawn at random (2012, equation 8)
 *     draw=gauss  w = U Theta^(-1/2) g, g ~ N(0, I): hyperplanes after kernel
 *                 PCA (2015, section 3)
 *
 * and c = 0 as in the papers (center=0), or c = sum_i w_i mean_j k(x_i, x_j)
 * (center=1, the default), which centres the query too and balances the bits.
 *
 *     auto hash = kernel_hash_factory(d, "KLSH256(chi2,rank=64)");
 *     hash->train(n, x); // draws 300 landmarks
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *
 * Source: B. Kulis and K. Grauman, Kernelized locality-sensitive hashing, PAMI
 * 2012; the low-rank projections, the monotone transform and the Gaussian draws
 * are from K. Jiang, Q. Que and B. Kulis, Revisiting kernelized
 * locality-sensitive hashing for improved large-scale image retrieval, CVPR
 * 2015.
 *
 * nystrom=1 leaves K uncentred. With clt draws and center=0 all bits are then
 * nearly constant, as measured (docs/klsh.md); no paper derives it.
 *
 * rank=auto and scale=auto choose among powers of two from 16 and the full
 * rank, and among none, 1, 3, 5, 7 and 9, by the recall of a held-out part of
 * the training set (10 nearest of up to 200 queries among the 100 nearest by
 * Hamming distance in up to 5,000 vectors).
 *
 * `KLSH256(precomputed)` takes in place of a vector its row of kernel values
 * against the landmarks, so d = p, and train takes the p x p matrix of the
 * landmarks; these values are not normalised here.
 *
 * Training takes O(p^3) time and 28 p^2 bytes (rank=auto and scale=auto: 32 p^2
 * and 50 KB for each landmark), and with verbose prints its progress.
 *
 * String: `KLSH256(chi2,p=1000,t=50,rank=64,scale=5)`.
 */
struct KernelizedLSH : ProjectionHash {
    enum class Draw { clt, gauss };

    /// kernel, landmarks and the parameters of kernel PCA
    KernelPCA map;
    int t = 0; ///< landmarks in a clt draw; 0: 30, or p / 2 if that is less
    Draw draw = Draw::clt;

    /// mean kernel value of two landmarks, for expected_hamming
    double mean_value = 0;

    /// @param kernel  is copied; null for precomputed values, with d = p
    KernelizedLSH(int d, int nbits, const Kernel* kernel);
    KernelizedLSH();

    /// Sets the landmarks instead of sampling them. x: size n * d_in; p becomes
    /// n.
    void set_landmarks(idx_t n, const float* x);

    /** By the angle between the two vectors in feature space, centred with the
     * mean kernel value: nbits acos((k - m) / (1 - m)) / pi, m = 0 if
     * center=0. An approximation: a pair's own means may differ from the mean,
     * and the landmarks span only a part of the space. kernel_value is that
     * before normalisation and transform have been applied, but of a
     * normalised kernel: with normalize=0 it assumes k(x, x) = 1.
     */
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    /// Normalised, unless normalize=0. Throws with precomputed values.
    double kernel_value(const float* x, const float* y) const override;

    /** That at the kernel value of the pair: an approximation, see above. For
     * nearest neighbours among handwritten digits and four settings, nine pairs
     * in ten differ in 0.6 to 1.3 times as many bits, on average over draws;
     * with nystrom=1 and center=0 bits are nearly constant, and it says
     * nothing. Throws with normalize=0, too, where the angles are not known.
     */
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    void check_input(idx_t n, const float* x, const char* where) const override;
    void set_dimensions(int d, int nbits) override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    /// Draws the landmarks, if none are set, and computes the weights w_i,
    /// which are the projection.
    void learn(idx_t n, const float* x) override;

    int num_features() const override;
    const float* features(size_t n, const float* x, float* space)
            const override;
    size_t features_space() const override;
    void finish(size_t n, float* margins) const override;
    bool has_independent_bits() const override {
        return true;
    }

   private:
    int num_drawn() const;
};

} // namespace faiss_ext
