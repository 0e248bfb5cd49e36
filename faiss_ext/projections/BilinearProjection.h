// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** Projections of matrices by random vectors on both sides (Kim and Choi, CVPR
 * 2015). They need far less memory than a matrix of d_out * d_in numbers.
 *
 * x is read row by row as a matrix X of d_w x d_v. Output y_j = w' X v, for one
 * of k_w vectors w and one of k_v vectors v.
 *
 * With k = d_out and m >= 1, k_w = k_v = ceil(m sqrt(k)) (for m = 1, k_v =
 * ceil(k / k_w)). From the k_w k_v pairs, k different ones are drawn (their
 * algorithm 1). The larger m is, the fewer outputs share a w or a v, and the
 * less they are correlated. Only the drawn pairs are computed: all w' X first,
 * and then one product of length d_v for each pair. Outputs are in random
 * order, so that adjacent outputs share nothing in particular.
 *
 * In both forms v ~ N(0, I). The forms differ in w:
 *
 * - dense, the paper's form: w ~ N(0, I).
 * - structured: the w come in blocks of D, the smallest power of two >=
 *   max(d_w, 256). They are rows of three rounds of random signs and
 *   Walsh-Hadamard transforms, each scaled to the length of a Gaussian vector
 *   (a chi variable of D degrees). The w of a block are orthogonal in D
 *   dimensions. All w' X of a block take 3 D d_v log2 D additions.
 *
 * shuffle (beyond the paper) puts the components of x in a random order with
 * random signs before they become X. This changes no length and no angle. It
 * spreads the singular values of matrices that have a few large ones, such as
 * images. The closer the singular values are to each other, the more w' X v
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
    /// source[i] is negative. Empty without shuffle.
    std::vector<int32_t> source;

    std::vector<float> W;     ///< dense: w row by row, size k_w * d_w
    std::vector<float> signs; ///< structured: +-1, 3 D for each block of D
    std::vector<float> norms; ///< structured: |w| D^(-3/2), size k_w
    /// v row by row, padded with zeros to padded_d_v(), scaled.
    AlignedVector<float> V;

    /// The w and the v of each output, size d_out.
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

    /// d_v rounded up to a multiple of 16.
    int padded_d_v() const {
        return (d_v + 15) / 16 * 16;
    }

    /// Bytes that the object occupies.
    size_t memory() const;

    /// The d_w closest to sqrt(d) from below that divides d.
    static int nearly_square(int d);

   protected:
    void multiply(size_t n, const float* x, float* y) const override;

   private:
    /// The order of the computation, shared by all copies.
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
