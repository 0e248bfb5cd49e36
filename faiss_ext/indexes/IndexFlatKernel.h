// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include <faiss/IndexFlatCodes.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/** Exact search under a kernel, by scanning all vectors.
 *
 * METRIC_INNER_PRODUCT is k(x, y), METRIC_L2 is |phi(x) - phi(y)|^2 in the
 * kernel's feature space. The index stores the vectors themselves. It can
 * therefore also be the refine index of faiss::IndexRefine and the storage of
 * faiss::IndexHNSW. Strings: `KFlat(gaussian)`, `KFlat(chi2,store=u8)`.
 *
 * Results are chosen by score (Kernel::score_block) and then by id, and ordered
 * by distance, then score, then id. The nearest come first, even if their
 * distances round to the same float. Results do not depend on the number of
 * threads, nor on the split into batches.
 *
 * If the kernel is not defined on one of the vectors, functions throw a
 * faiss::FaissException and change nothing. After a removal, later vectors move
 * up to smaller ids, as in faiss::IndexFlat.
 */
struct IndexFlatKernel : faiss::IndexFlatCodes, HasFields {
    ClonePtr<Kernel> kernel;

    /** How components are stored. Distances are computed from the stored
     * values.
     *
     * - f32: unchanged
     * - f16: in half precision, relative to the largest component of the vector
     *   rounded down to a power of two. The error is 2^-11 of the component, or
     *   2^-25 of the largest.
     * - u8: as a multiple, from 0 to 255, of a step that each vector has of its
     *   own; for components >= 0. If all components are such multiples, as in
     *   normalised counts, only the last bits of the floats are lost. Other
     *   components have an error of up to 1/510 of the largest component.
     * - i8: as a multiple, from -127 to 127, of a step that each vector has of
     *   its own. The error is up to 1/254 of the largest absolute component.
     * - sparse: IndexSparseKernel, which also has the name `auto`, because it
     *   searches by lists or by dense rows, whichever is faster
     */
    enum class Store { f32, f16, u8, sparse, automatic, i8 };
    Store store = Store::f32;

    /// The vectors in the index's file, mapped into memory, for an index that
    /// was read with IO_FLAG_MMAP. `codes` is then empty, and the index can
    /// only be searched.
    FileRange mapped;

    /// @param kernel  is copied
    IndexFlatKernel(
            int d,
            const Kernel& kernel,
            faiss::MetricType metric = faiss::METRIC_L2,
            Store store = Store::f32);
    IndexFlatKernel() = default;

    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
    void check_restorable() const override;

    /// Trains the kernel, if one of its parameters is to be chosen from the
    /// data.
    void train(idx_t n, const float* x) override;

    void add(idx_t n, const float* x) override;

    /// Throws UnsupportedError: ids are positions.
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;

    /// Supports `params->sel`.
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds vectors with a distance < radius, or a kernel value > radius, by
    /// ascending id for each query. Supports `params->sel`.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** Computes the metric between each query and a given list of vectors, to
     * re-rank candidates.
     *
     * It works like faiss::IndexFlat::compute_distance_subset. A label of -1
     * gets the distance that search pads with; an id that does not exist is an
     * error.
     *
     * @param x          queries, size n * d
     * @param distances  size n * k
     * @param labels     ids of stored vectors, or -1, size n * k
     */
    void compute_distance_subset(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            const idx_t* labels) const;

    /** Computes k(x, y) instead of distances, like compute_distance_subset, for
     * either metric.
     *
     * A distance alone does not determine the kernel value if k(x, x) varies. A
     * label of -1 gets the lowest float.
     */
    void compute_kernel_subset(
            idx_t n,
            const float* x,
            idx_t k,
            float* values,
            const idx_t* labels) const;

    /// Like search and compute_distance_subset, but returns scores
    /// (Kernel::score_block) instead of distances, and pads with the largest
    /// float. Used to merge the results of several indexes.
    virtual void search_scores(
            idx_t n,
            const float* x,
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
    void compute_score_subset(
            idx_t n,
            const float* x,
            idx_t k,
            float* scores,
            const idx_t* labels) const;

    /** Turns scores into the distances or kernel values that search returns.
     *
     * @param scores  of the results of each query in order, size n * k; they
     *                become distances or kernel values
     * @param labels  size n * k; -1 at the end marks padding
     */
    void values_of_scores(idx_t n, idx_t k, float* scores, idx_t* labels) const;

    /// Throws if an id does not exist.
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    faiss::FlatCodesDistanceComputer* get_FlatCodesDistanceComputer()
            const override;

    // On a mapped index, functions that change it throw, except reset(), which
    // releases the file.
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;
    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// Adds vectors encoded by sa_encode. xids must be null, since ids are
    /// positions.
    virtual void add_sa_codes(idx_t n, const uint8_t* bytes, const idx_t* xids)
            FAISS_EXT_OVERRIDE_1_10;

    /// Reorders the vectors: vector perm[i] becomes vector i. perm is a
    /// permutation of size ntotal.
    virtual void permute_entries(const idx_t* perm);

    /// The ntotal stored vectors.
    struct Rows {
        const uint8_t* data;       ///< for random access
        const uint8_t* sequential; ///< the same bytes, for sequential access
        size_t stride;             ///< bytes from one vector to the next
        /// whether a factor precedes each vector, unless they are f32
        bool has_factors;
    };

    /// Throws unless the index holds ntotal vectors, since fields may have been
    /// set by hand. `where` names the calling function.
    virtual Rows rows(const char* where) const;

    /// Exceptions of the kernel in FAISS's own loops.
    mutable KernelExceptions exceptions;

    /// The stored vectors, size ntotal * d; null unless they are stored as f32.
    const float* get_xb() const {
        return store == Store::f32
                ? reinterpret_cast<const float*>(
                          mapped ? mapped.random_access : codes.data())
                : nullptr;
    }

   protected:
    void parameters(FieldVisitor& v) const;

    /// Calls train() if the kernel is not trained. check() throws if the kernel
    /// is not defined on one of the vectors; it is called before and after.
    void train_kernel(
            const std::function<void()>& check,
            const std::function<void()>& train);

    enum class Subset { distances, kernel_values, scores };

    /// Implements compute_distance_subset, compute_kernel_subset and
    /// compute_score_subset.
    virtual void compare_subset(
            Subset what,
            idx_t n,
            const float* x,
            idx_t k,
            float* out,
            const idx_t* labels) const;

   private:
    void encode(idx_t n, const float* x, uint8_t* bytes, const char* where)
            const;

    /// Throws unless the kernel is defined on the vectors as they are stored.
    void check_rows(idx_t n, const uint8_t* bytes, const char* where) const;
};

} // namespace faiss_ext
