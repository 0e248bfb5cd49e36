// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// The vectors of a call, dense or sparse, in arrays of the caller.
struct VectorBatch {
    idx_t n = 0;
    idx_t d = 0;
    bool is_sparse = false;
    const float* dense = nullptr; ///< size n * d
    SparseVectors sparse;

    VectorBatch(idx_t n, const float* x, idx_t d) : n(n), d(d), dense(x) {}
    VectorBatch(const SparseVectors& x)
            : n(x.n), d(x.d), is_sparse(true), sparse(x) {}

    /// The vectors from `begin` up to `end`.
    VectorBatch slice(idx_t begin, idx_t end) const {
        return is_sparse ? VectorBatch(sparse.slice(begin, end))
                         : VectorBatch(end - begin, dense + begin * d, d);
    }
};

} // namespace faiss_ext
