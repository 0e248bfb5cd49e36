// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/Index.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/** Codes of a hash, scanned with the query as it is: stored vectors are bits,
 * but a query keeps the magnitudes of its margins, so that a bit in which it is
 * close to the hyperplane counts for little.
 *
 * With weights w_j of the query (KernelHash::query_weights; for hyperplanes its
 * margins) the distance of METRIC_L2 is
 *
 *     D = nbits sum_j |w_j| [bit j of the code is not (w_j >= 0)] / sum_j
 * |w_j|,
 *
 * from 0 to nbits: the Hamming distance, but that bits count by |w_j|, 1 on
 * average. METRIC_INNER_PRODUCT is nbits - 2 D = nbits sum_j +-w_j / sum_j
 * |w_j|. hash->asymmetric_kernel_estimate turns D into a kernel value. At equal
 * bits it finds more than the Hamming distance, at a higher cost of a scan.
 *
 * Weights are rounded to whole numbers, such that those of the bits of bytes r
 * and r + 2 (r = 0 or 1 mod 4) add up to at most 255 (with more than 4,112 bits
 * to less), and D is that of the rounded weights. Sums are integers, which 4
 * bits of a code at a time choose from tables (simd/pq4_scan.h): they are
 * the same for every instruction set. Results are ordered by distance and then
 * by id, whatever the number of threads or the split into batches. Removing
 * vectors moves the ids of those behind them.
 *
 * Source: A. Gordo, F. Perronnin, Y. Gong and S. Lazebnik, Asymmetric distances
 * for binary embeddings, PAMI 2014.
 *
 * Strings: `AHK256(chi2,center=1),AFlat`, `SIK512(gaussian),AFlat`.
 */
struct IndexAsymmetricHash : faiss::Index {
    ClonePtr<KernelHash> hash;

    /// In blocks of 32 codes, byte by byte: byte r of code i is
    /// codes[(i / 32 * code_size + r) * 32 + p], where p is 2 j for j = i mod
    /// 32 below 16, and 2 (j - 16) + 1 otherwise. Where they are mapped from a
    /// file, what changes the index throws; reset() lets go of the file.
    MappableVector<uint8_t> codes;

    /// @param hash  is copied; of at most 8,192 bits
    explicit IndexAsymmetricHash(
            const KernelHash& hash,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexAsymmetricHash() = default;

    /// Trains the hash.
    void train(idx_t n, const float* x) override;
    void add(idx_t n, const float* x) override;

    /// params: `sel` is honoured
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// D < radius, or nbits - 2 D > radius; by ascending id for each query.
    /// params: `sel` is honoured
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throw: codes cannot be decoded.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;
    void reconstruct_batch(idx_t n, const idx_t* keys, float* recons)
            const override;

    /// Throws: distances are computed by the block.
    faiss::DistanceComputer* get_distance_computer() const override;

    void reset() override;
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// Standalone codec: the codes of the hash. They cannot be decoded.
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;

    /// Throws unless the parts of the index, as a file has them, fit.
    void check_parts() const;
};

} // namespace faiss_ext
