// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexHNSW.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>

namespace faiss_ext {

/** Graph search under a kernel: a faiss::IndexHNSW over an IndexFlatKernel,
 * with loops of its own, which compute the distances to all vertices of a step
 * together.
 *
 * The graph is that of FAISS, and its parameters mean the same: M, and in the
 * field hnsw efConstruction, efSearch, check_relative_distance and
 * search_bounded_queue. Searches honour faiss::SearchParametersHNSW and, of any
 * parameters, `sel`. Results are ordered by distance and then by id; those of a
 * range search, which are among the vectors that a search would look at, by id.
 *
 * The graph depends on the vectors, their order and how they were divided into
 * calls of add, but not on the number of threads; neither do results, nor on
 * the division of queries into batches.
 *
 * Exceptions of the kernel reach the caller, without a KernelExceptionGuard. If
 * add fails or is interrupted, the vectors of that call are taken out again; an
 * index that was empty is as it was before, and one that was not has a graph
 * that the failed call may have cut: add and search then throw until rebuild()
 * or reset() is called. A function that is told the progress cannot use the
 * index meanwhile: all of these throw.
 *
 * String: `HNSW32,KFlat(chi2)`. Over `KFlat(chi2,store=u8)` a walk reads a
 * quarter of the memory; `HNSW32,KFlat(chi2,store=u8),Refine(KFlat(chi2))`
 * ranks what it finds by the exact vectors.
 */
struct IndexHNSWKernel : faiss::IndexHNSW {
    /// false after an add that did not end
    bool graph_is_complete = true;

    /**
     * @param storage  the vectors, none yet; not deleted unless own_fields is
     *                 set
     * @param M        links of a vertex, from 2
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

    /// As those of IndexFlatKernel.
    void search_scores(
            idx_t n,
            const float* x,
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
    void values_of_scores(idx_t n, idx_t k, float* scores, idx_t* labels) const;

    /// Throws if there is no such id.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void reset() override;

    /// Builds the graph anew from the stored vectors.
    void rebuild();

    /// Throws unless the graph is complete, and has as many vertices as there
    /// are vectors. `where` names the caller.
    void check_graph(const char* where) const;

   private:
    /// while vertices are linked, by this thread or those that it waits for
    bool is_being_built = false;

    void check_not_being_built(const char* where) const;
    void build(idx_t n0);
    IndexFlatKernel& vectors() const;
    void add_or_roll_back(idx_t n, const float* x);

    template <class Found>
    void for_walks(
            const char* where,
            idx_t n,
            const float* x,
            idx_t k,
            const faiss::SearchParameters* params,
            Found&& found) const;
};

} // namespace faiss_ext
