// SPDX-License-Identifier: MIT
// One sparse vector.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <faiss_ext/core/SparseVectors.h>

namespace faiss_ext {

/// Components of a sparse vector, by ascending column.
struct SparseRow {
    std::span<const int32_t> columns;
    std::span<const float> values;

    size_t size() const {
        return columns.size();
    }

    static SparseRow of(const SparseVectors& x, idx_t i) {
        const size_t n = x.num_components(i);
        return {{x.indices + x.indptr[i], n}, {x.values + x.indptr[i], n}};
    }
};

} // namespace faiss_ext
