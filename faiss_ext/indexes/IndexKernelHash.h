// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/Index.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/HashAndStorage.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/indexes/SparseInput.h>

namespace faiss_ext {

/** A hash in front of any binary index, as a float index. It can be combined
 * with IndexIDTable, IndexRefineKernel, IndexPreTransformSIMD, and FAISS's
 * IndexShards and IndexReplicas.
 *
 * With METRIC_L2 the distance is the Hamming distance in bits, as for
 * faiss::IndexLSH. With METRIC_INNER_PRODUCT it is nbits - 2 * Hamming. Vectors
 * cannot be reconstructed from codes.
 *
 * Vectors are checked before anything is changed. If the storage does not
 * support an operation, the storage's own exception is thrown.
 */
struct IndexKernelHash : faiss::Index, HashAndStorage, SparseInput {
    /// @param storage  an index of 8 * hash->code_size() bits
    IndexKernelHash(
            KernelHash* hash,
            faiss::IndexBinary* storage,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexKernelHash() = default;

    /// Trains the hash and the storage, unless they are trained already.
    void train(idx_t n, const float* x) override;
    void add(idx_t n, const float* x) override;
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;

    /// params are passed to the storage.
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds vectors with Hamming < radius, or nbits - 2 * Hamming > radius.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

#ifndef SWIG
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

    /// These throw: codes cannot be decoded.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;
    void reconstruct_batch(idx_t n, const idx_t* keys, float* recons)
            const override;

    void reset() override;
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;

    /** Computes Hamming distances (or nbits - 2 * Hamming) to stored codes, so
     * that long codes can re-rank the results of short ones.
     *
     * Needs a storage that can reconstruct a code from its id, or
     * faiss::IndexBinaryMultiHash.
     */
    faiss::DistanceComputer* get_distance_computer() const override;

    /// Queries that the hash has refused in FAISS's own loops.
    mutable KernelExceptions exceptions;

    /// Standalone codec: returns the codes of the hash, which cannot be
    /// decoded.
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;
};

} // namespace faiss_ext
