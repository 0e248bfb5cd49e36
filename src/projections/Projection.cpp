#include <faiss_ext/projections/Projection.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/scratch.h"
#include "simd/elementwise.h"

namespace faiss_ext {

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
