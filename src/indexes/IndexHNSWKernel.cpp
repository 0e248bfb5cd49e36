// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/ranking.h"
#include "indexes/graph_build.h"
#include "indexes/graph_walk.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

IndexFlatKernel* checked(IndexFlatKernel* storage, int M) {
    FAISS_EXT_THROW_IF_NOT_MSG(storage, "IndexHNSWKernel: the storage is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            M >= 2 && M <= 1024 && storage->ntotal == 0,
            "IndexHNSWKernel: M is %d and the storage has %" PRId64
            " vectors, expected M from 2 to 1024 and an empty storage",
            M,
            int64_t(storage->ntotal));
    FAISS_EXT_THROW_IF_NOT_MSG(
            storage->store != IndexFlatKernel::Store::sparse,
            "IndexHNSWKernel: the storage has sparse vectors (store=sparse), expected dense ones");
    return storage;
}

/// Selects vertices by the places of their vectors.
struct VertexSelector : faiss::IDSelector {
    const GraphPlaces& places;
    const faiss::IDSelector* sel; ///< of places; null selects all

    VertexSelector(const GraphPlaces& places, const faiss::IDSelector* sel)
            : places(places), sel(sel) {}

    bool is_member(idx_t vertex) const override {
        const idx_t place = places.place(int32_t(vertex));
        return place >= 0 && (!sel || sel->is_member(place));
    }
};

/// Whether a walk has kept k selected vertices among the nearest ones. Selected
/// vertices beyond these may have nearer ones that it has not met.
bool is_complete(const Frontier& selected, const Frontier& kept, idx_t k) {
    return selected.size() == size_t(k) &&
            selected[k - 1].score <= kept[kept.size() - 1].score;
}

} // namespace

IndexHNSWKernel::IndexHNSWKernel(IndexFlatKernel* storage, int M)
        : IndexHNSW(checked(storage, M), M) {
    is_trained = storage->is_trained;
}

IndexFlatKernel& IndexHNSWKernel::vectors() const {
    auto* flat = dynamic_cast<IndexFlatKernel*>(storage);
    FAISS_EXT_THROW_IF_NOT_MSG(
            flat,
            "IndexHNSWKernel: the storage is of another class, expected an IndexFlatKernel");
    return *flat;
}

void IndexHNSWKernel::check_not_being_built(const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !is_being_built,
            "IndexHNSWKernel::%s: the graph is being built; do not use the index in a progress function",
            where);
}

idx_t IndexHNSWKernel::num_vertices() const {
    return idx_t(hnsw.offsets.size()) - 1;
}

idx_t IndexHNSWKernel::num_removed() const {
    return idx_t(places.places.size() - places.vertices.size());
}

void IndexHNSWKernel::check_graph(const char* where) const {
    check_not_being_built(where);
    const idx_t total = ntotal + num_removed();
    if (num_vertices() != total || !storage || storage->ntotal != total) {
        check_counts(*this);
    }
    const bool has_places =
            places.are_equal() || places.vertices.size() == size_t(ntotal);
    const bool has_entry = ntotal > 0 || hnsw.entry_point != -1;
    FAISS_EXT_THROW_IF_NOT_FMT(
            has_places && graph_fits(hnsw, total, has_entry),
            "IndexHNSWKernel::%s: the graph's entry point, levels and links are inconsistent; reset the index and add the vectors again",
            where);
}

void IndexHNSWKernel::add(idx_t n, const float* x) {
    check_graph("add");
    const size_t levels = hnsw.levels.size();
    const idx_t total = num_vertices();
    FAISS_EXT_THROW_IF_NOT_FMT(
            levels == size_t(total) ||
                    (places.are_equal() && levels == size_t(total + n)),
            "IndexHNSWKernel::add: the graph has levels for %zu vectors, expected %" PRId64
            ", or %" PRId64 " with the new ones",
            levels,
            int64_t(total),
            int64_t(total + n));
    check_trained(is_trained, "IndexHNSWKernel::add");
    check_ef(hnsw.efConstruction, "efConstruction", "IndexHNSWKernel::add");
    if (n == 0) {
        return;
    }
    vectors().kernel->check_input(n, x, d, "IndexFlatKernel::add");
    append(n, [&](IndexFlatKernel& flat) { flat.add(n, x); });
}

void IndexHNSWKernel::append(
        idx_t n,
        const std::function<void(IndexFlatKernel&)>& store) {
    IndexFlatKernel& flat = vectors();
    link_past_removed(n);
    const idx_t before = num_vertices();
    const faiss::RandomGenerator random = hnsw.rng;
    const PlaceSelector last = PlaceSelector::from(before, before + n);
    const auto forget_new = [&] {
        flat.remove_ids(last);
        hnsw.rng = random;
    };
    store(flat);
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
std::vector<int32_t> IndexHNSWKernel::choose_vertices(idx_t n) {
    const idx_t total = num_vertices();
    const idx_t num_reused =
            can_move_vectors() ? std::min<idx_t>(n, places.unlinked.size()) : 0;
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
    const auto move = faiss_ext::prepare_moves(storage, moves);
    draw_levels(num_new);
    if (num_reused > 0) {
        move();
    }
    return added;
}

void IndexHNSWKernel::draw_levels(idx_t n) {
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

struct IndexHNSWKernel::BeingBuilt {
    bool& flag;
    explicit BeingBuilt(bool& flag) : flag(flag) {
        flag = true;
    }
    ~BeingBuilt() {
        flag = false;
    }
};

void IndexHNSWKernel::link(const std::vector<int32_t>& vertices) {
    const BeingBuilt mark(is_being_built);
    link_vertices(hnsw, vectors(), places, vertices, ntotal - vertices.size());
}

/// Links past removed vertices, in proportion to a change of n vectors.
void IndexHNSWKernel::link_past_removed(idx_t n) {
    const idx_t total = num_vertices();
    // few survivors have lost too many paths
    const bool are_few =
            4 * places.num_passed() > total || 2 * num_removed() > total;
    if (are_few && can_move_vectors()) {
        compact();
        return;
    }
    constexpr idx_t visits = 64;
    const BeingBuilt mark(is_being_built);
    faiss_ext::link_past_removed(hnsw, vectors(), places, visits * n);
}

size_t IndexHNSWKernel::remove_ids(const faiss::IDSelector& sel) {
    check_graph("remove_ids");
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel::remove_ids");
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

std::function<void()> IndexHNSWKernel::prepare_moves(const PlaceMoves& moves) {
    check_graph("remove_ids");
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel::remove_ids");
    if (moves.before == moves.after) {
        return [] {};
    }
    link_past_removed(moves.before - moves.after);
    places.list(ntotal);
    return [this, &moves] {
        places.apply(moves);
        ntotal = moves.after;
    };
}

/// The vectors of an IndexFileKernel stay where they are.
bool IndexHNSWKernel::can_move_vectors() const {
    const PlaceMoves none(storage->ntotal, {});
    return bool(faiss_ext::prepare_moves(storage, none));
}

void IndexHNSWKernel::compact() {
    check_graph("compact");
    IndexFlatKernel& flat = vectors();
    check_not_mapped(bool(flat.mapped), "IndexHNSWKernel::compact");
    if (!can_move_vectors()) {
        throw UnsupportedError(
                "IndexHNSWKernel::compact: the storage cannot move its vectors, because they are in a file (IndexFileKernel)");
    }
    auto graph = std::make_unique<faiss::HNSW>(hnsw);
    graph->reset();
    graph->prepare_level_tab(ntotal);
    auto codes = flat.codes;
    const size_t size = flat.code_size;
    codes.resize(ntotal * size);
    for (idx_t place = 0; place < ntotal; place++) {
        std::copy_n(
                flat.codes.data() + places.vertex(place) * size,
                size,
                codes.data() + place * size);
    }
    auto exchange = [&, total = ntotal]() mutable {
        std::swap(flat.codes, codes);
        std::swap(flat.ntotal, total);
    };
    std::vector<int32_t> all(ntotal);
    std::iota(all.begin(), all.end(), 0);
    exchange();
    try {
        const BeingBuilt mark(is_being_built);
        link_vertices(*graph, flat, GraphPlaces(), std::move(all), 0);
    } catch (...) {
        exchange();
        throw;
    }
    hnsw = std::move(*graph);
    places = {};
}

template <class Found>
void IndexHNSWKernel::for_walks(
        const char* where,
        idx_t n,
        const float* x,
        idx_t k,
        const faiss::SearchParameters* params,
        Found&& found) const {
    check_graph(where);
    const IndexFlatKernel& flat = vectors();
    const std::string name = std::string("IndexHNSWKernel::") + where;
    check_trained(is_trained && flat.kernel->is_trained, name.c_str());
    const RowScores scores(flat, name.c_str());
    FAISS_EXT_THROW_IF_NOT_FMT(
            hnsw.levels.size() == size_t(num_vertices()),
            "%s: the graph has levels for %zu vectors, expected %" PRId64,
            name.c_str(),
            hnsw.levels.size(),
            int64_t(num_vertices()));
    flat.kernel->check_input(n, x, d, name.c_str());
    const GraphSearch how = graph_search(hnsw, params, name.c_str());
    check_ef(how.ef, "efSearch", name.c_str());
    // of the vertices that a walk meets, some belong to removed vectors
    const size_t num_met = num_vertices() - places.unlinked.size();
    const auto widened = [&](size_t number) {
        return places.are_equal() || ntotal == 0
                ? number
                : size_t(std::ceil(double(number) * num_met / ntotal));
    };
    const size_t ef = widened(how.ef);
    const size_t kept = std::max(ef, widened(std::min(k, ntotal)));
    WalkLimits limits = {how.bounded_queue ? ef : kept};
    if (how.bounded_queue && !how.check_relative_distance) {
        limits = {kept, ef + 1};
    }
    // a changed graph has few links between clusters on the lowest levels
    const size_t breadth_above = places.are_equal() ? 1 : 8;
    std::atomic<size_t> num_scores{0};
    parallel_blocks(n, 1, [&](idx_t i, idx_t) {
        const ThreadWalk memory;
        GraphWalk& walk = *memory;
        const auto score = [&](size_t m, const int32_t* ids, float* out) {
            scores(x + i * d, m, ids, out);
        };
        walk.num_scores = 0;
        found(i, walk, [&](auto&& met) {
            if (ntotal > 0) {
                const ScoredVertex start =
                        walk.descend(hnsw, 0, breadth_above, score);
                met(start);
                walk.walk(hnsw, 0, start, kept, limits, score, met);
            } else {
                walk.frontier.clear(0);
            }
        });
        num_scores += walk.num_scores;
    });
    faiss::hnsw_stats.n1 += n;
    faiss::hnsw_stats.ndis += num_scores;
}

void IndexHNSWKernel::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_scores(n, x, k, distances, labels, params);
    values_of_scores(n, k, distances, labels);
}

void IndexHNSWKernel::values_of_scores(
        idx_t n,
        idx_t k,
        float* scores,
        idx_t* labels) const {
    vectors().values_of_scores(n, k, scores, labels);
}

void IndexHNSWKernel::search_scores(
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_k(k, "IndexHNSWKernel::search");
    constexpr float worst = std::numeric_limits<float>::max();
    const faiss::IDSelector* sel = params ? params->sel : nullptr;
    const VertexSelector wanted(places, sel);
    const bool is_plain_selection = sel && is_plain(params);
    std::unique_ptr<faiss::SearchParameters> wider;
    if (is_plain_selection) {
        check_graph("search");
        const Selected selected(
                *sel,
                ntotal,
                most_compared(std::max<idx_t>(hnsw.efSearch, k), ntotal));
        if (selected.few) {
            std::vector<idx_t> vertices = *selected.few;
            for (idx_t& vertex : vertices) {
                vertex = places.vertex(vertex);
            }
            const PlaceSelector few(std::move(vertices), num_vertices());
            compare_selected(few, n, x, k, scores, labels);
            return;
        }
        wider = params_of_graph(hnsw, selected.fraction);
        params = wider.get();
    }
    const bool passes_removed = !places.are_equal() && !sel;
    if (passes_removed) {
        check_graph("search");
        const idx_t num_passed = places.num_passed();
        const idx_t kept = std::max<idx_t>(hnsw.efSearch, k);
        const bool passes_most = num_passed > ntotal &&
                ntotal <= most_compared(double(kept), num_vertices());
        if (k > ntotal || passes_most) {
            const PlaceSelector all(
                    {places.vertices.begin(), places.vertices.end()},
                    num_vertices());
            compare_selected(all, n, x, k, scores, labels);
            return;
        }
    }
    const bool selects = sel || passes_removed;
    const auto search_one = [&](idx_t i, GraphWalk& walk, auto&& run) {
        Frontier& selected = walk.selected;
        if (selects) {
            selected.clear(k);
            run([&](ScoredVertex v) {
                if (wanted.is_member(v.id)) {
                    selected.push(v);
                }
            });
        } else {
            run([](ScoredVertex) {});
        }
        if (wider && !is_complete(selected, walk.frontier, k)) {
            labels[(i + 1) * k - 1] = -1; // complete_results searches for it
            return;
        }
        const Frontier& best = selects ? selected : walk.frontier;
        for (idx_t j = 0; j < k; j++) {
            const ScoredVertex v =
                    size_t(j) < best.size() ? best[j] : ScoredVertex{NAN, -1};
            const bool is_found = !std::isnan(v.score);
            scores[i * k + j] = is_found ? v.score : worst;
            labels[i * k + j] = is_found ? v.id : -1;
        }
    };
    for_walks("search", n, x, k, params, search_one);
    if (is_plain_selection || passes_removed) {
        complete_results(vectors(), wanted, {n, x, d}, k, scores, labels);
    }
    to_places(n, k, scores, labels);
}

void IndexHNSWKernel::compare_selected(
        const faiss::IDSelector& sel,
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        idx_t* labels) const {
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelector*>(&sel);
    vectors().search_scores(n, x, k, scores, labels, &params);
    to_places(n, k, scores, labels);
}

void IndexHNSWKernel::to_places(
        idx_t n,
        idx_t k,
        const float* scores,
        idx_t* vertices) const {
    if (places.are_equal()) {
        return;
    }
    for (idx_t i = 0; i < n * k; i++) {
        if (vertices[i] >= 0) {
            vertices[i] = places.place(int32_t(vertices[i]));
        }
    }
    for (idx_t i = 0; i < n; i++) {
        const idx_t row = i * k, end = row + k;
        for (idx_t begin = row; begin < end && vertices[begin] >= 0;) {
            idx_t next = begin + 1;
            while (next < end && vertices[next] >= 0 &&
                   scores[next] == scores[begin]) {
                next++;
            }
            std::sort(vertices + begin, vertices + next);
            begin = next;
        }
    }
}

void IndexHNSWKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_radius(radius, "IndexHNSWKernel::range_search");
    const faiss::IDSelector* sel = params ? params->sel : nullptr;
    const IndexFlatKernel& flat = vectors();
    const VertexSelector wanted(places, sel);
    std::optional<std::vector<idx_t>> few;
    if (sel && is_plain(params)) {
        few = Selected(*sel, ntotal, most_compared(hnsw.efSearch, ntotal)).few;
    }
    std::vector<std::vector<ScoredVertex>> found(n);
    const auto search_one = [&](idx_t i, GraphWalk&, auto&& run) {
        run([&](ScoredVertex v) {
            flat.kernel->values_of_scores(metric_type, 1, &v.score);
            if (is_within(metric_type, v.score, radius) &&
                wanted.is_member(v.id)) {
                found[i].push_back({v.score, int32_t(places.place(v.id))});
            }
        });
        std::sort(
                found[i].begin(),
                found[i].end(),
                [](ScoredVertex a, ScoredVertex b) { return a.id < b.id; });
    };
    if (few) {
        check_graph("range_search");
        flat.kernel->check_input(n, x, d, "IndexHNSWKernel::range_search");
        const RowScores scores(flat, "IndexHNSWKernel::range_search");
        parallel_blocks(n, 1, [&](idx_t i, idx_t) {
            for (const idx_t place : *few) {
                const int32_t vertex = places.vertex(place);
                ScoredVertex v = {0, int32_t(place)};
                scores(x + i * d, 1, &vertex, &v.score);
                flat.kernel->values_of_scores(metric_type, 1, &v.score);
                if (is_within(metric_type, v.score, radius)) {
                    found[i].push_back(v);
                }
            }
        });
    } else {
        for_walks("range_search", n, x, 1, params, search_one);
    }
    fill_range_result(
            found,
            result,
            [](ScoredVertex v) { return v.score; },
            [](ScoredVertex v) { return idx_t(v.id); });
}

void IndexHNSWKernel::reconstruct(idx_t key, float* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexHNSWKernel::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    check_graph("reconstruct");
    if (places.are_equal()) {
        vectors().reconstruct_n(i0, ni, recons);
        return;
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            i0 >= 0 && ni >= 0 && i0 <= ntotal - ni,
            "IndexHNSWKernel::reconstruct: ids %" PRId64 " to %" PRId64
            " were asked for, expected ids from 0 to %" PRId64,
            int64_t(i0),
            int64_t(i0 + ni - 1),
            int64_t(ntotal - 1));
    for (idx_t i = 0; i < ni; i++) {
        vectors().reconstruct(places.vertex(i0 + i), recons + i * d);
    }
}

namespace {

/// Computes distances to vectors by their places.
struct DistancesByPlace : faiss::DistanceComputer {
    const GraphPlaces& places;
    const std::unique_ptr<faiss::DistanceComputer> distances;

    DistancesByPlace(
            const GraphPlaces& places,
            faiss::DistanceComputer* distances)
            : places(places), distances(distances) {}

    void set_query(const float* x) override {
        distances->set_query(x);
    }
    float operator()(idx_t i) override {
        return (*distances)(places.vertex(i));
    }
    float symmetric_dis(idx_t i, idx_t j) override {
        return distances->symmetric_dis(places.vertex(i), places.vertex(j));
    }
};

} // namespace

faiss::DistanceComputer* IndexHNSWKernel::get_distance_computer() const {
    check_graph("get_distance_computer");
    std::unique_ptr<faiss::DistanceComputer> distances(
            vectors().get_distance_computer());
    return places.are_equal()
            ? distances.release()
            : new DistancesByPlace(places, distances.release());
}

void IndexHNSWKernel::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexHNSWKernel",
            "add_with_ids",
            "put an IDMap in front of the index");
}

void IndexHNSWKernel::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_ids_for_merge(*this, other);
    check_not_itself(&other == this);
    const auto* source = dynamic_cast<const IndexHNSWKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another IndexHNSWKernel");
    check_graph("merge_from");
    source->check_graph("merge_from");
    vectors().check_compatible_for_merge(source->vectors());
}

void IndexHNSWKernel::merge_from(faiss::Index& other, idx_t add_id) {
    check_compatible_for_merge(other);
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel::merge_from");
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexHNSWKernel&>(other);
    const idx_t n = source.ntotal;
    if (n > 0) {
        check_ef(
                hnsw.efConstruction,
                "efConstruction",
                "IndexHNSWKernel::merge_from");
        append(n, [&](IndexFlatKernel& flat) {
            const uint8_t* from = source.vectors()
                                          .rows("IndexHNSWKernel::merge_from")
                                          .sequential;
            const size_t size = flat.code_size;
            flat.codes.resize((flat.ntotal + n) * size);
            for (idx_t place = 0; place < n; place++) {
                std::copy_n(
                        from + source.places.vertex(place) * size,
                        size,
                        &flat.codes[flat.ntotal++ * size]);
            }
        });
    }
    source.reset();
}

size_t IndexHNSWKernel::sa_code_size() const {
    throw_unsupported(
            "IndexHNSWKernel", "sa_code_size", "call it on the storage");
}

void IndexHNSWKernel::sa_encode(idx_t, const float*, uint8_t*) const {
    throw_unsupported("IndexHNSWKernel", "sa_encode", "call it on the storage");
}

void IndexHNSWKernel::sa_decode(idx_t, const uint8_t*, float*) const {
    throw_unsupported("IndexHNSWKernel", "sa_decode", "call it on the storage");
}

void IndexHNSWKernel::reset() {
    check_not_being_built("reset");
    IndexHNSW::reset();
    places = {};
}

} // namespace faiss_ext
