// SPDX-License-Identifier: MIT
// Calls of indexes with vectors that may be dense or sparse.

#pragma once

#include <vector>

#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

/// Copies of some vectors of a batch.
class GatheredVectors {
   public:
    GatheredVectors(const VectorBatch& x, const std::vector<idx_t>& numbers);
    GatheredVectors(const GatheredVectors&) = delete;
    GatheredVectors& operator=(const GatheredVectors&) = delete;

    VectorBatch get() const;

   private:
    idx_t n, d;
    bool is_sparse;
    std::vector<float> values; ///< of all components, or of sparse ones
    std::vector<int64_t> indptr;
    std::vector<int32_t> columns;
};

// These call the function of the index for dense or for sparse vectors. A flat
// index must be an IndexSparseKernel if the vectors are sparse.

void add(faiss::Index& index, const VectorBatch& x);
void train(faiss::Index& index, const VectorBatch& x);

void search(
        const faiss::Index& index,
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params = nullptr);

void search_scores(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params);

void compute_score_subset(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* scores,
        const idx_t* labels);

void compute_distance_subset(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* distances,
        const idx_t* labels);

/// The labels are ids.
void compute_kernel_subset(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* values,
        const idx_t* labels);

} // namespace faiss_ext
