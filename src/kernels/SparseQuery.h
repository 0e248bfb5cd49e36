// SPDX-License-Identifier: MIT
// Compares a sparse vector with others.

#pragma once

#include <span>

#include <faiss_ext/kernels/Kernel.h>

#include "core/SparsePairs.h"

namespace faiss_ext {

/// A sparse vector that a kernel compares with others, on the calling thread.
/// The kernel and the vectors must outlive the query.
class SparseQuery : public SparsePairs {
   public:
    SparseQuery(const Kernel& kernel, const SparseRow& x)
            : SparsePairs(x, kernel.norm_of_unshared()), kernel(kernel) {}

    /// Computes scores (Kernel::score_block) for rows.
    void scores(
            faiss::MetricType metric,
            std::span<const SparseRow> rows,
            float* out) const {
        for_rows(
                rows,
                out,
                [&](const float* query,
                    size_t m,
                    const float* dense,
                    size_t width,
                    float* to) {
                    kernel.score_block(metric, 1, query, m, dense, width, to);
                });
    }

    /// Computes kernel values for rows.
    void values(std::span<const SparseRow> rows, float* out) const {
        for_rows(
                rows,
                out,
                [&](const float* query,
                    size_t m,
                    const float* dense,
                    size_t width,
                    float* to) {
                    kernel.block(1, query, m, dense, width, to);
                });
    }

   private:
    const Kernel& kernel;
};

} // namespace faiss_ext
