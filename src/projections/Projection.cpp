// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/Projection.h>

#include <algorithm>
#include <cmath>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
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
    v.integer("d_in", d_in, 0, 1 << 30, "input dimension");
    v.integer("d_out", d_out, 0, 1 << 30, "output dimension");
}

void Projection::apply(size_t n, const float* x, float* y) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0 && d_out >= 0,
            "Projection::apply: the projection is empty (from %d dimensions to %d)",
            d_in,
            d_out);
    constexpr float large = 0x1p64f;
    if (simd::max_abs(n * d_in, x) <= large) {
        multiply(n, x, y);
        return;
    }
    const Scratch scaled(d_in);
    for (size_t i = 0; i < n; i++, x += d_in, y += d_out) {
        const float largest = simd::max_abs(d_in, x);
        if (largest <= large) {
            multiply(1, x, y);
            continue;
        }
        const float up = std::ldexp(1.0f, std::ilogb(largest) - 1);
        std::transform(x, x + d_in, scaled.get(), [&](float v) {
            return v * (1 / up);
        });
        multiply(1, scaled.get(), y);
        std::transform(y, y + d_out, y, [&](float v) { return v * up; });
    }
}

} // namespace faiss_ext
