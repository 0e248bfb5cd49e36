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
 * the number of threads. Between instruction sets it differs by at most 1e-5
 * sum_k |A_jk x_k|, typically by 1e-7 of it.
 */
struct DenseProjection {
    int d_in = 0;  ///< input dimension
    int d_out = 0; ///< output dimension

    std::vector<float> A; ///< matrix, size d_out * d_in

    DenseProjection() = default;

    /// with a matrix of zeros
    DenseProjection(int d_in, int d_out);

    float* row(int j) {
        return A.data() + size_t(j) * d_in;
    }

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
