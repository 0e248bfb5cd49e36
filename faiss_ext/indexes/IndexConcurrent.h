// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

class FairLock;

#ifndef SWIG // Python has these calls from faiss.Index
namespace internal {

/// The calls of an IndexConcurrent that only float indexes have.
template <class IndexT>
struct FloatCalls : IndexT {};

template <>
struct FloatCalls<faiss::Index> : faiss::Index {
    void reconstruct_batch(idx_t n, const idx_t* keys, float* recons)
            const override;
    faiss::DistanceComputer* get_distance_computer() const override;
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

#if FAISS_EXT_HAS_SEARCH1
    void search1(
            const float* x,
            faiss::ResultHandler& handler,
            faiss::SearchParameters* params = nullptr) const override;
    void search_subset(
            idx_t n,
            const float* x,
            idx_t k_base,
            const idx_t* base_labels,
            idx_t k,
            float* distances,
            idx_t* labels) const override;
#endif
};

} // namespace internal
#endif

/** Lets threads search an index while others add and remove vectors.
 *
 * `Concurrent` at the beginning of a string makes one around any index, as in
 * `Concurrent,AHK512(chi2),BFlat,Refine(KFlat(chi2))`. The name for binary
 * indexes is `BConcurrent`.
 *
 * Any thread may call any method at any time. The same holds for the functions
 * of this library, such as update_vectors, write_index and
 * set_search_parameter. Results and errors are those of the index inside. A
 * lock divides the work into steps:
 * - A search reads in steps of about a millisecond, or of 8 queries if these
 *   take longer (one query for each thread of OpenMP, if there are more). All
 *   results of a query belong to one state of the index. The queries of a call
 *   may see different states.
 * - A call that changes the index is one step. Other threads see the whole
 *   change or nothing of it. Searches wait for it, so make large changes in
 *   several calls, for example of 1,000 vectors each.
 * - A step of a search waits for at most one change. A change waits for the
 *   steps of searches that came before it, and not for later ones. A thread
 *   therefore makes about one change per step. If steps take 3 ms, it can make
 *   some 300 calls a second. For more changes, pass several vectors per call.
 * - write_index and clone_index read one state. Changes wait until they end,
 *   and searches do not.
 *
 * Rules:
 * - Put it first in a string. It does not protect an index that wraps it.
 * - Do not use `index`, the index inside, while threads share this one.
 * - ntotal and is_trained are plain members of FAISS. A program in C++ must not
 *   read them while another thread makes changes.
 * - A kernel, a selector or a progress function must not call the index that
 *   calls it.
 * - get_distance_computer throws, because its result would point to vectors
 *   that other threads move.
 */
template <class IndexT>
struct IndexConcurrentTemplate
#ifdef SWIG
        : IndexT
#else
        : internal::FloatCalls<IndexT>,
          HasFields
#endif
{
    using component_t = typename IndexT::component_t;
    using distance_t = typename IndexT::distance_t;

    IndexT* index = nullptr; ///< the index inside
    bool own_fields = false; ///< whether it is deleted with this object

    /// Takes any index, also one with vectors. It is deleted only if own_fields
    /// is set.
    explicit IndexConcurrentTemplate(IndexT* index);
    IndexConcurrentTemplate();
    ~IndexConcurrentTemplate() override;

    void fields(FieldVisitor&) const override {} ///< there are none

    void train(idx_t n, const component_t* x) override;
    void add(idx_t n, const component_t* x) override;
    void add_with_ids(idx_t n, const component_t* x, const idx_t* xids)
            override;
#if FAISS_EXT_HAS_ADD_SA_CODES
    void add_sa_codes(idx_t n, const uint8_t* codes, const idx_t* xids)
            override;
#endif
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    /// Moves the vectors of an index like the one inside, or of an
    /// IndexConcurrent around one.
    void merge_from(IndexT& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(const IndexT& other) const override;

    void search(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    void range_search(
            idx_t n,
            const component_t* x,
            distance_t radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    void search_and_reconstruct(
            idx_t n,
            const component_t* x,
            idx_t k,
            distance_t* distances,
            idx_t* labels,
            component_t* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    void reconstruct(idx_t key, component_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, component_t* recons) const override;

    /// Makes several changes at once. Calls f with the index inside, in one
    /// step in which no other thread uses it.
    void change(const std::function<void(IndexT&)>& f);

#ifndef SWIG
    /// Reads the index inside in steps. Calls f(begin, end) for consecutive
    /// parts of n queries, each in a step in which the index does not change.
    void read_in_steps(idx_t n, const std::function<void(idx_t, idx_t)>& f)
            const;
#endif

   private:
    friend class IndexStep;
    std::unique_ptr<FairLock> lock;
    mutable std::atomic<idx_t> queries_in_step{0};
};

using IndexConcurrent = IndexConcurrentTemplate<faiss::Index>;
using IndexBinaryConcurrent = IndexConcurrentTemplate<faiss::IndexBinary>;

} // namespace faiss_ext
