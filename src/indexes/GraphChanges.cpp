// SPDX-License-Identifier: MIT
#include "indexes/GraphChanges.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/huge_pages.h"
#include "indexes/graph_build.h"

namespace faiss_ext {

void GraphChanges::append(idx_t n, const std::function<void()>& store) {
    link_past_removed(n);
    const idx_t before = num_vertices();
    const faiss::RandomGenerator random = hnsw.rng;
    const auto forget_new = [&] {
        storage.remove_last(n);
        hnsw.rng = random;
    };
    store();
    std::vector<int32_t> added;
    try {
        added = choose_vertices(n);
    } catch (...) {
        forget_new();
        throw;
    }
    if (!places.are_equal()) {
        places.append(added);
    }
    ntotal += n;
    try {
        link(added);
    } catch (...) {
        ntotal -= n;
        if (before == 0) {
            hnsw.reset();
            forget_new();
        } else {
            places.list(ntotal + n);
            places.remove_last(n);
        }
        throw;
    }
}

/// Returns the vertices of n new vectors, which are the last of the storage.
/// The first vectors become new vertices; the last ones take unlinked ones.
std::vector<int32_t> GraphChanges::choose_vertices(idx_t n) {
    const idx_t total = num_vertices();
    const idx_t num_reused =
            storage.can_move() ? std::min<idx_t>(n, places.unlinked.size()) : 0;
    const idx_t num_new = n - num_reused;
    std::vector<int32_t> added(num_new);
    std::iota(added.begin(), added.end(), int32_t(total));
    added.insert(
            added.end(),
            places.unlinked.rbegin(),
            places.unlinked.rbegin() + num_reused);
    places.reserve(ntotal + n, total + num_new);
    const PlaceMoves moves = PlaceMoves::of_last(
            total + n, {added.begin() + num_new, added.end()});
    const auto move = storage.prepare_moves(moves);
    draw_levels(num_new);
    if (num_reused > 0) {
        move();
    }
    return added;
}

void GraphChanges::draw_levels(idx_t n) {
    const StaysInHugePages links(hnsw.neighbors);
    const StaysInHugePages offsets(hnsw.offsets);
    const size_t total = num_vertices(), levels = hnsw.levels.size();
    try {
        hnsw.prepare_level_tab(n, levels == total + n);
    } catch (...) {
        hnsw.levels.resize(levels);
        hnsw.offsets.resize(total + 1);
        hnsw.neighbors.resize(hnsw.offsets[total]);
        throw;
    }
}

void GraphChanges::link(const std::vector<int32_t>& vertices) {
    const BeingBuilt mark(is_being_built);
    link_vertices(
            hnsw,
            *storage.scores(),
            places,
            vertices,
            ntotal - vertices.size());
}

/// Links past removed vertices, in proportion to a change of n vectors.
void GraphChanges::link_past_removed(idx_t n) {
    const idx_t total = num_vertices();
    const auto num_removed =
            idx_t(places.places.size() - places.vertices.size());
    // few survivors have lost too many paths
    const bool are_few =
            4 * places.num_passed() > total || 2 * num_removed > total;
    if (are_few && storage.can_move()) {
        compact();
        return;
    }
    constexpr idx_t visits = 64;
    const BeingBuilt mark(is_being_built);
    faiss_ext::link_past_removed(hnsw, *storage.scores(), places, visits * n);
}

size_t GraphChanges::remove(const faiss::IDSelector& sel) {
    std::vector<bool> selected(ntotal);
    for (idx_t place = 0; place < ntotal; place++) {
        selected[place] = sel.is_member(place);
    }
    const auto removed = size_t(std::ranges::count(selected, true));
    if (removed == 0) {
        return 0;
    }
    link_past_removed(removed);
    places.list(ntotal);
    idx_t kept = 0;
    for (idx_t place = 0; place < ntotal; place++) {
        const int32_t vertex = places.vertices[place];
        places.places[vertex] = selected[place] ? -1 : int32_t(kept);
        if (!selected[place]) {
            places.vertices[kept++] = vertex;
        }
    }
    places.vertices.resize(kept);
    ntotal = kept;
    return removed;
}

std::function<void()> GraphChanges::prepare_moves(const PlaceMoves& moves) {
    if (moves.before == moves.after) {
        return [] {};
    }
    link_past_removed(moves.before - moves.after);
    places.list(ntotal);
    return [&places = places, &ntotal = ntotal, &moves] {
        places.apply(moves);
        ntotal = moves.after;
    };
}

void GraphChanges::compact() {
    auto graph = std::make_unique<faiss::HNSW>(hnsw);
    graph->reset();
    graph->prepare_level_tab(ntotal);
    prefer_huge_pages(memory_of(graph->neighbors));
    prefer_huge_pages(memory_of(graph->offsets));
    std::vector<int32_t> vertices(ntotal), all(ntotal);
    std::iota(all.begin(), all.end(), 0);
    std::transform(all.begin(), all.end(), vertices.begin(), [&](int32_t i) {
        return places.vertex(i);
    });
    const auto exchange = storage.prepare_exchange(vertices);
    exchange();
    try {
        const BeingBuilt mark(is_being_built);
        link_vertices(
                *graph, *storage.scores(), GraphPlaces(), std::move(all), 0);
    } catch (...) {
        exchange();
        throw;
    }
    hnsw = std::move(*graph);
    places = {};
}

} // namespace faiss_ext
