// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/Index.h>

#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** The base class of indexes that take sparse vectors.
 *
 * Each function does the same as the one of faiss::Index with this name, for
 * dense or sparse vectors. Ids are positions. The functions of sparse_calls.h
 * call these; they also handle ids of the user's choice, and indexes that
 * several threads share.
 */
struct SparseInput {
    virtual ~SparseInput() = default;

    /// Whether all parts of the index that get vectors take sparse ones.
    virtual bool takes_sparse() const {
        return true;
    }

    virtual void train_batch(const VectorBatch& x) = 0;
    virtual void add_batch(const VectorBatch& x) = 0;

    virtual void search_batch(
            const VectorBatch& x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const = 0;

    virtual void range_search_batch(
            const VectorBatch& x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params) const = 0;
};

} // namespace faiss_ext
