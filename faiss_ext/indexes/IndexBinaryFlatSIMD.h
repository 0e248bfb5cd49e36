// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexBinaryFlat.h>

#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** faiss::IndexBinaryFlat with a faster scan: the same codes, the same results,
 * the same files.
 *
 * Blocks of codes are compared with many queries at a time, by the widest
 * instructions that the processor has, and only distances below the k-th so far
 * are looked at again. The time hardly depends on k.
 *
 * Of codes at equal distances those with smaller ids are found, and come first.
 * Where there are fewer than k, the rest is id -1 and the largest distance.
 *
 * String: `BFlat`, in the factories of this library.
 */
struct IndexBinaryFlatSIMD : faiss::IndexBinaryFlat {
    /// @param d  number of bits, a multiple of 8
    explicit IndexBinaryFlatSIMD(idx_t d);

    /// takes over the codes of another index
    explicit IndexBinaryFlatSIMD(faiss::IndexBinaryFlat&& other);

    IndexBinaryFlatSIMD() = default;

    /** The codes, where they lie in a file that is mapped into memory: read
     * with IO_FLAG_MMAP. Then xb is empty, the index can only be searched, and
     * only this library's write_index_binary can write it.
     */
    FileRange mapped;

    const uint8_t* codes() const { ///< xb, or what stands for it
        return mapped ? mapped.sequential : xb.data();
    }
    size_t num_bytes() const {
        return mapped ? mapped.size : xb.size();
    }

    // What changes the index throws if it is mapped; reset() lets go of the
    // file.
    void train(idx_t n, const uint8_t* x) override;
    void add(idx_t n, const uint8_t* x) override;
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reset() override;

    /// params: `sel` is honoured
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Codes at a distance < radius, by ascending id; params: `sel` is honoured
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throw if there is no such id.
    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;

    /// Takes over the codes of another flat index, behind those of this one.
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;
};

} // namespace faiss_ext
