// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/maps/KernelPCA.h>

namespace faiss_ext {

/** KLSH: binary codes for any kernel, also one of your own. It uses only kernel
 * values against p landmarks.
 *
 * Kernelised locality-sensitive hashing is kernel PCA (KernelPCA, whose
 * parameters it shares) followed by random hyperplanes, multiplied out into one
 * projection.
 *
 * K is the kernel matrix of the landmarks, K' = HKH with H = I - 11'/p its
 * centred form, and K' = U Theta U' its eigendecomposition. The `rank` largest
 * eigenvalues are kept, or, if rank is 0, all above `tolerance`. A bit of x is
 * 1 if
 *
 *     sum_i w_i k(x, x_i) >= c,
 *
 *     draw=clt    w = U Theta^(-1/2) U' e_S, e_S the indicator of t landmarks
 *                 drawn at random (2012, equation 8)
 *     draw=gauss  w = U Theta^(-1/2) g, g ~ N(0, I): hyperplanes after kernel
 *                 PCA (2015, section 3)
 *
 * With center=1, the default, c = sum_i w_i mean_j k(x_i, x_j), which also
 * centres the query and balances the bits. With center=0, c = 0, as in the
 * papers.
 *
 *     auto hash = kernel_hash_factory(d, "KLSH256(chi2,rank=64)");
 *     hash->train(n, x); // draws 300 landmarks
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *
 * String: `KLSH256(chi2,p=1000,t=50,rank=64,scale=5)`.
 *
 * `KLSH256(precomputed)` is for objects that are not vectors. It takes rows of
 * their kernel values against the landmarks in place of vectors, so d = p, and
 * train takes the p x p matrix of the landmarks. These values are not
 * normalised here.
 *
 * rank=auto and scale=auto try powers of two from 16 and the full rank, and no
 * scale, 1, 3, 5, 7 and 9. They choose by the recall of a held-out part of the
 * training set: the 10 nearest of up to 200 queries among the 100 nearest by
 * Hamming distance, in up to 5,000 vectors. The best rank rises with the number
 * of bits (docs/klsh.md).
 *
 * nystrom=1 leaves K uncentred. With draw=clt and center=0 all bits are then
 * nearly constant. We measured this (docs/klsh.md); no paper mentions it.
 *
 * Training takes O(p^3) time and 28 p^2 bytes; with rank=auto and scale=auto 32
 * p^2 bytes and 50 KB for each landmark. With verbose it prints its progress.
 *
 * If the hash is trained with sparse vectors, landmarks are sparse, too, and
 * time and memory depend on the components that are not 0 (see KernelPCA).
 *
 * Source: B. Kulis and K. Grauman, Kernelized locality-sensitive hashing, PAMI
 * 2012. The low-rank projections, the monotone transform and the Gaussian draws
 * are from K. Jiang, Q. Que and B. Kulis, Revisiting kernelized
 * locality-sensitive hashing for improved large-scale image retrieval, CVPR
 * 2015.
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

    /// Sets the landmarks instead of sampling them. x has size n * d_in; p
    /// becomes n.
    void set_landmarks(idx_t n, const float* x);
#ifndef SWIG
    /// The same for sparse landmarks. Throws unless the kernel ignores zeros.
    void set_landmarks(const SparseVectors& x);
#endif

    /** Expected Hamming distance by the angle in feature space, centred with
     * the mean kernel value: nbits acos((k - m) / (1 - m)) / pi, with m = 0 if
     * center=0.
     *
     * It is an approximation: the means of a pair may differ from the overall
     * mean, and the landmarks span only a part of the space. kernel_value is
     * the normalised kernel's value before `scale` is applied. With normalize=0
     * the formula assumes k(x, x) = 1.
     */
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;
    void map_sparse(const SparseVectors& x, float* margins) const override;

    /// The kernel value of two vectors, normalised unless normalize=0. Throws
    /// with precomputed values.
    double kernel_value(const float* x, const float* y) const override;

    /** Expected Hamming distance at the kernel value of the pair: an
     * approximation, as in expected_hamming.
     *
     * For nearest neighbours among handwritten digits and four settings, nine
     * pairs in ten differ in 0.6 to 1.3 times as many bits, on average over
     * draws. With nystrom=1 and center=0 bits are nearly constant, and the
     * value is meaningless. Throws also with normalize=0, since the angles are
     * then unknown.
     */
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;
    std::string caution() const override;

    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void set_dimensions(int d, int nbits) override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    /// Draws the landmarks, if none are set, and computes the weights w_i,
    /// which are the projection.
    void learn(idx_t n, const float* x) override;
    bool learn_sparse(const SparseVectors& x) override;

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
    void learn_from(const VectorBatch& x);
    void kernel_rows(const VectorBatch& x, float* rows) const;
    template <class F>
    void set_landmarks_by(F&& set);
};

} // namespace faiss_ext
