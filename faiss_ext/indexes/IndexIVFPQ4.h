// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <faiss/Index.h>

#include <faiss_ext/core/AlignedVector.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/PlaceMoves.h>

namespace faiss_ext {

/** Inverted lists of product-quantised vectors, for fast search behind an
 * explicit map of a kernel. Codes have M parts of 4 bits, and are scanned by
 * shuffle instructions.
 *
 * String: `KIVF1024`, `KIVF1024(M=64,nprobe=16)`, behind a map with few output
 * dimensions: `HKM1(chi2),PCAR64,KIVF1024(M=64),Refine(KFlat(chi2))`.
 *
 * A vector is in the list of its nearest centroid in L2. A search visits the
 * nprobe lists whose centroids are best under the metric. Results do not depend
 * on the number of threads, nor on the split into batches. Squared lengths of
 * vectors may be up to 1e37.
 *
 * The caller may give any ids but -1; otherwise ids are counted up from
 * next_id. Do not put an IndexIDMap in front: it expects vectors to be
 * renumbered after a removal, so remove_ids throws if an IndexIDMap calls it.
 *
 * The index works like faiss::IndexIVFPQFastScan (Andre, Kermarrec and Le
 * Scouarnec, VLDB 2015). But although codes encode residuals, a query needs
 * only one set of tables for all lists. With the centroid c of a list and the
 * quantised residual r of a vector in it,
 *
 *     |q - (c + r)|^2 = |q - c|^2 + (|r|^2 + 2 <c, r>) - 2 <q, r>.
 *
 * The part in brackets, the offset of the vector, is stored with its code. It
 * takes 4 bytes, in addition to the M / 2 bytes of the code.
 *
 * Tables are rounded to whole numbers, with at most 255 for four parts
 * together. Except for this rounding, distances are exact for the quantised
 * vectors. They are at least 0. The rounding is compared with the distance to
 * the nearest centroid:
 *
 * - Usually the tables of the query serve all lists.
 * - If the rounding is coarse in comparison, because clusters are much farther
 *   apart than they are wide, each visited list gets its own tables, of |r|^2 -
 *   2 <q - c, r>. Such queries take about twice as long.
 * - If these tables are coarse too, because some vectors lie far from all
 *   centroids, the list is scanned with tables of floats. This takes ten times
 *   as long or more.
 *
 * For METRIC_INNER_PRODUCT distances are <q, c> + <q, r>, by rounded tables.
 */
struct IndexIVFPQ4 : faiss::Index, HasFields {
    idx_t nlist = 1024;
    int M = 0; ///< parts; divides d; 0 until auto_M chooses it
    /// choose M: d / 2, or d if that is odd; a divisor up to 512
    bool auto_M = true;
    bool residual = true; ///< whether codes are of x - c instead of x
    idx_t nprobe = 8;     ///< lists that a search visits
    int64_t seed = 1234;

    /// Mean of the training vectors, subtracted from vectors and queries, size
    /// d. Zeros for METRIC_INNER_PRODUCT.
    AlignedVector<float> mean;
    AlignedVector<float> centroids; ///< of the lists, size nlist * d
    /// Component j of centroid k of part m is at [(m * d / M + j) * 16 + k].
    AlignedVector<float> codebook;

    /// If lists are mapped from a file, functions that change the index throw;
    /// reset() releases the file.
    struct List {
        MappableVector<idx_t> ids;
        MappableVector<uint8_t> codes; ///< as in simd/pq4_scan.h
        MappableVector<float> offsets; ///< for whole blocks
    };
    std::vector<List> lists;
    /// The id that add gives to the next vector. It is larger than all ids that
    /// were given since the index was made or reset. INT64_MAX: no id is left.
    idx_t next_id = 0;

    struct Tables;
    std::shared_ptr<const Tables> tables; ///< made from the data above

    /// The place of each vector, by id; see make_direct_map. An entry is
    /// invalid if its place holds another id or none.
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

    /// Trains the centroids of the lists and of the parts by k-means. For the
    /// lists it takes at most 256 vectors per list. With `verbose` it prints
    /// its progress.
    void train(idx_t n, const float* x) override;

    void add(idx_t n, const float* x) override;
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;

    /// Supports `params->sel`, and `nprobe` of SearchParametersIVF. With a
    /// selector in plain faiss::SearchParameters, each query visits lists until
    /// it has met as many selected vectors as nprobe lists hold vectors on
    /// average, estimated from a sample, and until it has k results.
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Searches the visited lists; results are ordered by distance and id for
    /// each query.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** Makes `reconstruct` look ids up in a table instead of scanning all
     * lists.
     *
     * The table takes some 50 bytes more for each vector. Files do not store
     * it.
     */
    void make_direct_map(bool on = true);

    /// Returns the quantised vector of an id, or one of them if the id occurs
    /// several times. Without a direct map it scans all lists for it.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    /// See IndexClass::prepare_moves. Ids must be 0 to ntotal - 1. It makes the
    /// direct map.
    std::function<void()> prepare_moves(const PlaceMoves& moves);
    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    // These throw UnsupportedError.
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    /// Bytes of the lists per vector, not counting unused room in partly filled
    /// blocks.
    size_t bytes_per_vector() const;
};

} // namespace faiss_ext
