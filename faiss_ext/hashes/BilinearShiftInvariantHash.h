// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/hashes/ShiftInvariantHash.h>

namespace faiss_ext {

/** BSIK: binary codes for the Gaussian kernel by bilinear random projections.
 * For vectors of many dimensions that are matrices by nature (VLAD, Fisher
 * vectors, spatial pyramids, images), and for codes of many bits.
 *
 * A dense projection takes O(d nbits) memory and time. BSIK takes O(m
 * sqrt(nbits d)) memory, and little time.
 *
 * x is read row by row as a matrix X of d_w x d_v. A bit of x is 1 if
 *
 *     cos(sqrt(gamma) w' X v + b) + t >= 0,
 *
 * with w, v ~ N(0, I), b uniform on [0, 2 pi] and t uniform on [-1, 1].
 * BilinearProjection says how the pairs (w, v) are chosen. With the eigenvalues
 * lambda_j of gamma (X - Y)(X - Y)', the kernel is
 *
 *     k_b = prod_j (1 + lambda_j)^(-1/2) = E cos(sqrt(gamma) w' (X - Y) v)
 *
 * (lemma 1 of the source). With shuffle on, X and Y are the matrices after the
 * shuffle of their components. The expected normalised Hamming distance of two
 * codes is 8/pi^2 sum_{m>=1} (1 - k_b(m (X - Y))) / (4 m^2 - 1) (lemma 2).
 *
 *     auto hash = kernel_hash_factory(784, "BSIK6400(28x28,m=5)");
 *     hash->train(n, x); // sets the bandwidth
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *
 * Strings: `BSIK6400(28x28,m=5)`, `BSIK62464(auto,m=5,gamma=0.02,seed=1)`. The
 * shape `auto`, or no shape, is the most nearly square one. If the bandwidth is
 * left out, train sets it as for SIK. w=dense,shuffle=0 is the paper's form.
 *
 * The Gaussian kernel k_g = exp(-gamma |x - y|^2 / 2) is a lower bound: k_b >=
 * k_g. Lemma 1 also gives the upper bound k_b <= k_g^0.79 under two conditions:
 *
 * - sqrt(gamma) |x| and sqrt(gamma) |y| are at most 0.8 each, so that
 *   sqrt(gamma) |x - y| is at most 1.6;
 * - the largest lambda is at most 0.28 times the sum of the others.
 *
 * Expected distances are then at least 4/pi^2 (1 - k_g^0.79) nbits (theorem 2).
 * hamming_bounds hold for any difference.
 *
 * Given X - Y, two bits that share neither w nor v are independent (in the
 * structured form, up to the orthogonality of the w). Two bits that share a w
 * or a v have the covariance covariance_of_pair, which is never negative. The
 * variance of the Hamming distance is that of independent bits, plus twice the
 * covariance for each pair of bits that share a w or a v. The number of such
 * pairs falls with m.
 *
 * Source: S. Kim and S. Choi, Bilinear random projections for
 * locality-sensitive binary codes, CVPR 2015.
 */
struct BilinearShiftInvariantHash : ShiftInvariantHash {
    /**
     * @param d_w, d_v  shape of the vectors as matrices, d_in = d_w * d_v
     * @param gamma     bandwidth, or 0 to let train choose it
     */
    BilinearShiftInvariantHash(
            int d_w,
            int d_v,
            int nbits,
            double gamma = 0,
            int m = 5,
            bool structured = true,
            int64_t seed = 1234,
            bool shuffle = true);
    BilinearShiftInvariantHash();

    /** E cos of the projected difference at the r for which the Gaussian kernel
     * is profile(r). It assumes that all min(d_w, d_v) eigenvalues of the
     * difference are equal.
     *
     * If few eigenvalues dominate, codes differ in fewer bits;
     * expected_hamming_of_pair takes this into account.
     */
    double mean_cosine(double r) const override;

    /// The kernel k_b of two vectors.
    double bilinear_kernel(const float* x, const float* y) const;

    /// Expected Hamming distance of the codes of two vectors, in bits (lemma
    /// 2). Exact in the dense form; in the structured form as far as its w are
    /// Gaussian.
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    /** The covariance of two events, for two bits that share a w or a v: that x
     * and y differ in the one bit, and that they differ in the other.
     *
     * It is (lemma 5, and the proof of theorem 4 in the supplement)
     *
     *     64/pi^4 sum_{m,n>=1} (k_b(sqrt(m^2 + n^2) (X - Y)) - k_b(m (X - Y))
     *     k_b(n (X - Y))) / ((4 m^2 - 1) (4 n^2 - 1)),
     *
     * computed to 1e-6. It equals the variance, over w, of the probability that
     * the bits differ given w, and so is never negative. It is exact under the
     * same conditions as expected_hamming_of_pair.
     */
    double covariance_of_pair(const float* x, const float* y) const override;

    /** The tight bounds of the expected distance at the value u of the Gaussian
     * kernel.
     *
     * The eigenvalues then have the sum -2 log u. A single eigenvalue gives the
     * lower bound; min(d_w, d_v) equal ones, which expected_hamming assumes,
     * give the upper bound. The bounds of theorem 2 are wider above, and below
     * they hold only under the conditions of lemma 1.
     */
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    /** A bound of covariance_of_pair at the value u of the Gaussian kernel,
     * from 0 to 1 (theorem 3).
     *
     *     64/pi^4 ((sum_m u^(0.79 m^2) / (4 m^2 - 1))^2
     *            - (sum_m u^(m^2) / (4 m^2 - 1))^2)
     *
     * It holds only under the conditions of lemma 1, under which u >=
     * exp(-1.28). Even then it was found by computation, not proven: the proof
     * applies lemma 1 to sqrt(m^2 + n^2) (X - Y), which does not meet its
     * conditions. Of the spectra that lemma 1 admits, those nearest to a single
     * eigenvalue reach 0.99 of the bound. If there is only one eigenvalue, the
     * covariance exceeds the bound from gamma |x - y|^2 = 0.55 on, at 2.25 by a
     * factor of 3 (docs/notes-on-the-papers.md).
     */
    static double covariance_bound(double u);

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   private:
    std::vector<double> eigenvalues(const float* x, const float* y) const;
};

} // namespace faiss_ext
