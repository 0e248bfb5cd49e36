// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/StructuredProjection.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/scratch.h"
#include "projections/random_projection.h"
#include "simd/hadamard.h"

namespace faiss_ext {

namespace {

constexpr int max_d = 1 << 30;

int64_t rotations(int d_out, int64_t D) {
    return (d_out + D - 1) / D;
}

int64_t signs_size(int d_out, int64_t D) {
    return 3 * D * rotations(d_out, D);
}

} // namespace

int StructuredProjection::order(int d_in) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0 && d_in <= max_d,
            "StructuredProjection: %d dimensions, expected 1 to 2^30",
            d_in);
    return hadamard_order(d_in);
}

StructuredProjection::StructuredProjection(
        int d_in,
        int d_out,
        int64_t seed,
        const std::vector<double>& lengths) {
    const int D = order(d_in);
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_out >= 0 && lengths.size() == size_t(d_out),
            "StructuredProjection: %zu lengths given, expected one for each of %d outputs",
            lengths.size(),
            d_out);
    this->d_in = d_in;
    this->d_out = d_out;
    signs.resize(signs_size(d_out, D));
    parallel_blocks(rotations(d_out, D), 1, [&](idx_t r, idx_t) {
        const size_t size = 3 * size_t(D);
        random_signs(seed, r, size, &signs[r * size]);
    });
    const double scale = std::pow(double(D), -1.5);
    for (double length : lengths) {
        norms.push_back(float(length * scale));
    }
}

void StructuredProjection::multiply(size_t n, const float* x, float* y) const {
    const size_t D = order(d_in);
    const Scratch work(D);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < size_t(d_out); j += D) {
            simd::hadamard_rounds(
                    d_in,
                    x + i * d_in,
                    D,
                    &signs[3 * j],
                    std::min(D, d_out - j),
                    &norms[j],
                    work.get(),
                    y + i * d_out + j);
        }
    }
}

std::vector<float> StructuredProjection::matrix() const {
    std::vector<float> A(size_t(d_out) * d_in);
    parallel_blocks(d_in, 1, [&](idx_t k, idx_t) {
        std::vector<float> unit(d_in), column(d_out);
        unit[k] = 1;
        multiply(1, unit.data(), column.data());
        for (int j = 0; j < d_out; j++) {
            A[size_t(j) * d_in + k] = column[j];
        }
    });
    return A;
}

void StructuredProjection::fields(FieldVisitor& v) const {
    Projection::fields(v);
    v.array("signs", signs, d_in == 0 ? 0 : signs_size(d_out, order(d_in)));
    v.array("norms", norms, d_out);
}

void StructuredProjection::restore() {
    check_signs(signs);
}

} // namespace faiss_ext
