// SPDX-License-Identifier: MIT
// Random samples of a training set, and copies of them.

#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Draws k of the numbers below n without replacement, in random order; all of
/// them if k >= n.
std::vector<idx_t> sample_ids(idx_t n, idx_t k, uint64_t seed);

/// The numbers below n, in order.
std::vector<idx_t> all_ids(idx_t n);

/// Copies these rows of x; a row has d components.
std::vector<float> gather_rows(
        const std::vector<idx_t>& ids,
        const float* x,
        size_t d);
SparseRows gather_rows(const std::vector<idx_t>& ids, const SparseVectors& x);

/// Vectors of a batch that own their arrays.
struct VectorSample {
    idx_t n = 0;
    idx_t d = 0;
    bool is_sparse = false;
    std::vector<float> dense; ///< of a dense batch
    SparseRows sparse;        ///< of a sparse one

    VectorBatch get() const {
        return is_sparse ? VectorBatch(sparse.get())
                         : VectorBatch(n, dense.data(), d);
    }

    /// The components of all vectors, without those that a sparse one omits.
    std::vector<float>& components() {
        return is_sparse ? sparse.values : dense;
    }
};

VectorSample gather_rows(const std::vector<idx_t>& ids, const VectorBatch& x);

} // namespace faiss_ext
