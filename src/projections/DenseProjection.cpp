// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/DenseProjection.h>

#include "core/errors.h"
#include "simd/projection.h"

namespace faiss_ext {

DenseProjection::DenseProjection(int d_in, int d_out) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0 && d_out > 0,
            "DenseProjection: from %d dimensions to %d, expected positive numbers",
            d_in,
            d_out);
    panels.resize(simd::packed_size(d_in, d_out));
    this->d_in = d_in;
    this->d_out = d_out;
}

DenseProjection::DenseProjection(int d_in, int d_out, const float* A)
        : DenseProjection(d_in, d_out) {
    for (int j = 0; j < d_out; j++) {
        set_row(j, A + size_t(j) * d_in);
    }
}

void DenseProjection::set_row(int j, const float* row) {
    for (int k = 0; k < d_in; k++) {
        panels[simd::panel_index(d_in, j, k)] = row[k];
    }
}

std::vector<float> DenseProjection::matrix() const {
    std::vector<float> A(size_t(d_in) * d_out);
    for (int j = 0; j < d_out; j++) {
        for (int k = 0; k < d_in; k++) {
            A[size_t(j) * d_in + k] = panels[simd::panel_index(d_in, j, k)];
        }
    }
    return A;
}

void DenseProjection::multiply(size_t n, const float* x, float* y) const {
    simd::project(n, x, d_out, panels.data(), d_in, y);
}

void DenseProjection::multiply_sparse(const SparseVectors& x, float* y) const {
    for (idx_t i = 0; i < x.n; i++) {
        const int64_t at = x.indptr[i];
        simd::project_sparse(
                x.num_components(i),
                x.indices + at,
                x.values + at,
                d_out,
                panels.data(),
                d_in,
                y + i * d_out);
    }
}

void DenseProjection::fields(FieldVisitor& v) const {
    Projection::fields(v);
    v.array("panels", panels, simd::packed_size(d_in, d_out));
}

} // namespace faiss_ext
