// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexRefine.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** faiss::IndexRefine whose failures leave it in a known state: what stands in
 * front of Refine(KFlat(...)), and of RFlat behind an index of this library.
 *
 * add and train are all or nothing: vectors that one of the two indexes refuses
 * are in neither. Where an index in front cannot take vectors out again, search
 * and add throw until reset() is called. Exceptions of kernels reach the
 * caller, without a KernelExceptionGuard; a k_factor below 1 is an error.
 *
 * Candidates are compared by IndexFlatKernel::compute_distance_subset where
 * that is the refine index; results are then ordered by distance and by id.
 */
struct IndexRefineKernel : faiss::IndexRefine {
    /// Neither index is deleted unless own_fields and own_refine_index are set.
    IndexRefineKernel(faiss::Index* base_index, faiss::Index* refine_index);
    IndexRefineKernel() = default;

    void train(idx_t n, const float* x) override;
    void add(idx_t n, const float* x) override;

    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throws: how many candidates to rank again is not known.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throws if there is no such id.
    void reconstruct(idx_t key, float* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    /// The vector by the refine index's part of a code, the second one. (That
    /// of FAISS 1.7.3 decodes the first one.)
    void sa_decode(idx_t n, const uint8_t* bytes, float* x) const override;
};

} // namespace faiss_ext
