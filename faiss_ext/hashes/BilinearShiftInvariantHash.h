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
 * For small and well spread differences k_b is close to the Gaussian kernel k_g
 * = exp(-gamma |x - y|^2 / 2): k_g <= k_b <= k_g^0.79 if sqrt(gamma) |x - y| <=
 * 0.8 and the largest lambda is at most 0.28 times the sum of the others.
 *
 * Two bits are independent but for those that share a w or a v (given X - Y,
 * and in the structured form but for the orthogonality of the w); the variance
 * of the Hamming distance is above that of independent bits by at most the sum
 * of covariance_bound over such pairs of bits, which fall in number with m.
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
    double expected_hamming_of_pair(const float* x, const float* y) const;

    /** Bounds of the expected normalised Hamming distance at the Gaussian
     * kernel's value u (theorem 2), under the conditions on X - Y above: 4/pi^2
     * (1 - u^0.79), and ShiftInvariantHash::upper_bound(u).
     */
    static double lower_bound(double u);
    static double upper_bound(double u);

    /** Bound of the absolute covariance of two bits of X - Y that share a w or
     * a v (theorem 3): 64/pi^4 ((sum_m u^(0.79 m^2) / (4 m^2 - 1))^2 - (sum_m
     * u^(m^2) / (4 m^2 - 1))^2)
     */
    static double covariance_bound(double u);

    void fields(FieldVisitor& v) override;
    void init() override;
    void restore() override;

   private:
    std::vector<double> eigenvalues(const float* x, const float* y) const;
};

} // namespace faiss_ext
