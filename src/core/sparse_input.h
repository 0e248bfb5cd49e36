// SPDX-License-Identifier: MIT
// Checks and dense copies of sparse vectors from a caller.

#pragma once

#include <algorithm>
#include <cinttypes>
#include <numeric>
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

/// Calls check(size, values) for the components of each vector that has any.
/// Errors name the vector and the column.
template <class F>
void for_components(const CanonicalVectors& x, F&& check) {
    parallel_blocks(x->n, 256, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            const size_t size = x->num_components(i);
            if (size > 0) {
                const int64_t at = x->indptr[i];
                const ComponentNumbers numbers(x->indices + at);
                with_numbers_from(i, [&] { check(size, x->values + at); });
            }
        }
    });
}

/// Dense copies of vectors drawn at random: at most 65,536 in at most 1 GB.
inline std::vector<float> dense_sample(const SparseVectors& x) {
    constexpr idx_t most_vectors = 65536, most_floats = 1 << 28;
    constexpr uint64_t seed = 1234;
    const idx_t most = std::clamp<idx_t>(most_floats / x.d, 1, most_vectors);
    std::vector<idx_t> ids(x.n);
    std::iota(ids.begin(), ids.end(), idx_t(0));
    if (x.n > most) {
        ids = sample_ids(x.n, most, seed);
    }
    std::vector<float> dense(ids.size() * x.d);
    for (size_t i = 0; i < ids.size(); i++) {
        x.copy_dense(ids[i], &dense[i * x.d]);
    }
    return dense;
}

} // namespace faiss_ext
