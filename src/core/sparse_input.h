// SPDX-License-Identifier: MIT
// Checks of sparse vectors from a caller.

#pragma once

#include <cinttypes>

#include <faiss_ext/core/SparseVectors.h>

#include "core/check.h"
#include "core/parallel.h"

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

} // namespace faiss_ext
