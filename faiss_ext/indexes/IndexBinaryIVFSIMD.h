#pragma once

#include <faiss/IndexBinaryIVF.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/** faiss::IndexBinaryIVF with a faster search: the same lists, the same
 * parameters, the same files.
 *
 * The codes of the nprobe lists with the nearest centroids are compared with
 * the query by the widest instructions that the processor has, and only
 * distances below the k-th so far are looked at again. The time hardly depends
 * on k, and not on `use_heap`. No list is begun after max_codes codes, if that
 * is not 0.
 *
 * Of codes at equal distances those in lists of nearer centroids are found, and
 * come first; in a list, those that were added first. Where there are fewer
 * than k, the rest is id -1 and the largest distance.
 *
 * String: `BIVF1024`, `BIVF1024_HNSW32`, in the factories of this library.
 */
struct IndexBinaryIVFSIMD : faiss::IndexBinaryIVF {
    /**
     * @param quantizer  finds the nearest centroids; not owned
     * @param d          number of bits, a multiple of 8
     * @param nlist      number of lists
     */
    IndexBinaryIVFSIMD(faiss::IndexBinary* quantizer, size_t d, size_t nlist);

    /// Takes over the lists of another index, and its quantizer; one of its own
    /// that is flat becomes an IndexBinaryFlatSIMD.
    explicit IndexBinaryIVFSIMD(faiss::IndexBinaryIVF&& other);

    IndexBinaryIVFSIMD() = default;

    /// params: `sel` is honoured, and of SearchParametersIVF all
    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Codes at a distance < radius, by list and then as they were added;
    /// params: as for search
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;
};

} // namespace faiss_ext
