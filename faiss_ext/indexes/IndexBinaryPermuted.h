// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <vector>

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/PlaceMoves.h>

namespace faiss_ext {

/** Search in sorted lists of permuted codes (Charikar, STOC 2002, as used by
 * Kulis and Grauman, PAMI 2012, section 3.1).
 *
 * The index permutes the bits of all codes in M random ways, and keeps the
 * codes of each permutation in lexicographic order. A query is permuted in the
 * same ways and located in each list by binary search. Its candidates are
 * collected in two steps:
 *
 * 1. The 2 M entries with the longest common prefix with the query, over all
 *    lists. Of equal prefixes the earlier list comes first, and in it the entry
 *    above the query.
 * 2. B more entries on each side in each list.
 *
 * The candidates are ranked by Hamming distance, and equal distances by id.
 *
 * A search visits up to 2 M (B + 1) entries. With the defaults these are 4
 * n^(2/3). If you set M to a few lists, set B, too: 2 M entries may be fewer
 * than the k neighbours to find.
 *
 * String: `BPerm(eps=0.5)`, `BPerm(M=130,B=100)`, with `seed` and `max_gb`.
 *
 * Memory: M (12 n + 4 d + 120) bytes for the lists and n * d / 8 for the codes.
 * If M is derived from eps, memory grows faster than n. add throws before it
 * builds lists of more than max_gb. Adding merges the new codes into the lists.
 */
struct IndexBinaryPermuted : faiss::IndexBinary, HasFields {
    double eps = 0.5; ///< M = ceil(2 n^(1 / (1 + eps))), if M is 0
    int M = 0;        ///< number of lists
    int B = 0;        ///< further entries visited on each side
    int64_t seed = 1234;
    double max_gb = 8; ///< in 10^9 bytes

    /** The largest size of the lists of an index that is read from a file, in
     * 10^9 bytes. It applies regardless of the index's own max_gb.
     *
     * Reading sorts the lists again, so a file of a few bytes could ask for any
     * amount of memory. In Python it is
     * `faiss_ext.cvar.IndexBinaryPermuted_max_gb_read`.
     */
    static double max_gb_read;

    struct List {
        std::vector<int32_t> permutation; ///< of the bits, size d
        std::vector<uint64_t> prefixes;   ///< first 64 permuted bits, sorted
        std::vector<int32_t> ids;         ///< in the same order
    };

    std::vector<uint8_t> xb; ///< codes, size ntotal * code_size
    std::vector<List> lists;

    explicit IndexBinaryPermuted(int d, double eps = 0.5, int B = 0);
    IndexBinaryPermuted() = default;

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
    void check_restorable() const override;

    void add(idx_t n, const uint8_t* x) override;

    /// Throws UnsupportedError: ids are positions.
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;
    void reset() override;

    /// Supports `params->sel`. B + 1 is divided by the selected share of the
    /// codes. If few codes are selected, or if fewer than k selected codes are
    /// among the candidates, all selected codes are compared. So a selector of
    /// all codes can give more results than a search without one.
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds candidates at a distance < radius, by ascending id. A selector has
    /// the same effect as in search.
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Removes codes. Later codes move up to smaller ids, as in
    /// faiss::IndexBinaryFlat.
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// See IndexClass::prepare_moves. A change finds the removed codes in each
    /// list by binary search and closes the gaps, so it copies up to 12 n bytes
    /// for each list.
    std::function<void()> prepare_moves(const PlaceMoves& moves);

    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;

    /// The ids of the candidates of one query, ascending.
    std::vector<int32_t> candidates(const uint8_t* x) const {
        return candidates(x, B);
    }

    /// The number of lists for n codes.
    int num_lists(idx_t n) const;

    /// Bytes of memory that the lists of n codes take.
    double bytes_of_lists(idx_t n) const;

    /// Builds all lists from the codes.
    void rebuild();

   private:
    struct Candidates;

    std::vector<int32_t> candidates(const uint8_t* x, idx_t num_further) const;
    void check_parameters() const;
    void check_codes() const;
    void check_size_in_file() const;
    void build_lists(idx_t n0);
    size_t find_entry(const List& list, idx_t id) const;
    void apply_to_few(const PlaceMoves& moves);
    template <class F>
    void keep_entries(F&& new_id); // new_id(old id); negative: entry is dropped
    void check_size(idx_t n) const;
};

/// Counters of the searches of all indexes of the class since the last reset().
struct IndexBinaryPermutedStats {
    size_t nq = 0;          ///< queries
    size_t ncandidates = 0; ///< codes whose distance was computed
    size_t ntotal = 0;      ///< codes in the indexes, summed over the queries

    void reset();
};

extern IndexBinaryPermutedStats indexBinaryPermuted_stats;

} // namespace faiss_ext
