// SPDX-License-Identifier: MIT
// Adds vectors to a graph and removes them.

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <faiss/impl/HNSW.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/GraphPlaces.h>
#include <faiss_ext/indexes/PlaceMoves.h>

#include "core/huge_pages.h"
#include "indexes/vertex_scores.h"

namespace faiss_ext {

/// The flat index with the vectors of a graph, by their vertices.
struct GraphStorage {
    virtual ~GraphStorage() = default;

    virtual std::unique_ptr<VertexScores> scores() const = 0;

    /// Removes vectors, which must be the last ones. Does not fail.
    virtual void remove_last(idx_t n) = 0;

    /// See IndexClass::prepare_moves.
    virtual std::function<void()> prepare_moves(const PlaceMoves& moves) = 0;

    /// Whether prepare_moves can move vectors.
    virtual bool can_move() const = 0;

    /// Copies the vectors of these vertices. The function that it returns
    /// exchanges the vectors of the storage for the copies, and each further
    /// call of it exchanges them again. Calls of it do not fail.
    virtual std::function<void()> prepare_exchange(
            const std::vector<int32_t>& vertices) = 0;
};

/// Returns a GraphStorage::prepare_exchange for a flat index with these codes.
template <class FlatT, class Codes>
std::function<void()> exchange_of(
        FlatT& flat,
        Codes& codes,
        const std::vector<int32_t>& vertices) {
    const size_t size = flat.code_size;
    auto copies = std::make_shared<Codes>(codes);
    copies->resize(vertices.size() * size);
    for (size_t i = 0; i < vertices.size(); i++) {
        std::copy_n(
                codes.data() + vertices[i] * size,
                size,
                copies->data() + i * size);
    }
    prefer_huge_pages(memory_of(*copies));
    return [&flat, &codes, copies, total = idx_t(vertices.size())]() mutable {
        std::swap(codes, *copies);
        std::swap(flat.ntotal, total);
    };
}

/// Whether the vertices of a graph are being linked, which forbids other calls.
struct BeingBuilt {
    bool& flag;

    explicit BeingBuilt(bool& flag) : flag(flag) {
        flag = true;
    }
    ~BeingBuilt() {
        flag = false;
    }
    BeingBuilt(const BeingBuilt&) = delete;
    BeingBuilt& operator=(const BeingBuilt&) = delete;
};

/** Changes the graph, the vertices and the number of vectors of an index.
 *
 * The documentation of IndexHNSWKernel says when removed vectors are linked
 * past.
 */
class GraphChanges {
   public:
    GraphChanges(
            faiss::HNSW& hnsw,
            GraphPlaces& places,
            idx_t& ntotal,
            bool& is_being_built,
            GraphStorage& storage)
            : hnsw(hnsw),
              places(places),
              ntotal(ntotal),
              is_being_built(is_being_built),
              storage(storage) {}

    /// Links n vectors that `store` adds to the storage. After an error, none
    /// of them is there.
    void append(idx_t n, const std::function<void()>& store);

    /// Removes vectors by their places. Later ones move up.
    size_t remove(const faiss::IDSelector& sel);

    /// See IndexClass::prepare_moves. The function that it returns uses the
    /// members of the index.
    std::function<void()> prepare_moves(const PlaceMoves& moves);

    /// Builds the graph again, without removed vectors.
    void compact();

   private:
    faiss::HNSW& hnsw;
    GraphPlaces& places;
    idx_t& ntotal;
    bool& is_being_built;
    GraphStorage& storage;

    idx_t num_vertices() const {
        return idx_t(hnsw.offsets.size()) - 1;
    }
    std::vector<int32_t> choose_vertices(idx_t n);
    void draw_levels(idx_t n);
    void link(const std::vector<int32_t>& vertices);
    void link_past_removed(idx_t n);
};

} // namespace faiss_ext
