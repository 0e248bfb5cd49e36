#include "simd/projection.h"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/projection.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

#include "simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

// Panels and vectors of a tile, whose sums stay in registers: 24 of 32
// registers, 12 of 16, or 8 of 16 where a panel takes four.
#if HWY_TARGET <= HWY_AVX3
constexpr size_t tile_panels = 4, tile_rows = 6;
#elif HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
constexpr size_t tile_panels = 1, tile_rows = 6;
#else
constexpr size_t tile_panels = 1, tile_rows = 2;
#endif

/// Components summed in float.
constexpr size_t run_length = 256;

/// P panels against R rows of x over one run of components; the sums are added
/// to total, or stored in it if `first`.
template <size_t P, size_t R>
HWY_NOINLINE void tile(
        const float* HWY_RESTRICT x,
        const float* HWY_RESTRICT panels,
        size_t d,
        size_t length,
        bool first,
        double* HWY_RESTRICT total) {
    const Tag tag;
    constexpr size_t columns = P * panel_vectors;
    Vec sum[R][columns];
    for (size_t r = 0; r < R; r++) {
        for (size_t c = 0; c < columns; c++) {
            sum[r][c] = hn::Zero(tag);
        }
    }
    for (size_t k = 0; k < length; k++) {
        Vec a[columns];
        for (size_t c = 0; c < columns; c++) {
            a[c] = hn::LoadU(
                    tag,
                    panels + (c / panel_vectors * d + k) * panel_width +
                            c % panel_vectors * vector_lanes);
        }
        for (size_t r = 0; r < R; r++) {
            const Vec v = hn::Set(tag, x[r * d + k]);
            for (size_t c = 0; c < columns; c++) {
                sum[r][c] = hn::MulAdd(v, a[c], sum[r][c]);
            }
        }
    }
    for (size_t r = 0; r < R; r++) {
        double* to = total + r * P * panel_width;
        HWY_ALIGN float values[P * panel_width];
        for (size_t c = 0; c < columns; c++) {
            hn::Store(sum[r][c], tag, values + c * vector_lanes);
        }
        for (size_t j = 0; j < P * panel_width; j++) {
            to[j] = first ? values[j] : to[j] + values[j];
        }
    }
}

/// The rows that are left over by tiles of R + 1 rows or more.
template <size_t P, size_t R>
void rest(
        size_t n,
        const float* x,
        const float* panels,
        size_t d,
        size_t length,
        bool first,
        double* total) {
    if constexpr (R > 0) {
        if (n == R) {
            tile<P, R>(x, panels, d, length, first, total);
        } else {
            rest<P, R - 1>(n, x, panels, d, length, first, total);
        }
    }
}

/// P panels against all rows of x.
template <size_t P>
void panel_group(
        size_t n,
        const float* x,
        const float* panels,
        size_t d,
        double* total) {
    if (d == 0) {
        std::fill_n(total, n * P * panel_width, 0.0);
    }
    for (size_t k = 0; k < d; k += run_length) {
        const size_t length = std::min(run_length, d - k);
        const float* a = panels + k * panel_width;
        size_t i = 0;
        for (; i + tile_rows <= n; i += tile_rows) {
            tile<P, tile_rows>(
                    x + i * d + k,
                    a,
                    d,
                    length,
                    k == 0,
                    total + i * P * panel_width);
        }
        rest<P, tile_rows - 1>(
                n - i,
                x + i * d + k,
                a,
                d,
                length,
                k == 0,
                total + i * P * panel_width);
    }
}

void project_target(
        size_t n,
        const float* x,
        size_t m,
        const float* packed,
        size_t d,
        float* y) {
    std::vector<double> total(n * tile_panels * panel_width);
    for (size_t j = 0; j < m;) {
        const float* panels = packed + j * d;
        size_t width = panel_width;
        if (j + tile_panels * panel_width <= m + panel_width - 1) {
            width *= tile_panels;
            panel_group<tile_panels>(n, x, panels, d, total.data());
        } else {
            panel_group<1>(n, x, panels, d, total.data());
        }
        const size_t columns = std::min(width, m - j);
        for (size_t i = 0; i < n; i++) {
            for (size_t c = 0; c < columns; c++) {
                y[i * m + j + c] = static_cast<float>(total[i * width + c]);
            }
        }
        j += width;
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(project_target);

void project(
        size_t n,
        const float* x,
        size_t m,
        const float* packed,
        size_t d,
        float* y) {
    HWY_DYNAMIC_DISPATCH(project_target)(n, x, m, packed, d, y);
}

} // namespace faiss_ext::simd
#endif
