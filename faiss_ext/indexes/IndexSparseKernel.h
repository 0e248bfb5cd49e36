// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/PlaceMoves.h>
#include <faiss_ext/indexes/SparseInput.h>

namespace faiss_ext {

class SparseSegment;
class SparseTimes;
struct SparseRow;

/** Exact search under a kernel among sparse vectors. Time and memory depend on
 * the components that are not 0.
 *
 * It is an IndexFlatKernel that keeps rows of columns and values. The dimension
 * may be up to 2^31 - 1, because no function except reconstruct makes a dense
 * vector. Functions with SparseVectors take sparse input; add, search and the
 * others also take dense vectors, whose zeros they leave out. Results are the
 * same for both.
 *
 * The kernel must be one with Kernel::ignores_zeros(): all kernels of this
 * library but CallbackKernel.
 *
 * **Search.** Kernels with a SharedSum, such as chi2, Jensen-Shannon, Jaccard,
 * cosine and Gaussian, use inverted lists: for each column, the vectors with a
 * component there. A query adds up upper bounds of its terms with these
 * vectors, from the shortest list to the longest. Once no other vector can be
 * among the nearest, it skips the remaining lists. The kernel then compares the
 * vectors that can be among the nearest, so results are exact. Other kernels,
 * and vectors with negative components under kernels of histograms, are
 * compared one by one. A list takes three bytes a component, in addition to the
 * eight bytes of the vectors themselves. Lists are made by the first search.
 * Later vectors are compared one by one, until they are a quarter of all; the
 * next search then adds them to the lists.
 *
 * If at least a sixteenth of the components is not 0, a search may make some
 * vectors dense at a time and compare these with the queries. The first search
 * measures when this is faster than the lists. Results are the same.
 *
 * If it is read with IO_FLAG_MMAP, the vectors stay in the file, and the index
 * can only be searched. Its lists are in memory.
 *
 * Results do not depend on the number of threads, nor on the split into
 * batches. They may differ in their last bits from the results of an
 * IndexFlatKernel for the same vectors, since terms add up in another order.
 */
struct IndexSparseKernel : IndexFlatKernel, SparseInput {
    /// @param kernel  is copied; its bandwidth must be set
    IndexSparseKernel(
            int d,
            const Kernel& kernel,
            faiss::MetricType metric = faiss::METRIC_L2);
    IndexSparseKernel();
    IndexSparseKernel(const IndexSparseKernel&) = delete;
    IndexSparseKernel& operator=(const IndexSparseKernel&) = delete;
    ~IndexSparseKernel() override;

    void fields(FieldVisitor&) const override;
    void init() override;
    void restore() override;
    void check_restorable() const override;

    void train(idx_t n, const float* x) override;

    void add(const SparseVectors& x);
    void add(idx_t n, const float* x) override;

    /// Like search of IndexFlatKernel, with sparse queries. Supports
    /// `params->sel`.
    void search(
            const SparseVectors& x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
    using IndexFlatKernel::search;

    void search_scores(
            const SparseVectors& x,
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
    void search_scores(
            idx_t n,
            const float* x,
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Like range_search of IndexFlatKernel, with sparse queries.
    void range_search(
            const SparseVectors& x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const;
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Like these functions of IndexFlatKernel, with sparse queries.
    void compute_distance_subset(
            const SparseVectors& x,
            idx_t k,
            float* distances,
            const idx_t* labels) const;
    void compute_kernel_subset(
            const SparseVectors& x,
            idx_t k,
            float* values,
            const idx_t* labels) const;
    void compute_score_subset(
            const SparseVectors& x,
            idx_t k,
            float* scores,
            const idx_t* labels) const;
    using IndexFlatKernel::compute_distance_subset;
    using IndexFlatKernel::compute_kernel_subset;
    using IndexFlatKernel::compute_score_subset;

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

    /// Whether the vectors are in the index's file, mapped into memory.
    bool is_mapped() const;

    /// The number of components of a stored vector.
    size_t num_components(idx_t key) const;

    /// Writes a stored vector; throws if the id does not exist.
    void reconstruct(idx_t key, int32_t* columns, float* values) const;
    using IndexFlatKernel::reconstruct;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;
    void permute_entries(const idx_t* perm) override;

    /// The last vectors take the places of removed ones.
    void move(const PlaceMoves& moves);

    // These throw UnsupportedError: a sparse vector has no code.
    Rows rows(const char* where) const override;
    size_t sa_code_size() const override;
    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;
    void add_sa_codes(idx_t n, const uint8_t* bytes, const idx_t* xids)
            override;
    faiss::FlatCodesDistanceComputer* get_FlatCodesDistanceComputer()
            const override;

   protected:
    void compare_subset(
            Subset what,
            idx_t n,
            const float* x,
            idx_t k,
            float* out,
            const idx_t* labels) const override;
    void compare_subset(
            Subset what,
            const SparseVectors& x,
            idx_t k,
            float* out,
            const idx_t* labels) const;

   private:
    struct Place {
        uint32_t segment;
        uint16_t row;
    };
    std::vector<std::unique_ptr<SparseSegment>> segments;
    std::vector<Place> places;
    std::unique_ptr<SparseTimes> times;

    SparseRow row(idx_t key) const;
    void free_removed();
};

} // namespace faiss_ext
