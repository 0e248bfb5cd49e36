// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

struct IndexBinaryFlatKernel;

/** Ranks the candidates of another index by the exact similarity of packed
 * bits.
 *
 *     auto index = index_binary_factory(
 *             2048, "CWS512,BFlat,Refine(BKFlat(jaccard))");
 *
 * base_index finds k_factor * k candidates, and refine_index compares them with
 * the query. Results and distances are those of an IndexBinaryFlatKernel,
 * ordered by distance and then by id.
 *
 * base_index is either an index of the same codes, such as an
 * IndexBinaryHNSWSIMD, which finds candidates by Hamming distance. Or it is an
 * IndexBinaryKernelHash, whose hash gets the codes as vectors of zeros and
 * ones. Codes are then not copied as floats.
 *
 * add and train change both indexes or neither, as in IndexRefineKernel.
 *
 * String: `...,Refine(BKFlat(<kernel>))`, in the factory of binary indexes.
 */
struct IndexBinaryRefineKernel : faiss::IndexBinary {
    faiss::IndexBinary* base_index = nullptr;
    IndexBinaryFlatKernel* refine_index = nullptr;
    bool own_fields = false; ///< whether the destructor deletes both indexes
    float k_factor = 1;      ///< candidates per result, at least 1

    /// The two indexes must have the same number of codes.
    IndexBinaryRefineKernel(
            faiss::IndexBinary* base_index,
            IndexBinaryFlatKernel* refine_index);
    IndexBinaryRefineKernel() = default;
    IndexBinaryRefineKernel(const IndexBinaryRefineKernel&) = delete;
    IndexBinaryRefineKernel& operator=(const IndexBinaryRefineKernel&) = delete;
    ~IndexBinaryRefineKernel() override;

    void train(idx_t n, const uint8_t* x) override;
    void add(idx_t n, const uint8_t* x) override;

    /** `params` may be plain, a SearchParametersRefine, or
     * faiss::IndexRefineSearchParameters.
     *
     * If the selector of plain parameters selects few codes, refine_index
     * compares all of them. Otherwise base_index finds candidates among the
     * selected codes. All selected codes are compared for a query with fewer
     * than k results, or if more than a quarter of its results are in the
     * farther half of its candidates.
     */
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds codes at a distance < radius by refine_index alone, so the results
    /// are exact. Supports `params->sel`.
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    // These throw UnsupportedError: ids are positions. A table of ids in front
    // supports both.
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;
    size_t remove_ids(const faiss::IDSelector& sel) override;

    void reset() override;

    /// Moves the codes of another index with equal parts behind those of this
    /// one. add_id must be 0, since ids are positions.
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;

    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;

    /// Throws unless the parts match. They may have been set by hand.
    void check_parts() const;
};

} // namespace faiss_ext
