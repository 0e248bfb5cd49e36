// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexBinaryFlat.h>

#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** A faster faiss::IndexBinaryFlat, with the same codes, results and files.
 *
 * Blocks of codes are compared with many queries at a time, by the widest
 * instructions of the processor. Only codes with a distance below the current
 * k-th are examined further, so the time hardly depends on k.
 *
 * Of codes at equal distances, those with smaller ids are returned, and come
 * first. If there are fewer than k, the rest have id -1 and the largest
 * distance.
 *
 * String: `BFlat`, in the factories of this library.
 */
struct IndexBinaryFlatSIMD : faiss::IndexBinaryFlat {
    /// @param d  number of bits, a multiple of 8
    explicit IndexBinaryFlatSIMD(idx_t d);

    /// Takes over the codes of another index.
    explicit IndexBinaryFlatSIMD(faiss::IndexBinaryFlat&& other);

    IndexBinaryFlatSIMD() = default;

    /** The codes in a file mapped into memory, for an index that was read with
     * IO_FLAG_MMAP.
     *
     * xb is then empty, the index can only be searched, and only this library's
     * write_index_binary can write it.
     */
    FileRange mapped;

    const uint8_t* codes() const { ///< the codes, from xb or from the file
        return mapped ? mapped.sequential : xb.data();
    }
    size_t num_bytes() const {
        return mapped ? mapped.size : xb.size();
    }

    // On a mapped index these throw, except reset(), which releases the file.
    void train(idx_t n, const uint8_t* x) override;
    void add(idx_t n, const uint8_t* x) override;

    /// Throws UnsupportedError: ids are positions.
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    /// Supports `params->sel`.
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds codes at a distance < radius, by ascending id. Supports
    /// `params->sel`.
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// These throw if the id does not exist.
    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;

    /// Moves the codes of another flat index behind the codes of this one.
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;
};

} // namespace faiss_ext
