// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** A linear map by a matrix: y_j = <A_j, x>.
 *
 * Values are the same for every instruction set that has fused multiply-adds
 * (AVX2, AVX-512, NEON). They differ from the true ones by at most 2e-5 sum_k
 * |A_jk x_k|, typically by 1e-7 of it.
 */
struct DenseProjection : Projection {
    /// The matrix in panels of 16 rows, each component by component: A_jk is
    /// panels[(j / 16 * d_in + k) * 16 + j % 16]. The last panel is padded.
    AlignedVector<float> panels;

    DenseProjection() = default;

    /// A matrix of zeros.
    DenseProjection(int d_in, int d_out);

    /// A has size d_out * d_in, row by row.
    DenseProjection(int d_in, int d_out, const float* A);

    /// Sets row A_j, size d_in.
    void set_row(int j, const float* row);

    std::vector<float> matrix() const override;
    void fields(FieldVisitor& v) const override;

   protected:
    void multiply(size_t n, const float* x, float* y) const override;
    void multiply_sparse(const SparseVectors& x, float* y) const override;
};

} // namespace faiss_ext
