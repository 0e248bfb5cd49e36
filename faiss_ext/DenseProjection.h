#pragma once

#include <vector>

#include <faiss_ext/compat.h>

namespace faiss {
struct IOReader;
struct IOWriter;
} // namespace faiss

namespace faiss_ext {

/** A linear map by a matrix: y_j = <A_j, x>.
 *
 * The value for one vector does not depend on the others in its batch, nor on
 * the number of threads, and is the same for every instruction set that has
 * fused multiply-adds (AVX2, AVX-512, NEON). It differs from the true one by at
 * most 2e-5 sum_k |A_jk x_k|, typically by 1e-7 of it.
 */
struct DenseProjection {
    int d_in = 0;  ///< input dimension
    int d_out = 0; ///< output dimension

    /// The matrix in panels of 16 rows, each component by component: A_jk is
    /// panels[(j / 16 * d_in + k) * 16 + j % 16]. The last panel is padded.
    std::vector<float> panels;

    DenseProjection() = default;

    /// with a matrix of zeros
    DenseProjection(int d_in, int d_out);

    /// A: size d_out * d_in
    DenseProjection(int d_in, int d_out, const float* A);

    /// Sets row A_j, size d_in.
    void set_row(int j, const float* row);

    /// The matrix row by row, size d_out * d_in.
    std::vector<float> matrix() const;

    /** Applies the map on the calling thread.
     *
     * @param x   size n * d_in
     * @param y   size n * d_out
     */
    void apply(size_t n, const float* x, float* y) const;

    void write(faiss::IOWriter* f) const;
    void read(faiss::IOReader* f);
};

} // namespace faiss_ext
