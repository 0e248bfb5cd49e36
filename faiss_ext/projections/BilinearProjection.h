// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** Products with matrices of rank one (Kim and Choi, CVPR 2015): x is read row
 * by row as a matrix X of d_w x d_v, and y_j = w' X v for one of k_w vectors w
 * and one of k_v vectors v, so that d_out * d_in numbers need not be stored.
 *
 * With k = d_out and m >= 1 there are k_w = k_v = ceil(m sqrt(k)) of them (for
 * m = 1, k_v = ceil(k / k_w)), and of the k_w k_v pairs k different ones are
 * drawn (their algorithm 1): the larger m, the fewer outputs share a w or a v,
 * and the less they are correlated. Only the pairs drawn are computed: all w' X
 * first, and then one product of length d_v for each pair. Outputs are in
 * random order, so that neighbours share nothing in particular.
 *
 * v ~ N(0, I). w ~ N(0, I) too in the dense form, as in the paper. In the
 * structured form the w come in blocks of D, the smallest power of two >=
 * max(d_w, 256): rows of three rounds of random signs and Walsh-Hadamard
 * transforms, each scaled to the length of a Gaussian vector (a chi variable of
 * D degrees). Those of a block are orthogonal in D dimensions, and all w' X of
 * it take 3 D d_v log2 D additions.
 *
 * With shuffle (beyond the paper) the components of x are put in a random order
 * with random signs before they become X: that changes no length and no angle,
 * but it spreads the singular values of matrices that have a few large ones, as
 * those of images do, and the closer these are to each other the more w' X v
 * behaves like a product with a Gaussian vector of d components. It takes 4
 * d_in bytes.
 *
 * Memory: 4 (k_w d_w + k_v d_v) bytes and up to 24 k; structured, 4 (4 k_w +
 * k_v d_v) bytes and up to 24 k.
 */
struct BilinearProjection : Projection {
    int d_w = 0, d_v = 0; ///< shape of X; d_in = d_w d_v
    int m = 1;
    bool structured = false;
    int k_w = 0, k_v = 0;

    /// Component i of X, row by row, is x[source[i]], or -x[-1 - source[i]] if
    /// that is negative; empty without shuffle.
    std::vector<int32_t> source;

    std::vector<float> W;     ///< dense: w row by row, size k_w * d_w
    std::vector<float> signs; ///< structured: +-1, 3 D for each block of D
    std::vector<float> norms; ///< structured: |w| D^(-3/2), size k_w
    /// v row by row, padded with zeros to padded_d_v(), scaled
    AlignedVector<float> V;

    /// the w and the v of each output, size d_out
    std::vector<int32_t> pair_w, pair_v;

    BilinearProjection() = default;

    /// @param factor  multiplies all outputs
    BilinearProjection(
            int d_w,
            int d_v,
            int d_out,
            int m,
            bool structured,
            int64_t seed,
            double factor = 1,
            bool shuffle = false);

    std::vector<float> matrix() const override;
    void fields(FieldVisitor& v) const override;
    void restore() override;

    /// Component i of X.
    float component(const float* x, size_t i) const {
        if (source.empty()) {
            return x[i];
        }
        // without a branch: signs are random
        const int32_t negative = source[i] >> 31;
        return std::bit_cast<float>(
                std::bit_cast<uint32_t>(x[source[i] ^ negative]) ^
                (uint32_t(negative) << 31));
    }

    /// d_v rounded up to a multiple of 16
    int padded_d_v() const {
        return (d_v + 15) / 16 * 16;
    }

    /// bytes that the object holds
    size_t memory() const;

    /// The d_w closest to sqrt(d) from below that divides d.
    static int nearly_square(int d);

   protected:
    void multiply(size_t n, const float* x, float* y) const override;

   private:
    /// The order of the computation; the same for all copies.
    struct Plan;
    std::shared_ptr<const Plan> plan;

    int block_size() const;
    int panel_height() const;
    size_t row_stride() const;
    void make_plan();
    void left_products(int block, const float* panels, float* buffer, float* t)
            const;
};

} // namespace faiss_ext
