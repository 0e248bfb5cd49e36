// SPDX-License-Identifier: MIT
#include <faiss_ext/core/SparseVectors.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"

namespace faiss_ext {

namespace {

constexpr idx_t vectors_at_a_time = 1024;

void check_layout(const SparseVectors& x, const char* where) {
    constexpr idx_t most = std::numeric_limits<int32_t>::max();
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.d > 0 && x.d <= most,
            "%s: the dimension of the sparse vectors is %" PRId64
            ", expected 1 to %" PRId64,
            where,
            int64_t(x.d),
            int64_t(most));
    check_batch(x.n, x.indptr, where);
    if (x.n == 0) {
        return;
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.indptr[0] >= 0,
            "%s: indptr begins with %" PRId64 ", expected 0 or more",
            where,
            x.indptr[0]);
    for (idx_t i = 0; i < x.n; i++) {
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                x.indptr[i] <= x.indptr[i + 1],
                i,
                format_message("%s: indptr of ", where),
                format_message(
                        " begins at %" PRId64 " and ends at %" PRId64
                        ", expected numbers that do not descend",
                        x.indptr[i],
                        x.indptr[i + 1]));
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.indptr[x.n] == x.indptr[0] || (x.indices && x.values),
            "%s: the pointer to the columns or components is null",
            where);
}

/// Checks the components of a vector. Returns whether it is canonical.
bool check_vector(const SparseVectors& x, idx_t i, const char* where) {
    bool is_canonical = true;
    int64_t last = -1;
    for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; j++) {
        const int32_t column = x.indices[j];
        const float value = x.values[j];
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                column >= 0 && column < x.d,
                i,
                format_message("%s: ", where),
                format_message(
                        " has a component in column %d, expected columns from 0 to %" PRId64,
                        column,
                        int64_t(x.d - 1)));
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                std::isfinite(value),
                i,
                format_message("%s: component %d of ", where, column),
                format_message(" is %g, expected a finite number", value));
        is_canonical = is_canonical && column > last && value != 0;
        last = column;
    }
    return is_canonical;
}

/// Writes the components of a vector in canonical form; returns their number.
size_t write_canonical(
        const SparseVectors& x,
        idx_t i,
        std::vector<std::pair<int32_t, float>>& work,
        int32_t* indices,
        float* values) {
    work.clear();
    for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; j++) {
        work.emplace_back(x.indices[j], x.values[j]);
    }
    // equal columns stay in order, so that their sum does not depend on others
    std::stable_sort(
            work.begin(), work.end(), [](const auto& a, const auto& b) {
                return a.first < b.first;
            });
    size_t n = 0;
    for (size_t j = 0; j < work.size();) {
        const int32_t column = work[j].first;
        double sum = 0;
        for (; j < work.size() && work[j].first == column; j++) {
            sum += work[j].second;
        }
        if (float(sum) != 0) {
            indices[n] = column;
            values[n++] = float(sum);
        }
    }
    return n;
}

} // namespace

CanonicalVectors::CanonicalVectors(const SparseVectors& x, const char* where)
        : vectors(x) {
    check_layout(x, where);
    std::atomic<bool> are_canonical{true};
    parallel_blocks(x.n, vectors_at_a_time, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            if (!check_vector(x, i, where)) {
                are_canonical = false;
            }
        }
    });
    if (are_canonical) {
        return;
    }
    const int64_t first = x.indptr[0], total = x.indptr[x.n] - first;
    indptr.assign(x.n + 1, 0);
    indices.resize(total);
    values.resize(total);
    parallel_blocks(x.n, vectors_at_a_time, [&](idx_t begin, idx_t end) {
        std::vector<std::pair<int32_t, float>> work;
        for (idx_t i = begin; i < end; i++) {
            const int64_t at = x.indptr[i] - first;
            indptr[i + 1] = int64_t(write_canonical(
                    x, i, work, indices.data() + at, values.data() + at));
        }
    });
    // close the gaps that sums and zeros have left
    for (idx_t i = 0; i < x.n; i++) {
        const int64_t from = x.indptr[i] - first, to = indptr[i];
        const int64_t size = indptr[i + 1];
        std::copy_n(indices.begin() + from, size, indices.begin() + to);
        std::copy_n(values.begin() + from, size, values.begin() + to);
        indptr[i + 1] = to + size;
    }
    indices.resize(indptr[x.n]);
    values.resize(indptr[x.n]);
    // a sum may overflow
    vectors = {x.n, x.d, indptr.data(), indices.data(), values.data()};
    parallel_blocks(x.n, vectors_at_a_time, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            check_vector(vectors, i, where);
        }
    });
}

} // namespace faiss_ext
