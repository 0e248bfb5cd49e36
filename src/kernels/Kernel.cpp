// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/Kernel.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "core/parallel.h"
#include "core/sparse_input.h"
#include "kernels/SparseQuery.h"
#include "simd/elementwise.h"

namespace faiss_ext {

void Kernel::fields(FieldVisitor&) const {}

void Kernel::init() {
    check_fields(*this);
}

void Kernel::restore() {
    init();
}

void Kernel::train(idx_t, const float*, size_t) {}

void Kernel::train_sparse(const SparseVectors& x) {
    if (!is_trained) {
        const CanonicalVectors canonical(x, "train");
        const std::vector<float> sample = dense_sample(canonical.get());
        train(idx_t(sample.size()) / x.d, sample.data(), x.d);
    }
}

void Kernel::self_values(size_t n, const float* x, size_t d, float* out) const {
    for (size_t i = 0; i < n; i++) {
        block(1, x + i * d, 1, x + i * d, d, out + i);
    }
}

void Kernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    std::vector<float> self(n + m);
    self_values(n, x, d, self.data());
    self_values(m, y, d, self.data() + n);
    block(n, x, m, y, d, out);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            const float v = self[i] + self[n + j] - 2 * out[i * m + j];
            // for identical vectors rounding may give a negative value
            out[i * m + j] = v < 0 ? 0 : v;
        }
    }
}

void Kernel::score_block(
        faiss::MetricType metric,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    if (metric == faiss::METRIC_L2) {
        distance_block(n, x, m, y, d, out);
    } else {
        block(n, x, m, y, d, out);
        std::transform(out, out + n * m, out, std::negate<>());
    }
}

void Kernel::values_of_scores(faiss::MetricType metric, size_t n, float* scores)
        const {
    if (metric != faiss::METRIC_L2) {
        std::transform(scores, scores + n, scores, std::negate<>());
    }
}

bool Kernel::has_unit_vectors() const {
    return false;
}

bool Kernel::is_normalized() const {
    return has_unit_vectors();
}

bool Kernel::ignores_zeros() const {
    return false;
}

ComponentNorm Kernel::norm_of_unshared() const {
    return ComponentNorm::none;
}

std::optional<SharedSum> Kernel::shared_sum(faiss::MetricType) const {
    return std::nullopt;
}

void Kernel::check_input(idx_t n, const float* x, size_t d, const char* where)
        const {
    check_finite(n, x, d, where);
    check_self_values(n, x, d, where);
}

void Kernel::check_self_values(
        idx_t n,
        const float* x,
        size_t d,
        const char* where,
        float least) const {
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        std::vector<float> self(end - begin);
        self_values(end - begin, x + begin * d, d, self.data());
        for (idx_t i = begin; i < end; i++) {
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    self[i - begin] <= max_self_value,
                    i,
                    format_message(
                            "%s: the kernel %s overflows: k(x, x) of ",
                            where,
                            description().c_str()),
                    format_message(
                            " is %g, expected at most %g; scale the vectors down",
                            self[i - begin],
                            max_self_value));
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    least == 0 || self[i - begin] >= least ||
                            simd::max_abs(d, x + i * d) == 0,
                    i,
                    format_message(
                            "%s: the kernel %s underflows: k(x, x) of ",
                            where,
                            description().c_str()),
                    format_message(
                            " is %g, expected at least %g; scale the vectors up, or set this vector to 0",
                            self[i - begin],
                            least));
        }
    });
}

namespace {

/// Throws if the length of a vector exceeds the range of float.
void check_lengths(const SparseVectors& x, const char* where) {
    if (x.n == 0) {
        return;
    }
    constexpr double largest = std::numeric_limits<float>::max();
    constexpr float always_short = 1e33f; // in up to 2^31 dimensions
    const float* values = x.values + x.indptr[0];
    if (simd::max_abs(x.indptr[x.n] - x.indptr[0], values) <= always_short) {
        return;
    }
    for (idx_t i = 0; i < x.n; i++) {
        double square = 0;
        for (const float v : SparseRow::of(x, i).values) {
            square += double(v) * v;
        }
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                std::sqrt(square) <= largest,
                i,
                format_message("%s: the length of ", where),
                format_message(
                        " is %g, expected at most %g; scale the vectors down",
                        std::sqrt(square),
                        largest));
    }
}

} // namespace

void Kernel::check_sparse_input(const CanonicalVectors& x, const char* where)
        const {
    for_components(x.get(), [&](size_t size, const float* values) {
        check_input(1, values, size, where);
    });
    // the norm of components that another vector does not have is a float
    if (norm_of_unshared() == ComponentNorm::l2 && is_normalized()) {
        check_lengths(x.get(), where);
    }
}

float Kernel::operator()(const float* x, const float* y, size_t d) const {
    float value;
    block(1, x, 1, y, d, &value);
    return value;
}

namespace {

void check_has_bandwidth(const Kernel& kernel) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            kernel.is_trained,
            "Kernel::gram: %s has no bandwidth yet; call train, or give gamma in the string",
            kernel.description().c_str());
}

/// Columns of a matrix that a thread computes at a time.
constexpr idx_t columns = 1024;

} // namespace

void Kernel::gram(
        idx_t n,
        const float* x,
        idx_t m,
        const float* y,
        size_t d,
        float* out) const {
    check_has_bandwidth(*this);
    check_input(n, x, d, "Kernel::gram");
    check_input(m, y, d, "Kernel::gram");
    // blocks of rows, and blocks of columns to copy into place
    constexpr idx_t rows = 64;
    const idx_t row_blocks = (n + rows - 1) / rows;
    const idx_t column_blocks = (m + columns - 1) / columns;
    parallel_blocks(row_blocks * column_blocks, 1, [&](idx_t b, idx_t) {
        const idx_t i0 = b / column_blocks * rows;
        const idx_t j0 = b % column_blocks * columns;
        const idx_t ni = std::min(rows, n - i0), nj = std::min(columns, m - j0);
        std::vector<float> values(ni * nj);
        block(ni, x + i0 * d, nj, y + j0 * d, d, values.data());
        for (idx_t i = 0; i < ni; i++) {
            std::copy_n(&values[i * nj], nj, out + (i0 + i) * m + j0);
        }
    });
}

void Kernel::gram(const SparseVectors& x, const SparseVectors& y, float* out)
        const {
    constexpr const char* where = "Kernel::gram";
    check_has_bandwidth(*this);
    FAISS_EXT_THROW_IF_NOT_FMT(
            ignores_zeros(),
            "Kernel::gram: the kernel %s may depend on components that are 0 in both vectors; give dense vectors",
            description().c_str());
    const CanonicalVectors a(x, where), b(y, where);
    check_dimension(y, x.d, where);
    check_sparse_input(a, where);
    check_sparse_input(b, where);
    std::vector<SparseRow> rows;
    rows.reserve(y.n);
    for (idx_t j = 0; j < y.n; j++) {
        rows.push_back(SparseRow::of(b.get(), j));
    }
    const idx_t column_blocks = (y.n + columns - 1) / columns;
    parallel_blocks(x.n * column_blocks, 1, [&](idx_t block, idx_t) {
        const idx_t i = block / column_blocks;
        const idx_t j = block % column_blocks * columns;
        const auto some =
                std::span(rows).subspan(j, std::min(columns, y.n - j));
        const SparseQuery query(*this, SparseRow::of(a.get(), i));
        query.values(some, out + i * y.n + j);
    });
}

std::string Kernel::description() const {
    return class_table<Kernel>().knows(*this) ? object_to_string(*this)
                                              : type_name(typeid(*this));
}

std::unique_ptr<Kernel> Kernel::clone() const {
    return class_table<Kernel>().find(*this).copy(*this);
}

void Kernel::assign(const Kernel& other) {
    class_table<Kernel>().find(*this).assign(*this, other);
}

} // namespace faiss_ext
