// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** Binary codes for your own shift-invariant kernel: SIK with frequencies that
 * you draw.
 *
 * A kernel k(x, y) = K(x - y) with K(0) = 1 is the Fourier transform of a
 * probability density (Bochner's theorem). Draw omega_i from it, one for each
 * bit. Bit i of x is 1 if
 *
 *     cos(omega_i . x + b_i) + t_i >= 0,
 *
 * with b_i uniform on [0, 2 pi] and t_i uniform on [-1, 1], drawn by the seed.
 *
 *     std::vector<float> omega(nbits * d); // drawn by your program
 *     FrequencyHash hash(d, nbits, omega.data());
 *     std::vector<uint8_t> codes(n * hash.code_size());
 *     hash.encode(n, x, codes.data());
 *
 * Phases have the same errors as in FrequencyMap, and the same vectors are
 * refused.
 *
 * The hash needs no training. Files contain the frequencies, so they can be
 * read without the program that drew them. No string makes such a hash;
 * description() shows it as `SIK<nbits>(frequencies)`, which no factory
 * accepts.
 *
 * Theory, with delta = x - y. For given omega_i the bits are independent, and
 * bit i differs with probability 2/pi |sin(omega_i . delta / 2)|. If the
 * omega_i are independent, too, the expected normalised Hamming distance is
 *
 *     h_K = 8/pi^2 sum_{m>=1} (1 - K(m delta)) / (4 m^2 - 1)
 *
 * (Raginsky and Lazebnik 2009, lemma 2.2), and P(|Ham / nbits - h_K| > e) <= 2
 * exp(-2 nbits e^2) for one pair. h_K depends on K along the whole ray of
 * delta, so K(delta) alone does not determine it: expected_hamming and
 * kernel_estimate throw. kernel_interval, hamming_bounds and
 * expected_hamming_of_pair work.
 */
struct FrequencyHash : ProjectionHash {
    int64_t seed = 1234; ///< of b_i and t_i

    // The projection is omega_i / 2 pi, the threshold acos(-t_i) / 2 pi.
    std::vector<float> offset; ///< b_i / 2 pi, size nbits

    /// An empty hash, to be filled from a file.
    FrequencyHash() = default;

    /**
     * @param d      dimension of vectors
     * @param nbits  number of frequencies
     * @param omega  omega_i row by row, finite, size nbits * d
     */
    FrequencyHash(int d, int nbits, const float* omega, int64_t seed = 1234);

    /// The mean of cos(omega_i . (x - y)), which estimates K(x - y).
    double kernel_value(const float* x, const float* y) const override;

    /// nbits times the mean of 2/pi |sin(omega_i . (x - y) / 2)|.
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    /** Bounds for all shift-invariant kernels, at kernel value u from -1 to 1:
     * nbits times (1 - u) / pi and 2/pi sqrt((1 - u) / 2).
     *
     * They follow from s^2 <= |s| and Jensen's inequality, with s = sin(omega .
     * delta / 2) and E s^2 = (1 - u) / 2. Some kernels reach them. The sharper
     * bounds of lemma 2.3 (ShiftInvariantHash) assume that K does not increase
     * along rays, and is not negative.
     */
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    /// Throws: the kernel value does not determine the distance.
    double expected_hamming(double kernel_value) const override;
    /// Throws: the distance does not determine the kernel value; see
    /// kernel_interval.
    double kernel_estimate(double hamming) const override;

    /// The weights of ShiftInvariantHash, for phases omega . (x - y) with a
    /// normal distribution.
    void query_weights(size_t n, float* weights) const override;

    /// Throws: the expected distance with these weights has no closed form.
    double asymmetric_kernel_estimate(double distance) const override;

    void fields(FieldVisitor& v) const override;
    void restore() override;

    /// "SIK<nbits>(frequencies)".
    std::string description() const override;

   protected:
    void finish(size_t n, float* margins) const override;
    std::optional<SparseVectors> sparse_features(
            const SparseVectors& x,
            SparseRows& space) const override;
    bool has_independent_bits() const override;
    /// Throws also if a vector is so far from the origin that phases would be
    /// inaccurate.
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;

   private:
    double longest = 0; ///< length of the longest vectors that are encoded

    /// The mean of f(omega_i . (x - y)).
    template <class F>
    double mean_of_phases(
            const float* x,
            const float* y,
            const char* where,
            F&& f) const;
};

} // namespace faiss_ext
