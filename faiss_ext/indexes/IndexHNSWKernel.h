// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include <faiss/IndexHNSW.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/GraphPlaces.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

class GraphChanges;

/** Graph search under a kernel: a faiss::IndexHNSW over an IndexFlatKernel. It
 * is faster than FAISS's class, because its own loops compute the distances to
 * all vertices of a step together.
 *
 * The graph has the parameters of the one of FAISS: M, and in the field hnsw
 * efConstruction, efSearch, check_relative_distance and search_bounded_queue.
 * It is built in another order, on all threads at once. If many vectors are
 * equal, a vertex keeps at most half of its links for them, so that walks find
 * them and also get past them.
 *
 * **Selectors.** Searches support faiss::SearchParametersHNSW, and `sel` of any
 * parameters. With a selector in plain faiss::SearchParameters, efSearch grows
 * as the selected share of the vectors shrinks. It grows further for a query if
 * few vectors near it are selected. If comparing all selected vectors with this
 * query is faster, they are compared. They are compared with all queries if
 * they are few: at most the largest of ntotal / 64, min(16384, ntotal / 4) and
 * 4 max(efSearch, k). Without a selector, all vectors are compared with a query
 * for which the walk finds fewer than k.
 *
 * Strings:
 *
 * - `HNSW32,KFlat(chi2)`
 * - `HNSW32,KFlat(chi2,store=u8)`: a search reads a quarter of the memory
 * - `HNSW32,KFlat(chi2,store=u8),Refine(KFlat(chi2))`: the exact vectors
 *   re-rank the results
 * - `HKM1(chi2),PCAR64,HNSW16,KFlat(linear,store=i8),Refine(KFlat(chi2))`: the
 *   graph compares mapped vectors of few bytes, without decoding them
 *
 * Results are ordered by distance and then by id. A range search considers the
 * vectors that a search would examine, and orders its results by id. If few
 * vectors are selected, as above with k = 0, all of them are compared.
 *
 * **Removal.** A removed vector stays in the storage as a vertex that searches
 * pass but never return. efSearch grows by the share of such vertices. If they
 * are at least 1/64 of all vertices, each change of the index visits 64
 * vertices for each vector that it adds or removes, and links them past removed
 * ones. After all vertices were visited, new vectors reuse the removed
 * vertices. So a change of one vector takes no longer in a larger index. If a
 * collection changes steadily, few of its vertices are removed ones. If a large
 * removal makes them more than a quarter of all, or if half of all vertices
 * have no vectors, the next change calls compact(). `hnsw` and `storage` number
 * vertices. After a removal the ids of the index differ from these numbers, so
 * functions of faiss::HNSW then return other numbers than the index.
 *
 * The graph depends on the vectors, their order and how they were divided into
 * calls of add and remove_ids, but not on the number of threads. Results do not
 * depend on the number of threads, nor on the division of queries into batches.
 *
 * Exceptions of the kernel reach the caller, without a KernelExceptionGuard. If
 * add fails or is interrupted, the vectors of that call are removed. A progress
 * callback must not use the index: while one runs, all of these functions
 * throw.
 */
struct IndexHNSWKernel : faiss::IndexHNSW {
    /// The vertices of the vectors.
    GraphPlaces places;

    /**
     * @param storage  an IndexFlatKernel without vectors; deleted only if
     *                 own_fields is set
     * @param M        links of a vertex, at least 2
     */
    explicit IndexHNSWKernel(IndexFlatKernel* storage, int M = 32);
    IndexHNSWKernel() = default;

    void add(idx_t n, const float* x) override;

    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// The same as these functions of IndexFlatKernel.
    virtual void search_scores(
            idx_t n,
            const float* x,
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
    void values_of_scores(idx_t n, idx_t k, float* scores, idx_t* labels) const;

    /// These throw if an id does not exist.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void reset() override;

    /// Computes distances to vectors by their ids.
    faiss::DistanceComputer* get_distance_computer() const override;

    /// Removes vectors. Later ones move up, as in faiss::IndexFlat.
    size_t remove_ids(const faiss::IDSelector& sel) override;
    /// See IndexClass::prepare_moves.
    std::function<void()> prepare_moves(const PlaceMoves& moves);

    /// Builds the graph again, as a new one of the same vectors, and frees the
    /// memory of removed vectors. Ids stay as they are. Meanwhile the index
    /// needs memory for two graphs.
    void compact();

    /// Vertices of removed vectors, whose memory is still in use.
    idx_t num_removed() const;

    /** Adds the vectors of another IndexHNSWKernel, whose storage has the same
     * dimension, kernel, metric and format, and empties that index.
     *
     * They are linked one after the other, which takes as long as adding them.
     * After an error both indexes have the same vectors as before.
     *
     * @param add_id  must be 0, because ids are positions
     */
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;

    // These throw UnsupportedError.
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    /// Throws unless the graph and the storage fit the vectors. `where` names
    /// the caller.
    void check_graph(const char* where) const;

   private:
    /// True while vertices are being linked, by this thread or by threads that
    /// it waits for.
    bool is_being_built = false;

    struct Storage;

    IndexFlatKernel& vectors() const;
    GraphChanges changes(Storage& storage);
    /// Links n vectors that `store` adds to the storage.
    void append(idx_t n, const std::function<void(IndexFlatKernel&)>& store);

    template <class Found>
    void for_searches(const char* where, idx_t n, const float* x, Found&& found)
            const;
};

} // namespace faiss_ext
