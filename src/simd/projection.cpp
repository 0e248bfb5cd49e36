// SPDX-License-Identifier: MIT
#include "simd/projection.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/constant_count.h"
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/projection.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

#include "simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

// Panels and vectors of a tile. Their sums stay in registers: 24 of 32
// registers, 12 of 16, or 8 of 16 if a panel takes four.
#if HWY_TARGET <= HWY_AVX3
constexpr size_t tile_panels = 4, tile_rows = 6;
#elif HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
constexpr size_t tile_panels = 1, tile_rows = 6;
#else
constexpr size_t tile_panels = 1, tile_rows = 2;
#endif

/// Number of components summed in float.
constexpr size_t run_length = 256;

/// Output of a group of panels. `total` accumulates, in double, the products of
/// all runs but the last; the last run completes y.
struct Output {
    double* total;  ///< one row of P panels for each vector
    float* y;       ///< first column of the group
    size_t stride;  ///< of y
    size_t columns; ///< columns of y in the group
};

/// Adds the sums of a run to row i, or completes the row.
template <size_t width>
HWY_INLINE void finish_run(
        float* HWY_RESTRICT values,
        bool is_first,
        bool is_last,
        const Output& out,
        size_t i) {
    if (!is_last) {
        double* HWY_RESTRICT total = out.total + i * width;
        for (size_t j = 0; j < width; j++) {
            total[j] = is_first ? values[j] : total[j] + values[j];
        }
        return;
    }
    if (!is_first) { // otherwise there are no totals
        const double* HWY_RESTRICT total = out.total + i * width;
        for (size_t j = 0; j < width; j++) {
            values[j] = static_cast<float>(total[j] + values[j]);
        }
    }
    // products that are too small for float may sum to -0; with or without
    // zeros among the components the result is 0
    for (size_t j = 0; j < width; j++) {
        values[j] += 0.0f;
    }
    float* y = out.y + i * out.stride;
    if (HWY_LIKELY(out.columns == width)) {
        std::copy_n(values, width, y);
    } else {
        std::copy_n(values, out.columns, y);
    }
}

/// Multiplies P panels by R rows of x over one run of components. The output
/// starts at row i.
template <size_t P, size_t R>
HWY_NOINLINE void tile(
        const float* HWY_RESTRICT x,
        const float* HWY_RESTRICT panels,
        size_t d,
        size_t length,
        bool is_first,
        bool is_last,
        const Output& out,
        size_t i) {
    const Tag tag;
    constexpr size_t columns = P * panel_vectors, width = P * panel_width;
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
        HWY_ALIGN float values[width];
        for (size_t c = 0; c < columns; c++) {
            hn::Store(sum[r][c], tag, values + c * vector_lanes);
        }
        finish_run<width>(values, is_first, is_last, out, i + r);
    }
}

/// Multiplies P panels by all rows of x.
template <size_t P>
void panel_group(
        size_t n,
        const float* x,
        const float* panels,
        size_t d,
        const Output& out) {
    for (size_t k = 0; k < d; k += run_length) {
        const size_t length = std::min(run_length, d - k);
        for (size_t i = 0; i < n; i += tile_rows) {
            with_constant_count<tile_rows>(
                    std::min(tile_rows, n - i), [&](auto rows) {
                        tile<P, decltype(rows)::value>(
                                x + i * d + k,
                                panels + k * panel_width,
                                d,
                                length,
                                k == 0,
                                k + length == d,
                                out,
                                i);
                    });
        }
    }
}

/// Multiplies x by rows whose components are summed side by side, because each
/// sum waits for the one before.
template <size_t R>
HWY_INLINE void products_of_rows(
        const float* HWY_RESTRICT x,
        size_t d,
        const float* const* rows,
        float* HWY_RESTRICT y) {
    const hn::CappedTag<float, 1> tag;
    double total[R] = {};
    for (size_t k = 0; k < d; k += run_length) {
        const size_t end = std::min(d, k + run_length);
        hn::Vec<decltype(tag)> sum[R];
        for (size_t r = 0; r < R; r++) {
            sum[r] = hn::Zero(tag);
        }
        for (size_t i = k; i < end; i++) {
            const auto v = hn::LoadU(tag, x + i);
            for (size_t r = 0; r < R; r++) {
                sum[r] = hn::MulAdd(v, hn::LoadU(tag, rows[r] + i), sum[r]);
            }
        }
        for (size_t r = 0; r < R; r++) {
            total[r] += hn::GetLane(sum[r]);
        }
    }
    for (size_t r = 0; r < R; r++) {
        y[r] = static_cast<float>(total[r]) + 0.0f; // as finish_run
    }
}

void project_on_rows_target(
        const float* x,
        const float* matrix,
        size_t d,
        size_t n,
        const uint32_t* ids,
        float* y) {
    constexpr size_t together = 8;
    for (size_t i = 0; i < n; i += together) {
        const float* rows[together];
        float sums[together];
        for (size_t r = 0; r < together; r++) { // the last is repeated
            rows[r] = matrix + ids[std::min(i + r, n - 1)] * d;
        }
        if (n - i <= 2) {
            products_of_rows<2>(x, d, rows, sums);
        } else {
            products_of_rows<together>(x, d, rows, sums);
        }
        std::copy_n(sums, std::min(together, n - i), y + i);
    }
}

/// Components of a vector, in ascending columns. All others are zero.
struct Components {
    const int32_t* columns;
    const float* values;
    /// where the components of each run begin that has any, and the end
    std::vector<size_t> runs;

    Components(size_t count, const int32_t* columns, const float* values)
            : columns(columns), values(values) {
        const size_t last = count > 0 ? columns[count - 1] / run_length : 0;
        runs.reserve(std::min(count, last + 1) + 1);
        for (size_t i = 0; i < count;) {
            runs.push_back(i);
            const size_t end = (columns[i] / run_length + 1) * run_length;
            i = std::partition_point(
                        columns + i,
                        columns + std::min(count, i + run_length),
                        [end](int32_t column) {
                            return size_t(column) < end;
                        }) -
                    columns;
        }
        runs.push_back(count);
    }
};

size_t take_nonzero_target(
        size_t d,
        const float* HWY_RESTRICT x,
        int32_t* HWY_RESTRICT columns,
        float* HWY_RESTRICT values) {
    const Tag tag;
    const hn::RebindToSigned<Tag> integers;
    const auto first = hn::Iota(integers, 0);
    size_t k = 0, n = 0;
    for (; k + vector_lanes <= d; k += vector_lanes) {
        const Vec v = hn::LoadU(tag, x + k);
        const auto is_taken = hn::Not(hn::Eq(v, hn::Zero(tag)));
        const auto column = hn::Add(first, hn::Set(integers, int32_t(k)));
        hn::StoreU(hn::Compress(v, is_taken), tag, values + n);
        hn::StoreU(
                hn::Compress(column, hn::RebindMask(integers, is_taken)),
                integers,
                columns + n);
        n += hn::CountTrue(tag, is_taken);
    }
    for (; k < d; k++) {
        columns[n] = int32_t(k);
        values[n] = x[k];
        n += x[k] != 0;
    }
    return n;
}

/// Multiplies P panels by one vector, which has components. The sums equal
/// those of panel_group because zeros and runs of zeros add nothing.
template <size_t P>
void sparse_group(
        const Components& x,
        const float* HWY_RESTRICT panels,
        size_t d,
        const Output& out) {
    const Tag tag;
    constexpr size_t columns = P * panel_vectors, width = P * panel_width;
    const size_t nruns = x.runs.size() - 1;
    for (size_t run = 0; run < nruns; run++) {
        Vec sum[columns];
        for (size_t c = 0; c < columns; c++) {
            sum[c] = hn::Zero(tag);
        }
        for (size_t i = x.runs[run]; i < x.runs[run + 1]; i++) {
            const float* from = panels + size_t(x.columns[i]) * panel_width;
            const Vec v = hn::Set(tag, x.values[i]);
            for (size_t c = 0; c < columns; c++) {
                const size_t at = c / panel_vectors * d * panel_width +
                        c % panel_vectors * vector_lanes;
                sum[c] = hn::MulAdd(v, hn::LoadU(tag, from + at), sum[c]);
            }
        }
        HWY_ALIGN float values[width];
        for (size_t c = 0; c < columns; c++) {
            hn::Store(sum[c], tag, values + c * vector_lanes);
        }
        finish_run<width>(values, run == 0, run + 1 == nruns, out, 0);
    }
}

/// Returns whether skipping the zeros of a vector pays.
bool is_sparse(const float* x, size_t d) {
    const size_t zeros = std::count(x, x + d, 0.0f);
    return d >= 64 && zeros > d / 4;
}

template <size_t P>
using Panels = std::integral_constant<size_t, P>;

/// Calls multiply(P, panels, out) for groups of P panels.
template <class F>
void for_groups(
        size_t n,
        size_t m,
        const float* packed,
        size_t d,
        float* y,
        F&& multiply) {
    std::vector<double> total(
            d > run_length ? n * tile_panels * panel_width : 0);
    for (size_t j = 0; j < m;) {
        const bool is_wide =
                j + tile_panels * panel_width <= m + panel_width - 1;
        const size_t width = (is_wide ? tile_panels : 1) * panel_width;
        const Output out{total.data(), y + j, m, std::min(width, m - j)};
        if (is_wide) { // NOLINT(bugprone-branch-clone): the panels differ
            multiply(Panels<tile_panels>(), packed + j * d, out);
        } else {
            multiply(Panels<1>(), packed + j * d, out);
        }
        j += width;
    }
}

void project_sparse_target(
        size_t count,
        const int32_t* columns,
        const float* values,
        size_t m,
        const float* packed,
        size_t d,
        float* y) {
    if (count == 0) {
        std::fill_n(y, m, 0.0f);
        return;
    }
    const Components x(count, columns, values);
    for_groups(1, m, packed, d, y, [&](auto P, const float* a, const auto& o) {
        sparse_group<P.value>(x, a, d, o);
    });
}

void project_target(
        size_t n,
        const float* x,
        size_t m,
        const float* packed,
        size_t d,
        float* y) {
    if (d == 0) {
        std::fill_n(y, n * m, 0.0f);
        return;
    }
    if (n == 1 && m > panel_width && is_sparse(x, d)) {
        // room for the next vector
        thread_local std::vector<int32_t> columns;
        thread_local std::vector<float> values;
        columns.resize(std::max(d, columns.size()));
        values.resize(columns.size());
        const size_t count =
                take_nonzero_target(d, x, columns.data(), values.data());
        project_sparse_target(
                count, columns.data(), values.data(), m, packed, d, y);
        return;
    }
    for_groups(n, m, packed, d, y, [&](auto P, const float* a, const auto& o) {
        panel_group<P.value>(n, x, a, d, o);
    });
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(project_target);
HWY_EXPORT(project_on_rows_target);
HWY_EXPORT(project_sparse_target);
HWY_EXPORT(take_nonzero_target);

void project(
        size_t n,
        const float* x,
        size_t m,
        const float* packed,
        size_t d,
        float* y) {
    HWY_DYNAMIC_DISPATCH(project_target)(n, x, m, packed, d, y);
}

void project_on_rows(
        const float* x,
        const float* matrix,
        size_t d,
        size_t n,
        const uint32_t* ids,
        float* y) {
    HWY_DYNAMIC_DISPATCH(project_on_rows_target)(x, matrix, d, n, ids, y);
}

void project_sparse(
        size_t count,
        const int32_t* columns,
        const float* values,
        size_t m,
        const float* packed,
        size_t d,
        float* y) {
    HWY_DYNAMIC_DISPATCH(project_sparse_target)
    (count, columns, values, m, packed, d, y);
}

size_t take_nonzero(size_t d, const float* x, int32_t* columns, float* values) {
    return HWY_DYNAMIC_DISPATCH(take_nonzero_target)(d, x, columns, values);
}

} // namespace faiss_ext::simd
#endif
