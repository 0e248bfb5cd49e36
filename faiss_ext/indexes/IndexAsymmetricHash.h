// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include <faiss/Index.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/PlaceMoves.h>
#include <faiss_ext/indexes/SparseInput.h>

namespace faiss_ext {

/** Search among codes of a hash with the query's real margins. Stored vectors
 * are bits, but the query is not rounded to bits. With the same number of bits
 * it finds more than the Hamming distance, but scans are slower.
 *
 * A bit for which the query is close to the hyperplane has little weight. With
 * weights w_j of the query (KernelHash::query_weights; for hyperplanes its
 * margins) the distance of METRIC_L2 is
 *
 *     D = nbits sum_j |w_j| [bit j of the code is not (w_j >= 0)]
 *         / sum_j |w_j|,
 *
 * from 0 to nbits. It is a Hamming distance whose bits are weighted by |w_j|,
 * on average by 1. METRIC_INNER_PRODUCT is nbits - 2 D = nbits sum_j +-w_j /
 * sum_j |w_j|. hash->asymmetric_kernel_estimate turns D into a kernel value.
 *
 * Strings: `AHK256(chi2,center=1),AFlat`, `SIK512(gaussian),AFlat`.
 *
 * Results are ordered by distance and then by id. They do not depend on the
 * number of threads, nor on the split into batches. After a removal, later
 * vectors move up to smaller ids.
 *
 * Weights are rounded to whole numbers, and D is the distance with the rounded
 * weights. The weights of the bits of bytes r and r + 2 (r = 0 or 1 mod 4) add
 * up to at most 255. With more than 4,112 bits, this limit is smaller. Sums are
 * integers, looked up in tables for 4 bits of a code at a time
 * (simd/pq4_scan.h), so they are the same for every instruction set.
 *
 * Source: A. Gordo, F. Perronnin, Y. Gong and S. Lazebnik, Asymmetric distances
 * for binary embeddings, PAMI 2014.
 */
struct IndexAsymmetricHash : faiss::Index, SparseInput {
    ClonePtr<KernelHash> hash;

    /** The codes, in blocks of 32, byte by byte.
     *
     * Byte r of code i is codes[(i / 32 * code_size + r) * 32 + p]. With j = i
     * mod 32, p is 2 j for j below 16, and 2 (j - 16) + 1 otherwise. If the
     * codes are mapped from a file, functions that change the index throw;
     * reset() releases the file.
     */
    MappableVector<uint8_t> codes;

    /// @param hash  is copied; at most 8,192 bits
    explicit IndexAsymmetricHash(
            const KernelHash& hash,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexAsymmetricHash() = default;

    /// Trains the hash.
    void train(idx_t n, const float* x) override;
    void add(idx_t n, const float* x) override;

    /// Throws UnsupportedError: ids are positions.
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;

    /// Supports `params->sel`.
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds vectors with D < radius, or nbits - 2 D > radius, by ascending id
    /// for each query. Supports `params->sel`.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// These throw: codes cannot be decoded.
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

    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;
    void reconstruct_batch(idx_t n, const idx_t* keys, float* recons)
            const override;

    /// Throws: distances are computed only for blocks of codes.
    faiss::DistanceComputer* get_distance_computer() const override;

    void reset() override;
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// See IndexClass::prepare_moves.
    std::function<void()> prepare_moves(const PlaceMoves& moves);
    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// Standalone codec: returns the codes of the hash, which cannot be
    /// decoded.
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    /// Throws unless the parts of the index, as read from a file, match.
    void check_parts() const;
};

} // namespace faiss_ext
