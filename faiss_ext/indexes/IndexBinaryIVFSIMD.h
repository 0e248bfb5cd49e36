// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>

#include <faiss/IndexBinaryIVF.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/PlaceMoves.h>
#include <faiss_ext/indexes/loaded_fields.h>

namespace faiss_ext {

/** A faster faiss::IndexBinaryIVF, with the same lists and files.
 *
 * A search compares the query with the codes of the nprobe lists with the
 * nearest centroids, by the widest instructions of the processor. Only codes
 * with a distance below the current k-th are examined further, so the time
 * hardly depends on k.
 *
 * Strings: `BIVF1024`, `BIVF1024_HNSW32`, in the factories of this library.
 *
 * With a selector in plain faiss::SearchParameters, each query visits lists
 * until it has met as many selected codes as nprobe lists hold codes on
 * average, estimated from a sample, and until it has k results. With max_codes
 * it visits nprobe lists.
 *
 * If max_codes is not 0, a search begins no further list once it has scanned
 * max_codes codes. Range searches scan all probed lists, as in FAISS. If there
 * are fewer than k results, the rest have id -1 and the largest distance.
 *
 * Of codes at equal distances, the ones in lists of nearer centroids are found,
 * and come first. Within a list, the codes that were added first come first.
 *
 * Differences from FAISS:
 *
 * - The scan is always by query: `use_heap` and `per_invlist_search` have no
 *   effect.
 * - indexIVF_stats does not count the searches.
 * - search_preassigned and range_search_preassigned are FAISS's own functions,
 *   with FAISS's order of equal distances.
 */
struct IndexBinaryIVFSIMD : faiss::IndexBinaryIVF {
    /**
     * @param quantizer  finds the nearest centroids; not owned
     * @param d          number of bits, a multiple of 8
     * @param nlist      number of lists
     */
    IndexBinaryIVFSIMD(faiss::IndexBinary* quantizer, size_t d, size_t nlist);

    /// Takes over the lists and the quantizer of another index. A flat
    /// quantizer that the other index owns becomes an IndexBinaryFlatSIMD.
    explicit IndexBinaryIVFSIMD(faiss::IndexBinaryIVF&& other);

    IndexBinaryIVFSIMD(const IndexBinaryIVFSIMD&) = delete;
    IndexBinaryIVFSIMD& operator=(const IndexBinaryIVFSIMD&) = delete;

    /// Trains as FAISS does, and reports the progress of the k-means to a
    /// ProgressScope.
    void train(idx_t n, const uint8_t* x) override;

    /** Adds codes as FAISS does.
     *
     * train, add_with_ids, add_core, remove_ids and merge_from throw if the
     * lists are mapped from a file. Without ids, codes get consecutive ids
     * after the largest id that was ever in the index. An index that was read
     * from a file knows only the ids that it contains.
     */
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;
    /// precomputed_idx: the lists of the codes, size n, or null to compute
    /// them.
    void add_core(
            idx_t n,
            const uint8_t* x,
            const idx_t* xids,
            const idx_t* precomputed_idx);
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// See IndexClass::prepare_moves. Ids must be 0 to ntotal - 1. It makes the
    /// direct map.
    std::function<void()> prepare_moves(const PlaceMoves& moves);

    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;

    /// Removes all codes. If the lists are mapped, it releases the file.
    void reset() override;

    /// Supports `params->sel`, and nprobe, max_codes and quantizer_params
    /// of SearchParametersIVF.
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds codes at a distance < radius, ordered by list and then as they
    /// were added. Supports the params of search.
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** Searches, and copies the codes that are found.
     *
     * @param recons  size n * k * d / 8; bytes of 255 if the id is -1
     */
    void search_and_reconstruct(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            uint8_t* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Returns the code of an id. Without a direct map it scans all lists for
    /// it. Throws if the id does not exist.
    void reconstruct(idx_t key, uint8_t* recons) const override;

    /// Returns the codes with ids i0 to i0 + ni - 1, from all lists. Throws if
    /// one is missing.
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;

    /** Throws unless `other` can be merged into this index.
     *
     * `other` must be inverted lists with the same number of bits and of lists
     * and with the same centroids. Neither index may have a direct map or be
     * mapped from a file. FAISS's own class can be merged into this one, but
     * does not itself merge indexes of another class.
     */
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;

    /// The id that add gives to its next vector. For an index that was read
    /// from a file it is ntotal, because files do not store the ids of removed
    /// vectors.
    idx_t next_new_id() const;

   private:
    /// Memory for fields that a later patch release of FAISS adds to
    /// IndexBinaryIVF. FAISS sets them, so nothing here does. The first member,
    /// as it follows FAISS's fields.
    [[maybe_unused]] std::byte room[room_for_fields];
    idx_t next_id = -1; ///< the id that add gives next; -1: not known
    void find_next_id();
};

} // namespace faiss_ext
