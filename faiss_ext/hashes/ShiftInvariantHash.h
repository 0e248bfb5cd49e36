// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/kernels/ShiftInvariantKernel.h>

namespace faiss_ext {

/** SIK: binary codes for vectors under a Gaussian, Laplacian or Matern kernel.
 *
 * The method is locality-sensitive binary codes from shift-invariant kernels,
 * also called SKLSH or shift-invariant kernel LSH. Bit i of x is 1 if
 *
 *     cos(omega_i . x + b_i) + t_i >= 0,
 *
 * with omega_i from the spectral density of the kernel K, b_i uniform on [0, 2
 * pi] and t_i uniform on [-1, 1], all independent (equation 2 of the source).
 * The expected normalised Hamming distance of two codes is
 *
 *     h_K = 8/pi^2 sum_{m>=1} (1 - K(m delta)) / (4 m^2 - 1),  delta = x - y
 *
 * (lemma 2.2). If the omega_i are independent, as they are with proj=dense (the
 * paper's form) and proj=generated, then P(|Ham / nbits - h_K| > e) <= 2 exp(-2
 * nbits e^2) for one pair. For all pairs at once see bits_for.
 *
 *     auto hash = kernel_hash_factory(d, "SIK512(gaussian)");
 *     hash->train(n, x); // sets the bandwidth
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *     double k = hash->kernel_estimate(40); // if 40 bits differ
 *
 * Strings: `SIK512(gaussian,gamma=0.02,seed=1)`, `SIK512(laplacian)`,
 * `SIK256(matern,nu=1.5)`. If the string gives the bandwidth, the hash needs no
 * training. Otherwise train sets the bandwidth (see ShiftInvariantKernel).
 *
 * proj=generated, the default for more than 2^17 dimensions, computes the
 * components of frequencies where they are needed (GeneratedProjection).
 * Gaussian, Laplacian and Matern kernels have it, as do others with
 * sample_scale.
 *
 * Otherwise proj=structured is the default for kernels of the L2 norm, whose
 * frequencies are isotropic. Directions come from random rotations
 * (StructuredProjection), and lengths from the spectral density. Codes are
 * computed faster and need no matrix. See bits_for for the known bounds of
 * their deviations from h_K.
 *
 * No cosine is computed. With phases in turns, u = (omega . x + b) / 2 pi and r
 * = u - round(u), the bit is 1 if |r| <= acos(-t) / 2 pi. The margin is the
 * difference of the two sides, from -1/2 to 1/2.
 *
 * Random numbers come from std::mt19937_64 through the distributions of the
 * standard library. A seed gives the same numbers on the same standard library.
 * Files store the numbers themselves.
 *
 * Source: M. Raginsky and S. Lazebnik, Locality-sensitive binary codes from
 * shift-invariant kernels, NIPS 2009.
 */
struct ShiftInvariantHash : ProjectionHash {
    ClonePtr<ShiftInvariantKernel> kernel;
    int64_t seed = 1234;

    /// How frequencies are drawn. For kernels of the L1 norm they are never
    /// structured.
    ProjectionChoice proj;

    // Drawn once the bandwidth is known. The projection is omega_i / 2 pi, the
    // threshold acos(-t_i) / 2 pi.
    std::vector<float> offset; ///< b_i / 2 pi, size nbits

    ShiftInvariantHash() = default;

    /// @param kernel  is copied
    ShiftInvariantHash(
            int d,
            int nbits,
            const ShiftInvariantKernel& kernel,
            int64_t seed = 1234,
            const ProjectionChoice& proj = {});

    double expected_hamming(double kernel_value) const override;
    double least_kernel_value() const override; ///< 0
    double kernel_estimate(double hamming) const override;

    /// Bounds of the expected distance at kernel value u from 0 to 1 (lemma
    /// 2.3): nbits times h_1(u) = 4/pi^2 (1 - u) and h_2(u) = min(sqrt(1 - u) /
    /// 2, 4/pi^2 (1 - 2 u / 3)).
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    double kernel_value(const float* x, const float* y) const override;

    /// Expected Hamming distance, from the distance of the vectors in double.
    /// It is exact also for close vectors, whose kernel value rounds to 1 in
    /// float.
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    /** Weights that make the asymmetric score the locally most powerful test
     * for kernel values near 1/2.
     *
     * A query knows its phase a = omega . q + b. With cos alpha = -t, it also
     * knows that the bit of x is 1 if the phase of x is within alpha of 0. At a
     * kernel value K = E cos(omega . (q - x)), with K_m the value for m (q -
     * x), the sign of the bit is +-1 and has the expectation
     *
     *     e = 2 alpha / pi - 1 + 4 / pi sum_{m>=1} sin(m alpha) / m cos(m a)
     * K_m
     *
     * (Fourier series of the bit). With e' = d e / d K, the derivative of the
     * log-likelihood by K is (+-1 - e) e' / (1 - e^2), and the weight is e' /
     * (1 - e^2). Of all weights that depend on a and t, these make the mean of
     * the score change most with K near 1/2, in units of its deviation (by
     * Cauchy-Schwarz). This includes the weights of the Hamming distance.
     */
    void query_weights(size_t n, float* weights) const override;

    /// Throws: the expected distance with these weights has no closed form.
    double asymmetric_kernel_estimate(double distance) const override;

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    ShiftInvariantHash(int d, int nbits) : ProjectionHash(d, nbits) {}

    /// Sets the bandwidth, if it was left to the data, and draws the random
    /// numbers.
    void learn(idx_t n, const float* x) override;
    /// Does the same without dense copies.
    bool learn_sparse(const SparseVectors& x) override;
    /// Throws also if a vector is too far from the origin
    /// (ShiftInvariantKernel::check_phases).
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void finish(size_t n, float* margins) const override;
    std::optional<SparseVectors> sparse_features(
            const SparseVectors& x,
            SparseRows& space) const override;
    bool has_independent_bits() const override;

    /// E cos(omega . (x - y)) at the r for which K is profile(r).
    virtual double mean_cosine(double r) const;

    /// Shows the numbers that were drawn.
    void drawn_fields(FieldVisitor& v) const;

   private:
    void draw();
    double expected_at(double r) const;
};

} // namespace faiss_ext
