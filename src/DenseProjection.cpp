#include <faiss_ext/DenseProjection.h>

#include "io_fields.h"
#include "simd/pairwise.h"

namespace faiss_ext {

DenseProjection::DenseProjection(int d_in, int d_out)
        : d_in(d_in), d_out(d_out), A(size_t(d_in) * d_out) {}

void DenseProjection::apply(size_t n, const float* x, float* y) const {
    simd::pairwise(simd::PairOp::dot, n, x, d_out, A.data(), d_in, y, d_out);
}

void DenseProjection::write(faiss::IOWriter* f) const {
    write_value(f, d_in);
    write_value(f, d_out);
    write_vector(f, A);
}

void DenseProjection::read(faiss::IOReader* f) {
    d_in = read_value_in<int>(f, "projection.d_in", 0, 1 << 30);
    d_out = read_value_in<int>(f, "projection.d_out", 0, 1 << 30);
    read_vector(f, A, uint64_t(d_in) * d_out, "projection.A");
}

} // namespace faiss_ext
