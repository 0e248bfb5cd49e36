// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexRefine.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/SparseInput.h>

namespace faiss_ext {

struct IndexFlatKernel;

/** A faiss::IndexRefine that stays consistent if an operation fails. Factories
 * make it for Refine(KFlat(...)), and for RFlat behind an index of this
 * library.
 *
 * add and train change both indexes or neither: if one of them refuses the
 * vectors, the other does not keep them. If the first index cannot remove the
 * vectors again, search and add throw until reset() is called. Exceptions of
 * kernels reach the caller, without a KernelExceptionGuard. A k_factor below 1
 * is an error.
 *
 * If the refine index is an IndexFlatKernel, its compute_distance_subset
 * compares the candidates, and results are ordered by distance and then by id.
 */
struct IndexRefineKernel : faiss::IndexRefine, SparseInput {
    /// The two indexes are deleted only if own_fields and own_refine_index are
    /// set.
    IndexRefineKernel(faiss::Index* base_index, faiss::Index* refine_index);
    IndexRefineKernel() = default;

    void train(idx_t n, const float* x) override;
    void add(idx_t n, const float* x) override;

    /** With every version of FAISS, plain search parameters with a selector
     * suffice. If the selector selects few vectors (at most 16,384 and ntotal /
     * 4, or ntotal / 64, or 4 k_factor * k), these are compared exactly.
     * Otherwise base_index finds candidates among the selected ones. All
     * selected vectors are compared if it finds fewer than k, if it is a graph
     * that finds fewer candidates than it was asked for, or if more than a
     * quarter of the results are in the farther half of the candidates.
     */
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /** Finds vectors with a distance < radius, or a kernel value > radius,
     * among candidates of base_index, by ascending id for each query.
     *
     * base_index returns at least max(k_factor, 2) candidates for each result.
     * The refine index must be an IndexFlatKernel. params are as for search.
     */
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

#ifndef SWIG
    /// True if both indexes take sparse vectors.
    bool takes_sparse() const override;
    void train_batch(const VectorBatch& x) override;
    void add_batch(const VectorBatch& x) override;
    void search_batch(
            const VectorBatch& x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override;
    void range_search_batch(
            const VectorBatch& x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params) const override;
#endif

    // These throw UnsupportedError: ids are positions. An IndexIDTable in front
    // supports both.
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// Moves the vectors of another index with equal parts behind those of this
    /// one. add_id must be 0, since ids are positions.
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;

    /// These throw if an id does not exist.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    /// Decodes the refine index's part of a code, which is the second one.
    /// FAISS 1.7.3 decodes the first one.
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

   private:
    /// Returns refine_index if it is an IndexFlatKernel.
    const IndexFlatKernel* checked_search(
            const char* where,
            const VectorBatch& x) const;
};

} // namespace faiss_ext
