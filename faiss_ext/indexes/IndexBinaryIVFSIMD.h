// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexBinaryIVF.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** faiss::IndexBinaryIVF with a faster search of the same lists and files.
 *
 * The codes of the nprobe lists with the nearest centroids are compared with
 * the query by the widest instructions that the processor has, and only
 * distances below the k-th so far are looked at again. The time hardly depends
 * on k. The scan is always by query: `use_heap` and `per_invlist_search` make
 * no difference. No list is begun after max_codes codes, if that is not 0;
 * ranges are searched whole, as in FAISS. indexIVF_stats does not count the
 * searches.
 *
 * Of codes at equal distances those in lists of nearer centroids are found, and
 * come first; in a list, those that were added first. Where there are fewer
 * than k, the rest is id -1 and the largest distance. search_preassigned and
 * range_search_preassigned are those of FAISS, with its order of equal
 * distances.
 *
 * String: `BIVF1024`, `BIVF1024_HNSW32`, in the factories of this library.
 */
struct IndexBinaryIVFSIMD : faiss::IndexBinaryIVF {
    /**
     * @param quantizer  finds the nearest centroids; not owned
     * @param d          number of bits, a multiple of 8
     * @param nlist      number of lists
     */
    IndexBinaryIVFSIMD(faiss::IndexBinary* quantizer, size_t d, size_t nlist);

    /// Takes over the lists of another index, and its quantizer; one of its own
    /// that is flat becomes an IndexBinaryFlatSIMD.
    explicit IndexBinaryIVFSIMD(faiss::IndexBinaryIVF&& other);

    IndexBinaryIVFSIMD(const IndexBinaryIVFSIMD&) = delete;
    IndexBinaryIVFSIMD& operator=(const IndexBinaryIVFSIMD&) = delete;

    /// As in FAISS; tells a ProgressScope how far the k-means is.
    void train(idx_t n, const uint8_t* x) override;

    /// As in FAISS, but these, and train, throw if the lists are mapped from a
    /// file. Without ids, codes get those from the largest one on that was ever
    /// in the index, or, after reading, that is in it.
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;
    /// precomputed_idx: the lists of the codes, size n; null if not known
    void add_core(
            idx_t n,
            const uint8_t* x,
            const idx_t* xids,
            const idx_t* precomputed_idx);
    size_t remove_ids(const faiss::IDSelector& sel) override;

    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;

    /// Lets go of a file from which the lists are mapped.
    void reset() override;

    /// params: `sel` is honoured, and of SearchParametersIVF nprobe, max_codes
    /// and quantizer_params
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Codes at a distance < radius, by list and then as they were added;
    /// params: as for search
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** Searches, and copies the codes that are found.
     *
     * @param recons  size n * k * d / 8; bytes of 255 where the id is -1
     */
    void search_and_reconstruct(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            uint8_t* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// The code of an id; looks through all lists for it, unless there is a
    /// direct map. Throws if there is none.
    void reconstruct(idx_t key, uint8_t* recons) const override;

    /// The codes with ids i0 to i0 + ni - 1, from all lists; throws if one is
    /// missing.
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;

    /// Throws unless `other` is inverted lists of as many bits and lists around
    /// the same centroids, neither has a direct map, and neither is mapped from
    /// a file. FAISS's own class can
    /// be merged into this one; it takes none of another class itself.
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;

   private:
    idx_t next_id = -1; ///< that add gives; -1: not known
    void find_next_id();
    friend idx_t next_new_id(const faiss::IndexBinary& index);
};

} // namespace faiss_ext
