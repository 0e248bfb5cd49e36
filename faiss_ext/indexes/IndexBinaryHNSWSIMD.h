// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>

#include <faiss/IndexBinaryHNSW.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/GraphPlaces.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

namespace faiss_ext {

class GraphChanges;
struct VertexScores;

/** Graph search by Hamming distance: a faiss::IndexBinaryHNSW whose codes can
 * be removed, filtered, searched by range, and merged.
 *
 * The graph has the parameters of the one of FAISS: M, and in the field hnsw
 * efConstruction and efSearch. It is built as that of IndexHNSWKernel.
 * Selectors, equal codes, removed codes and compact() work as there.
 *
 * Results are ordered by distance and then by id. A range search considers the
 * codes that a search would examine, and orders its results by id. If few codes
 * are selected, all of them are compared.
 *
 * The graph depends on the codes, their order and how they were divided into
 * calls of add and remove_ids, but not on the number of threads. If add fails
 * or is interrupted, the codes of that call are removed.
 *
 * String: `BHNSW32`, in the factories of this library.
 */
struct IndexBinaryHNSWSIMD : faiss::IndexBinaryHNSW {
    /// The vertices of the codes.
    GraphPlaces places;

    /**
     * @param d  number of bits, a multiple of 8
     * @param M  links of a vertex, at least 2
     */
    explicit IndexBinaryHNSWSIMD(int d, int M = 32);

    /// Takes over the graph and the codes of another index, whose storage must
    /// be flat and its own.
    explicit IndexBinaryHNSWSIMD(faiss::IndexBinaryHNSW&& other);

    IndexBinaryHNSWSIMD() = default;

    IndexBinaryHNSWSIMD(const IndexBinaryHNSWSIMD&) = delete;
    IndexBinaryHNSWSIMD& operator=(const IndexBinaryHNSWSIMD&) = delete;

    void add(idx_t n, const uint8_t* x) override;

    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds codes at a distance < radius.
    void range_search(
            idx_t n,
            const uint8_t* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// These throw if an id does not exist.
    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;

    void reset() override;

    /// Removes codes. Later ones move up, as in faiss::IndexBinaryFlat.
    size_t remove_ids(const faiss::IDSelector& sel) override;
    /// See IndexClass::prepare_moves.
    std::function<void()> prepare_moves(const PlaceMoves& moves);

    /// See IndexHNSWKernel::compact.
    void compact();

    /// Vertices of removed codes, whose memory is still in use.
    idx_t num_removed() const;

    /** Adds the codes of another IndexBinaryHNSWSIMD with the same number of
     * bits, and empties that index.
     *
     * They are linked one after the other, which takes as long as adding them.
     * After an error both indexes have the same codes as before.
     *
     * @param add_id  must be 0, because ids are positions
     */
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;

    /// Throws UnsupportedError: ids are positions.
    void add_with_ids(idx_t n, const uint8_t* x, const idx_t* xids) override;

    /// Throws unless the graph and the storage fit the codes. `where` names the
    /// caller.
    void check_graph(const char* where) const;

   protected:
    // The distance of codes, which derived classes replace.

    /// Distances as floats, by which the graph is built and searched.
    virtual std::unique_ptr<VertexScores> scores() const;

    /// The distance between a query and a vertex, of which the score is known.
    virtual int32_t distance(const uint8_t* query, int32_t vertex, float score)
            const;

    /// A score such that no distance below the radius has a larger one.
    virtual float largest_score(int radius) const;

    /// Finds the k nearest among the selected vertices, by distance and then by
    /// vertex.
    virtual void scan(
            const faiss::IDSelector& sel,
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* vertices) const;

    /// Throws unless another graph of this class compares codes in the same
    /// way.
    virtual void check_same_distance(const IndexBinaryHNSWSIMD&) const {}

    IndexBinaryFlatSIMD& codes() const;

   private:
    /// True while vertices are being linked, by this thread or by threads that
    /// it waits for.
    bool is_being_built = false;

    struct Storage;

    IndexBinaryHNSWSIMD(std::unique_ptr<IndexBinaryFlatSIMD> flat, int M);

    GraphChanges changes(Storage& storage);
    /// Links n codes that `store` adds to the storage.
    void append(
            idx_t n,
            const std::function<void(IndexBinaryFlatSIMD&)>& store);

    template <class Found>
    void for_searches(
            const char* where,
            idx_t n,
            const uint8_t* x,
            Found&& found) const;
};

} // namespace faiss_ext
