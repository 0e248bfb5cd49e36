// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/hashes/ShiftInvariantHash.h>

namespace faiss_ext {

/** BSIK: SIK of a Gaussian kernel with bilinear random projections. For
 * vectors of many dimensions that are matrices by nature (VLAD, Fisher vectors,
 * spatial pyramids, images) and codes of many bits: what takes O(d nbits)
 * memory and time with a dense projection takes O(m sqrt(nbits d)) memory here,
 * and little time.
 *
 * x is read row by row as a matrix X of d_w x d_v. A bit of x is 1 where
 *
 *     cos(sqrt(gamma) w' X v + b) + t >= 0,
 *
 * with w, v ~ N(0, I), b uniform on [0, 2 pi] and t on [-1, 1]; the pairs (w,
 * v) are chosen as BilinearProjection says. With the eigenvalues lambda_j of
 * gamma (X - Y)(X - Y)', the kernel is
 *
 *     k_b = prod_j (1 + lambda_j)^(-1/2) = E cos(sqrt(gamma) w' (X - Y) v)
 *
 * (lemma 1 of the source), X and Y after the shuffle of their components if
 * shuffle is on, and the expected normalised Hamming distance of two codes is
 * 8/pi^2 sum_{m>=1} (1 - k_b(m (X - Y))) / (4 m^2 - 1) (lemma 2).
 *
 *     auto hash = kernel_hash_factory(784, "BSIK6400(28x28,m=5)");
 *     hash->train(n, x); // sets the bandwidth
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *
 * Source: S. Kim and S. Choi, Bilinear random projections for locality-
 * sensitive binary codes, CVPR 2015.
 *
 * k_b is at least the Gaussian kernel k_g = exp(-gamma |x - y|^2 / 2), and at
 * most k_g^0.79 if sqrt(gamma) |x| and sqrt(gamma) |y| are at most 0.8 each, so
 * that sqrt(gamma) |x - y| is at most 1.6, and the largest lambda is at most
 * 0.28 times the sum of the others (lemma 1). Expected distances are then at
 * least 4/pi^2 (1 - k_g^0.79) nbits (theorem 2); hamming_bounds hold whatever
 * the difference.
 *
 * Two bits are independent but for those that share a w or a v (given X - Y,
 * and in the structured form but for the orthogonality of the w). These have
 * the covariance covariance_of_pair, which is never negative: the variance of
 * the Hamming distance is that of independent bits and twice the covariance for
 * each two bits that share something, whose number falls with m.
 *
 * Strings: `BSIK6400(28x28,m=5)`, `BSIK62464(auto,m=5,gamma=0.02,seed=1)`. The
 * shape `auto`, or none, is the most nearly square one; a bandwidth that is
 * left out is set by train as for SIK. w=dense,shuffle=0 is the paper's form.
 */
struct BilinearShiftInvariantHash : ShiftInvariantHash {
    /**
     * @param d_w, d_v  shape of the vectors as matrices, d_in = d_w * d_v
     * @param gamma     bandwidth, or 0 to have train choose it
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

    /** By the value of the Gaussian kernel, as if all min(d_w, d_v) eigenvalues
     * of the difference were equal. Where few of them dominate, codes differ in
     * fewer bits; expected_hamming_of_pair counts that in.
     */
    double mean_cosine(double r) const override;

    /// k_b of two vectors
    double bilinear_kernel(const float* x, const float* y) const;

    /// Expected Hamming distance of the codes of two vectors, in bits (lemma
    /// 2): exact in the dense form, in the structured one as far as its w are
    /// Gaussian.
    double expected_hamming_of_pair(const float* x, const float* y)
            const override;

    /** The covariance of two bits that share a w or a v: of the events that x
     * and y differ in the one and in the other (lemma 5, and the proof of
     * theorem 4 in the supplement):
     *
     *     64/pi^4 sum_{m,n>=1} (k_b(sqrt(m^2 + n^2) (X - Y)) - k_b(m (X - Y))
     *     k_b(n (X - Y))) / ((4 m^2 - 1) (4 n^2 - 1)),
     *
     * to 1e-6. It is the variance, over w, of the probability that the bits
     * differ given w, and so never negative. Exact where
     * expected_hamming_of_pair is.
     */
    double covariance_of_pair(const float* x, const float* y) const override;

    /** The tight bounds at the Gaussian kernel's value u: of all eigenvalues of
     * the sum -2 log u, a single one gives the lower bound and min(d_w, d_v)
     * equal ones, which are what expected_hamming assumes, the upper bound.
     * (Those of theorem 2 are wider above, and below hold under the conditions
     * of lemma 1 only.)
     */
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    /** Bound of covariance_of_pair at the Gaussian kernel's value u from 0 to 1
     * (theorem 3): 64/pi^4 ((sum_m u^(0.79 m^2) / (4 m^2 - 1))^2 - (sum_m
     * u^(m^2) / (4 m^2 - 1))^2).
     *
     * Only under the conditions of lemma 1, under which u >= exp(-1.28), and
     * there as computed, not as proven: the proof applies lemma 1 to sqrt(m^2 +
     * n^2) (X - Y), which does not meet its conditions. The spectra nearest to
     * a single eigenvalue that lemma 1 admits reach 0.99 of the bound. Where
     * one eigenvalue is all, the covariance is above it from gamma |x - y|^2 =
     * 0.55 on, at 2.25 by a factor of 3 (docs/notes-on-the-papers.md).
     */
    static double covariance_bound(double u);

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   private:
    std::vector<double> eigenvalues(const float* x, const float* y) const;
};

} // namespace faiss_ext
