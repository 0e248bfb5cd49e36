// SPDX-License-Identifier: MIT
#pragma once

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
 * kernel's feature space. The vectors themselves are stored, so that the index
 * is also the refine index of faiss::IndexRefine and the storage of
 * faiss::IndexHNSW. Results are chosen by score (Kernel::score_block) and then
 * by id, and ordered by distance, then score, then id, whatever the number of
 * threads or the split into batches: nearest first, also among those whose
 * distances are the same float. Strings: `KFlat(gaussian)`,
 * `KFlat(chi2,store=u8)`.
 *
 * Functions that take vectors throw a faiss::FaissException, and change
 * nothing, where the kernel is not defined on one of them. Removing vectors
 * moves the ids of those behind them, as in faiss::IndexFlat.
 */
struct IndexFlatKernel : faiss::IndexFlatCodes, HasFields {
    ClonePtr<Kernel> kernel;

    /** What a component is stored as. Distances are those of the vectors as
     * they are stored.
     *
     * - f32: as it is
     * - f16: in half precision, relative to the largest component of its vector
     *   rounded down to a power of two: with an error of 2^-11 times itself, or
     *   2^-25 times the largest
     * - u8: as a multiple from 0 to 255 of a step that the vector has, for
     *   components >= 0. Where all components are such multiples, as of counts
     *   that have been normalised, nothing but the last bits of the floats is
     *   lost; others have an error of up to 1/510 of the largest component.
     */
    enum class Store { f32, f16, u8 };
    Store store = Store::f32;

    /// The vectors, where they lie in the file of the index, mapped into
    /// memory: read with IO_FLAG_MMAP. Then `codes` is empty, and the index can
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

    /// Trains the kernel, if a parameter was left to the data.
    void train(idx_t n, const float* x) override;

    void add(idx_t n, const float* x) override;

    /// params: `sel` is honoured
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Distances < radius, or kernel values > radius; by ascending id for each
    /// query. params: `sel` is honoured
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /** The metric between each query and vectors of its own: what ranks
     * candidates again. As faiss::IndexFlat::compute_distance_subset; a label
     * of -1 gets the distance that search pads with, an id that does not exist
     * is an error.
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

    /// As compute_distance_subset, with k(x, y) in place of distances whatever
    /// the metric is: a distance alone does not tell it where k(x, x) varies.
    /// A label of -1 gets the least float.
    void compute_kernel_subset(
            idx_t n,
            const float* x,
            idx_t k,
            float* values,
            const idx_t* labels) const;

    /// As search and compute_distance_subset, with scores (Kernel::score_block)
    /// in place of distances, and the largest float in place of padding: to put
    /// results of several indexes together.
    void search_scores(
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

    /** Makes what search returns of scores.
     *
     * @param scores  of the results of each query in order, size n * k; they
     *                become distances or kernel values
     * @param labels  size n * k, -1 at the end: padding
     */
    void values_of_scores(idx_t n, idx_t k, float* scores, idx_t* labels) const;

    /// Throws if there is no such id.
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void sa_encode(idx_t n, const float* x, uint8_t* bytes) const override;
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    faiss::FlatCodesDistanceComputer* get_FlatCodesDistanceComputer()
            const override;

    // What changes the index throws if it is mapped; reset() lets go of the
    // file.
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;
    void check_compatible_for_merge(const faiss::Index& other) const override;
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /// Adds vectors as sa_encode gives them. xids: null, ids are positions
    void add_sa_codes(idx_t n, const uint8_t* bytes, const idx_t* xids)
            FAISS_EXT_OVERRIDE_1_10;

    /// Vector perm[i] becomes vector i. perm: a permutation of size ntotal
    virtual void permute_entries(const idx_t* perm);

    /// The ntotal stored vectors.
    struct Rows {
        const uint8_t* data; ///< to read one here and one there
        const uint8_t*
                sequential; ///< the same bytes, to read one after another
        size_t stride;      ///< bytes from one vector to the next
        bool has_factors;   ///< of f16 and u8: in front of each vector
    };

    /// Throws unless the index holds as many as it says: fields may have been
    /// set by hand. `where` names the calling function.
    virtual Rows rows(const char* where) const;

    /// what the kernel has thrown in FAISS's own loops
    mutable KernelExceptions exceptions;

    /// the stored vectors, size ntotal * d; null unless they are stored as f32
    const float* get_xb() const {
        return store == Store::f32
                ? reinterpret_cast<const float*>(
                          mapped ? mapped.random_access : codes.data())
                : nullptr;
    }

   protected:
    void parameters(FieldVisitor& v) const;

    enum class Subset { distances, kernel_values, scores };

    /// compute_distance_subset, compute_kernel_subset and compute_score_subset
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

    /// Throws unless the kernel is defined on vectors as they are stored.
    void check_rows(idx_t n, const uint8_t* bytes, const char* where) const;
};

} // namespace faiss_ext
