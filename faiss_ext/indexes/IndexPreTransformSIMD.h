// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <faiss/IndexPreTransform.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

struct PackedChain;

/** faiss::IndexPreTransform, faster: transformations in front of an index, as
 * `HKM1(chi2),PCAR128,...` makes them.
 *
 * A map and the matrices behind it are applied block by block, so that mapped
 * vectors, which are long, never leave the cache. Products are those of
 * DenseProjection: for one vector they do not depend on the others, nor on the
 * number of threads or on BLAS. Matrices (any faiss::LinearTransform: PCA, OPQ,
 * random rotations; not ITQ) are packed when they are first used, after
 * training, and after the chain or verify_chain says that they have changed.
 *
 * A faiss::PCAMatrix in the chain is trained by principal_components on at most
 * max(20,000, 10 d_in) of the vectors (and max_points_per_d * d_in): it gets
 * its d_out leading eigenvectors and eigenvalues, not all. Everything else is
 * trained as FAISS does. Where training fails, the transformations that were
 * not trained before are not trained after it. train, add and search are
 * FAISS's in all other respects, and the chain is, too.
 */
struct IndexPreTransformSIMD : faiss::IndexPreTransform {
    /** Whether each call compares all numbers of the matrices with those that
     * were packed, and packs them again if one has changed. The comparison
     * costs about as much as to multiply one vector.
     *
     * index_factory, read_index and clone_index clear it: nobody else has a
     * pointer to the transformations that they make. Set it before you change
     * a matrix of such an index, or call train, or replace the transformation
     * in the chain. In Python, `chain` and `prepend_transform` set it.
     */
    bool verify_chain = true;

    /// Takes the index, not deleted unless own_fields is set, and puts
    /// transformations in front by prepend_transform().
    explicit IndexPreTransformSIMD(faiss::Index* index);
    IndexPreTransformSIMD();
    ~IndexPreTransformSIMD() override;

    /// As in FAISS; sets verify_chain, since the caller may keep the pointer.
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

    /// Check ids, which some of FAISS's indexes behind do not.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    void search_and_reconstruct(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            float* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throws if an IndexIDMap in front of inverted lists calls it.
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// Leaves `other` empty, as it says then. FAISS's flat index behind may
    /// have been in a file.
    void merge_from(faiss::Index& other, idx_t add_id = 0) override;

    /** The vectors behind the first `count` transformations.
     *
     * @param x  size n * d
     * @return   size n * (the dimension there)
     */
    std::vector<float> transformed(idx_t n, const float* x, size_t count) const;

   private:
    mutable std::mutex mutex;
    mutable std::shared_ptr<const PackedChain> packed;

    std::shared_ptr<const PackedChain> packed_chain() const;
    void forget_packed();
    std::vector<float> transformed_for_index(
            idx_t n,
            const float* x,
            const char* where) const;
};

} // namespace faiss_ext
