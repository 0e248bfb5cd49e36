#pragma once

#include <memory>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss {
struct IOReader;
struct IOWriter;
} // namespace faiss

namespace faiss_ext {

/** A linear map, y = A x, drawn at random or given, stored in whatever form
 * makes it fast.
 *
 * The value for one vector does not depend on the others in its batch, nor on
 * the number of threads. Vectors may have any finite components: those with
 * components above 2^64, whose sums might overflow on the way, are scaled by a
 * power of two and back.
 */
struct Projection {
    int d_in = 0;  ///< input dimension
    int d_out = 0; ///< output dimension

    virtual ~Projection() = default;

    /** Applies the map on the calling thread. Throws if it is empty.
     *
     * @param x   size n * d_in
     * @param y   size n * d_out
     */
    void apply(size_t n, const float* x, float* y) const;

    /// The matrix A row by row, size d_out * d_in.
    virtual std::vector<float> matrix() const = 0;

    virtual std::unique_ptr<Projection> clone() const = 0;

    virtual void write(faiss::IOWriter* f) const = 0;
    virtual void read(faiss::IOReader* f) = 0;

   protected:
    /// apply() on vectors whose components are up to 2^64.
    virtual void multiply(size_t n, const float* x, float* y) const = 0;
};

} // namespace faiss_ext
