// SPDX-License-Identifier: MIT
// Pairs of sparse vectors, as near_duplicates compares them.

#pragma once

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/kernels/Kernel.h>

#include "indexes/OrderedRows.h"
#include "indexes/RowPairs.h"
#include "indexes/SumBound.h"

namespace faiss_ext_test {

/// The pairs of rows whose score is at most `score`.
struct KernelPairs {
    SumBound bound;
    OrderedRows rows;
    RowPairs pairs;

    KernelPairs(const SparseVectors& x, const Kernel& kernel, float score)
            : bound(*kernel.shared_sum(faiss::METRIC_INNER_PRODUCT),
                    score,
                    size_t(x.d)),
              rows(x, bound),
              pairs(rows, bound) {}
};

} // namespace faiss_ext_test
