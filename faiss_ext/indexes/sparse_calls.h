// SPDX-License-Identifier: MIT
// Calls with sparse vectors, for every index that takes them.
//
// These functions do for SparseVectors what the virtual methods of faiss::Index
// do for dense ones: ids, selectors, locks and errors are the same. Indexes
// that take sparse vectors derive from SparseInput: IndexSparseKernel, hashes
// and maps in front of an index, and IndexRefineKernel around such indexes.
// IndexIDTable and IndexConcurrent around them take sparse vectors, too. Others
// throw an UnsupportedError.

#pragma once

#include <faiss/Index.h>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

struct IndexSparseKernel;

/// Whether an index takes sparse vectors.
bool takes_sparse(const faiss::Index& index);

/// Throws an UnsupportedError that names the method unless an index takes
/// sparse vectors.
void check_takes_sparse(const faiss::Index& index, const char* method);

/// Trains an index as faiss::Index::train does. Whatever learns from dense
/// vectors gets dense copies of a sample, of at most 65,536 vectors and 1 GB.
void train(faiss::Index& index, const SparseVectors& x);

/// Adds vectors, as add_with_ids does, or as add does if ids is null.
void add(
        faiss::Index& index,
        const SparseVectors& x,
        const idx_t* ids = nullptr);

/// Finds the k nearest vectors of each query, as faiss::Index::search does.
void search(
        const faiss::Index& index,
        const SparseVectors& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params = nullptr);

/// Finds the vectors within a radius, as faiss::Index::range_search does.
void range_search(
        const faiss::Index& index,
        const SparseVectors& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params = nullptr);

/// Like search, and reconstructs the vectors that are found, as
/// faiss::Index::search_and_reconstruct does.
/// @param recons  dense vectors, size n * k * d; NaN if there is no vector
void search_and_reconstruct(
        const faiss::Index& index,
        const SparseVectors& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params = nullptr);

/// Like search_scores of an IndexSparseKernel; labels are ids.
void search_scores(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params = nullptr);

/// Like compute_distance_subset, compute_kernel_subset and compute_score_subset
/// of an IndexSparseKernel; labels are ids, or -1.
void compute_distance_subset(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* distances,
        const idx_t* labels);
void compute_kernel_subset(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* values,
        const idx_t* labels);
void compute_score_subset(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* scores,
        const idx_t* labels);

/// Replaces vectors as IndexIDTable::update_vectors does.
void update_vectors(
        faiss::Index& index,
        const SparseVectors& x,
        const idx_t* ids);

/// Replaces the vectors whose ids exist, and adds the others. Returns the
/// number of replaced vectors.
idx_t upsert(faiss::Index& index, const SparseVectors& x, const idx_t* ids);

} // namespace faiss_ext
