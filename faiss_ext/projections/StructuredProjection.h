// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** Random projections without a matrix, by vectors that are nearly Gaussian and
 * nearly orthogonal: y_j = |w_j| <u_j, x>, in O(D log D) for D outputs.
 *
 * D = order(d_in) is the smallest power of two >= max(d_in, 256). The
 * directions u_j are rows of R = H S_3 H S_2 H S_1 / D^(3/2). H is the
 * Walsh-Hadamard transform, and S_i are diagonal matrices of random signs. R is
 * orthogonal: it rotates x, padded with zeros to D dimensions (Ailon and
 * Chazelle, STOC 2006; three rounds as in Andoni et al., NIPS 2015). Each group
 * of D outputs has its own R.
 *
 * The lengths |w_j| are given. With the lengths of Gaussian vectors of D
 * dimensions, w_j has the law of a Gaussian vector as far as R has the law of a
 * random rotation.
 *
 * Outputs of one R use orthogonal directions of the D dimensions. In the codes
 * measured this lowers the variance of Hamming distances: for vectors at right
 * angles, by the factor 1 - 4 / pi^2 against independent bits, as for random
 * rotations in many dimensions. This is not proven for these R; bits_for.h has
 * the proven bound.
 *
 * If fewer than D outputs of an R are needed, its last transform is a smaller
 * one, which costs less.
 *
 * Values are the same for every instruction set and differ from those of
 * matrix() by at most 6e-8 (3 log2 D + 3) |w_j| |x|. Entries of R are D^(-3/2)
 * times whole numbers, few of them 0. If x has only one nonzero component, or
 * very few, some products are therefore 0 but for rounding (for one component,
 * 0.6 % at 64 dimensions and 0.2 % at 1,000).
 *
 * Memory: 12 D bytes for each R, and 4 bytes for each output.
 */
struct StructuredProjection : Projection {
    /// +-1: S_1, S_2 and S_3 of each R, size 3 D ceil(d_out / D).
    AlignedVector<float> signs;

    /// |w_j| D^(-3/2), size d_out.
    AlignedVector<float> norms;

    StructuredProjection() = default;

    /**
     * @param lengths  |w_j|, the lengths of vectors of order(d_in) components;
     *                 size d_out
     */
    StructuredProjection(
            int d_in,
            int d_out,
            int64_t seed,
            const std::vector<double>& lengths);

    /// D for vectors of d_in components.
    static int order(int d_in);

    std::vector<float> matrix() const override;
    void fields(FieldVisitor& v) const override;
    void restore() override;

   protected:
    void multiply(size_t n, const float* x, float* y) const override;
};

} // namespace faiss_ext
