// SPDX-License-Identifier: MIT
// Checks and dense copies of sparse vectors from a caller.

#pragma once

#include <algorithm>
#include <cinttypes>
#include <vector>

#include <faiss_ext/core/SparseVectors.h>

#include "core/check.h"
#include "core/parallel.h"
#include "core/sample.h"

namespace faiss_ext {

/// Throws unless sparse vectors have dimension d.
inline void check_dimension(
        const SparseVectors& x,
        idx_t d,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.d == d,
            "%s: the vectors have %" PRId64 " dimensions, expected %" PRId64,
            where,
            int64_t(x.d),
            int64_t(d));
}

/// Calls check(size, values) for the components of each canonical vector that
/// has any. Errors name the vector and the column.
template <class F>
void for_components(const SparseVectors& x, F&& check) {
    parallel_blocks(x.n, 256, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            const size_t size = x.num_components(i);
            if (size > 0) {
                const int64_t at = x.indptr[i];
                const ComponentNumbers numbers(x.indices + at);
                with_numbers_from(i, [&] { check(size, x.values + at); });
            }
        }
    });
}

/// Vectors that a bandwidth, or a transform without learn_sparse, is learnt
/// from.
constexpr idx_t most_sampled = 65536;

/// Numbers of up to `most` vectors: all in order, or some drawn at random.
inline std::vector<idx_t> training_ids(idx_t n, idx_t most) {
    constexpr uint64_t seed = 1234;
    return n > most ? sample_ids(n, most, seed) : all_ids(n);
}

/// The most vectors of dimension d that dense_sample copies: at most 1 GB, and
/// at least one.
inline idx_t most_dense(idx_t d) {
    constexpr idx_t most_floats = 1 << 28;
    return std::clamp<idx_t>(most_floats / d, 1, most_sampled);
}

/// Dense copies of vectors drawn at random: at most 65,536 in at most 1 GB.
inline std::vector<float> dense_sample(const SparseVectors& x) {
    const std::vector<idx_t> ids = training_ids(x.n, most_dense(x.d));
    std::vector<float> dense(ids.size() * x.d);
    for (size_t i = 0; i < ids.size(); i++) {
        x.copy_dense(ids[i], &dense[i * x.d]);
    }
    return dense;
}

/// Dense vectors as sparse ones in canonical form.
inline SparseRows sparse_copy(idx_t n, const float* x, idx_t d) {
    SparseRows rows;
    rows.d = d;
    rows.indptr.push_back(0);
    for (idx_t i = 0; i < n; i++) {
        for (idx_t c = 0; c < d; c++) {
            if (x[i * d + c] != 0) {
                rows.indices.push_back(int32_t(c));
                rows.values.push_back(x[i * d + c]);
            }
        }
        rows.indptr.push_back(int64_t(rows.indices.size()));
    }
    return rows;
}

} // namespace faiss_ext
