// SPDX-License-Identifier: MIT
// Compares a batch of queries with the vectors of an IndexSparseKernel.

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/kernels/Kernel.h>

#include "indexes/SparseSegment.h"
#include "indexes/SparseTimes.h"

namespace faiss_ext {

/// A batch of queries, and the vectors that it is compared with.
struct SparseBatch {
    using Segments = std::vector<std::unique_ptr<SparseSegment>>;
    using Hits = std::vector<std::vector<Hit>>; ///< of each query, in any order

    const Kernel& kernel;
    const faiss::MetricType metric;
    const Segments& segments;
    const SparseVectors x;
    const faiss::IDSelector* const sel; ///< of places; may be null

    /**
     * Compares the queries with all vectors, by lists or by dense rows,
     * whichever is faster.
     *
     * @param empty  hits of a query, before the first
     * @param times  of earlier batches
     */
    Hits search(const SparseHits& empty, SparseTimes& times) const;

    /// Compares the queries with the given rows, which have the given places.
    Hits compare(
            const SparseHits& empty,
            const std::vector<SparseRow>& rows,
            const std::vector<idx_t>& places) const;

   private:
    SparseTimes::Seconds measure(const SharedSum& sum, const SparseHits& empty)
            const;
};

} // namespace faiss_ext
