// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <faiss/IndexPreTransform.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/SparseInput.h>

namespace faiss_ext {

struct PackedChain;

/** A faster faiss::IndexPreTransform: transformations in front of an index,
 * as in `HKM1(chi2),PCAR64,...`.
 *
 * A map and the matrices behind it are applied block by block, so that mapped
 * vectors, which are long, never leave the cache. Products are computed as in
 * DenseProjection: the product of one vector does not depend on the other
 * vectors, on the number of threads or on BLAS.
 *
 * Matrices (any faiss::LinearTransform such as PCA, OPQ and random rotations,
 * but not ITQ) are packed on first use. They are packed again after training,
 * and after the chain or verify_chain indicates that they have changed.
 *
 * A faiss::PCAMatrix in the chain is trained by principal_components, on at
 * most max(20,000, 10 d_in) vectors (and at most max_points_per_d * d_in). It
 * gets only its d_out leading eigenvectors and eigenvalues. Everything else is
 * trained as in FAISS. If training fails, transformations that were not trained
 * before stay untrained.
 *
 * If plain search parameters have a selector, and the index is a
 * faiss::IndexIVF that supports selectors and has no max_codes, a query visits
 * lists until it has met as many selected vectors as nprobe lists hold on
 * average, and until it has k results.
 *
 * In all other respects train, add, search and the chain are FAISS's.
 */
struct IndexPreTransformSIMD : faiss::IndexPreTransform, SparseInput {
    /** Whether each call checks the matrices for changes. It compares all
     * numbers with the packed ones and packs the matrices again if one differs.
     *
     * The check costs about as much as multiplying one vector. index_factory,
     * read_index and clone_index clear verify_chain, because nobody else has a
     * pointer to the transformations that they make. Before you change a matrix
     * of such an index, set it, call train, or replace the transformation in
     * the chain. In Python, `chain` and `prepend_transform` set it.
     */
    bool verify_chain = true;

    /// Takes the index, not null, which is deleted only if own_fields is set.
    /// Put transformations in front with prepend_transform().
    explicit IndexPreTransformSIMD(faiss::Index* index);
    IndexPreTransformSIMD();
    ~IndexPreTransformSIMD() override;

    /// Works as in FAISS; also sets verify_chain, since the caller may keep the
    /// pointer.
    void prepend_transform(faiss::VectorTransform* transform);

    void train(idx_t n, const float* x) override;
    void add(idx_t n, const float* x) override;
    void add_with_ids(idx_t n, const float* x, const idx_t* xids) override;

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

#ifndef SWIG
    /// True if the first transformation is one of this library.
    bool takes_sparse() const override;
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

    /// These check ids, which some of FAISS's indexes do not.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;

    void search_and_reconstruct(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            float* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    faiss::DistanceComputer* get_distance_computer() const override;

    /// Throws if an IndexIDMap in front of inverted lists calls it. In FAISS
    /// 1.7.3 it also throws if the lists consist of blocks, as in `IVF,PQx4fs`.
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// Moves the vectors of `other` to this index; `other` is then empty, and
    /// its ntotal is 0. FAISS's flat index behind it may have been mapped from
    /// a file.
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(const faiss::Index& other) const override;

    /** Returns the vectors after the first `count` transformations.
     *
     * @param x  size n * d
     * @return   size n * (the dimension there)
     */
    std::vector<float> transformed(idx_t n, const float* x, size_t count) const;

    /// The same for sparse vectors, if takes_sparse() is true and count > 0.
    std::vector<float> transformed(const SparseVectors& x, size_t count) const;

   private:
    mutable std::mutex mutex;
    mutable std::shared_ptr<const PackedChain> packed;

    std::shared_ptr<const PackedChain> packed_chain() const;
    void forget_packed();
    /// Applies the transformations from `begin` up to `end`.
    std::vector<float> transformed(
            idx_t n,
            const float* x,
            size_t begin,
            size_t end) const;
    void check_input(const VectorBatch& x) const;
    /// The vectors for the index behind: x if there are no transformations,
    /// else `room`.
    const float* transformed_for_index(
            const VectorBatch& x,
            const char* where,
            std::vector<float>& room) const;
};

} // namespace faiss_ext
