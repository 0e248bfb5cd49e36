// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <faiss/Index.h>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

struct PackedCentroids;

/** Inverted lists of product-quantised vectors, M parts of 4 bits each, scanned
 * by shuffles: what finds candidates behind an explicit map of a kernel.
 *
 * As faiss::IndexIVFPQFastScan (Andre, Kermarrec and Le Scouarnec, VLDB 2015),
 * but a query has one set of tables for all lists, though codes are those of
 * residuals: with the centroid c of a list and the quantised residual r of a
 * vector in it,
 *
 *     |q - (c + r)|^2 = |q - c|^2 + (|r|^2 + 2 <c, r>) - 2 <q, r>
 *
 * and the part in brackets, the offset of the vector, is kept with its code: 4
 * bytes more than the M / 2 of the code. Tables are rounded to whole numbers,
 * of which four parts have at most 255 together; distances are those to the
 * quantised vectors up to that, and at least 0. Where this rounding is coarse
 * beside the distance to the nearest centroid, since clusters are much farther
 * apart than they are wide, each list that is visited has tables of its own,
 * those of |r|^2 - 2 <q - c, r>; such queries take about twice as long. Where
 * these are coarse as well, since some vectors lie far from all centroids, the
 * list is scanned by tables of floats, which takes ten times as long or more.
 * For METRIC_INNER_PRODUCT distances are <q, c> + <q, r>, by rounded tables.
 *
 * A vector is in the list of the nearest centroid in L2; the nprobe lists whose
 * centroids are best under the metric are searched. Results do not depend on
 * the number of threads, nor on the split into batches.
 *
 * Ids are the caller's, any but -1, or those from next_id on. Do not put an
 * IndexIDMap in front: it expects vectors to be renumbered after a removal, so
 * remove_ids throws if it is called by one. Squared lengths of
 * vectors may be up to 1e37.
 *
 * String: `KIVF1024`, `KIVF1024(M=64,nprobe=16)`, behind a map that ends in few
 * dimensions: `HKM1(chi2),PCAR128,KIVF1024,Refine(KFlat(chi2))`.
 */
struct IndexIVFPQ4 : faiss::Index, HasFields {
    idx_t nlist = 1024;
    int M = 0;            ///< parts; divides d. 0 until auto_M has chosen it
    bool auto_M = true;   ///< d / 2, or d if that is odd; a divisor up to 512
    bool residual = true; ///< codes are those of x - c, not of x
    idx_t nprobe = 8;     ///< lists that a search visits
    int64_t seed = 1234;

    /// of the training vectors; it is taken off vectors and queries. Zeros for
    /// METRIC_INNER_PRODUCT. Size d
    AlignedVector<float> mean;
    AlignedVector<float> centroids; ///< of the lists, size nlist * d
    /// component j of centroid k of part m at [(m * d / M + j) * 16 + k]
    AlignedVector<float> codebook;

    /// Where lists are mapped from a file, what changes the index throws;
    /// reset() lets go of the file.
    struct List {
        MappableVector<idx_t> ids;
        MappableVector<uint8_t> codes; ///< as in simd/pq4_scan.h
        MappableVector<float> offsets; ///< for whole blocks
    };
    std::vector<List> lists;
    /// The id that add gives to the next vector: above all ids that were in the
    /// index since it was made or reset. INT64_MAX: there is none left.
    idx_t next_id = 0;

    std::shared_ptr<const PackedCentroids> packed; ///< made from the centroids
    /// of centroid k of part m at [m * 16 + k]; made from the codebook
    AlignedVector<float> squares;

    /// Where vectors are, by id; see make_direct_map. An entry whose place has
    /// another id, or none, is void.
    struct Place {
        idx_t list, at;
    };
    std::optional<std::unordered_map<idx_t, Place>> direct_map;

    IndexIVFPQ4(
            int d,
            idx_t nlist,
            int M = 0,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexIVFPQ4() = default;

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
    void check_restorable() const override;

    /// Centroids by k-means (at most 256 vectors each), and those of the parts.
    /// `verbose` prints how far it is.
    void train(idx_t n, const float* x) override;

    void add(idx_t n, const float* x) override;
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;

    /// params: `sel` is honoured, and `nprobe` of SearchParametersIVF
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// In the lists that are visited; by distance and id for each query.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** Has `reconstruct` look an id up, instead of in all lists, from now on,
     * in some 50 bytes more for each vector. Files do not hold it.
     */
    void make_direct_map(bool on = true);

    /// The quantised vector of an id (one of them, if it is there repeatedly);
    /// looks through all lists for it, unless there is a direct map.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;
    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// Bytes of the lists for each vector, but for blocks that are not full.
    size_t bytes_per_vector() const;
};

} // namespace faiss_ext
