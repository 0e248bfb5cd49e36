// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/Projection.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/GeneratedProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "core/class_table_impl.h"
#include "core/errors.h"
#include "core/scratch.h"
#include "simd/elementwise.h"

namespace faiss_ext {

template struct ClassTable<Projection>;

template <>
ClassTable<Projection>& class_table<Projection>() {
    static ClassTable<Projection> table(
            "projection",
            Names::inside,
            {
                    class_entry<Projection, BilinearProjection>("bilinear"),
                    class_entry<Projection, DenseProjection>("dense"),
                    class_entry<Projection, GeneratedProjection>("generated"),
                    class_entry<Projection, StructuredProjection>("structured"),
            });
    return table;
}

std::unique_ptr<Projection> Projection::clone() const {
    return class_table<Projection>().find(*this).copy(*this);
}

void Projection::assign(const Projection& other) {
    class_table<Projection>().find(*this).assign(*this, other);
}

void Projection::fields(FieldVisitor& v) const {
    v.integer("d_in", d_in, 0, INT32_MAX, "input dimension");
    v.integer("d_out", d_out, 0, 1 << 30, "output dimension");
}

namespace {

/// Vectors with larger components are scaled, since sums of products might
/// overflow.
constexpr float large = 0x1p64f;

void check_not_empty(const Projection& p, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            p.d_in > 0 && p.d_out >= 0,
            "Projection::%s: the projection is empty (from %d dimensions to %d)",
            where,
            p.d_in,
            p.d_out);
}

/// Calls multiply(scaled) for a vector whose largest component is `largest`,
/// after scaling it down, and scales the result y up.
template <class F>
void multiply_scaled(
        float largest,
        size_t size,
        const float* x,
        size_t d_out,
        float* y,
        F&& multiply) {
    const float up = std::ldexp(1.0f, std::ilogb(largest) - 1);
    const Scratch scaled(size);
    std::transform(
            x, x + size, scaled.get(), [&](float v) { return v * (1 / up); });
    multiply(scaled.get());
    std::transform(y, y + d_out, y, [&](float v) { return v * up; });
}

} // namespace

void Projection::apply(size_t n, const float* x, float* y) const {
    check_not_empty(*this, "apply");
    if (simd::max_abs(n * d_in, x) <= large) {
        multiply(n, x, y);
        return;
    }
    for (size_t i = 0; i < n; i++, x += d_in, y += d_out) {
        const float largest = simd::max_abs(d_in, x);
        if (largest <= large) {
            multiply(1, x, y);
        } else {
            multiply_scaled(largest, d_in, x, d_out, y, [&](const float* v) {
                multiply(1, v, y);
            });
        }
    }
}

void Projection::apply_sparse(const SparseVectors& x, float* y) const {
    check_not_empty(*this, "apply_sparse");
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.d == d_in,
            "Projection::apply_sparse: the vectors have %" PRId64
            " dimensions, expected %d",
            int64_t(x.d),
            d_in);
    if (x.n == 0) {
        return;
    }
    const auto largest_of = [&](idx_t begin, idx_t end) {
        const int64_t first = x.indptr[begin], last = x.indptr[end];
        return first == last ? 0
                             : simd::max_abs(last - first, x.values + first);
    };
    if (largest_of(0, x.n) <= large) {
        multiply_sparse(x, y);
        return;
    }
    for (idx_t i = 0; i < x.n; i++, y += d_out) {
        const SparseVectors row = x.slice(i, i + 1);
        const float largest = largest_of(i, i + 1);
        if (largest <= large) {
            multiply_sparse(row, y);
            continue;
        }
        const int64_t begin = row.indptr[0], end = row.indptr[1];
        const int64_t indptr[2] = {0, end - begin};
        multiply_scaled(
                largest,
                end - begin,
                x.values + begin,
                d_out,
                y,
                [&](const float* v) {
                    multiply_sparse({1, x.d, indptr, x.indices + begin, v}, y);
                });
    }
}

void Projection::multiply_sparse(const SparseVectors& x, float* y) const {
    const Scratch dense(d_in);
    for (idx_t i = 0; i < x.n; i++, y += d_out) {
        x.copy_dense(i, dense.get());
        multiply(1, dense.get(), y);
    }
}

} // namespace faiss_ext
