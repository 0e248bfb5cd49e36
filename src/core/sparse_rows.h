// SPDX-License-Identifier: MIT
// Sparse vectors that own their arrays.

#pragma once

#include <vector>

#include <faiss_ext/core/SparseVectors.h>

namespace faiss_ext {

struct SparseRows {
    idx_t d = 0;
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;
    std::vector<float> values;

    SparseVectors get() const {
        return {idx_t(indptr.size()) - 1,
                d,
                indptr.data(),
                indices.data(),
                values.data()};
    }
};

} // namespace faiss_ext
