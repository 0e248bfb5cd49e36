// SPDX-License-Identifier: MIT
// Searches a graph whose vectors may have been removed.

#pragma once

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <faiss/IndexHNSW.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/GraphPlaces.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "indexes/graph_walk.h"
#include "indexes/index_compat.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "simd/ranking.h"

namespace faiss_ext {

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

/** Searches for n queries. The documentation of IndexHNSWKernel says how.
 *
 * Scores are floats, of which smaller ones are nearer; NaN is never found.
 */
class GraphSearches {
   public:
    const faiss::HNSW& hnsw;
    const GraphPlaces& places;
    idx_t ntotal;
    std::string where; ///< names the caller in errors
    idx_t n;           ///< queries

    /// score(query, m, vertices, out) writes the scores of m vertices.
    std::function<void(idx_t, size_t, const int32_t*, float*)> score;

    /// compare(vertices, scores, labels, k) finds the k nearest of the selected
    /// vertices for all queries, as a scan does.
    std::function<void(const faiss::IDSelector&, idx_t, float*, idx_t*)> scan;

    /// Does the same for those queries only whose last label is -1.
    std::function<void(const faiss::IDSelector&, idx_t, float*, idx_t*)>
            complete;

    /// Finds the k nearest selected vectors of each query: their scores and
    /// places, padded with -1.
    void nearest(
            idx_t k,
            float* scores,
            idx_t* labels,
            const faiss::SearchParameters* params) const {
        constexpr float worst = std::numeric_limits<float>::max();
        const faiss::IDSelector* sel = params ? params->sel : nullptr;
        const VertexSelector wanted(places, sel);
        const bool is_plain_selection = sel && is_plain(params);
        std::unique_ptr<faiss::SearchParameters> wider;
        double num_selected = 0;
        if (is_plain_selection) {
            const Selected selected(
                    *sel,
                    ntotal,
                    most_compared(std::max<idx_t>(hnsw.efSearch, k), ntotal));
            if (selected.few) {
                std::vector<idx_t> vertices = *selected.few;
                for (idx_t& vertex : vertices) {
                    vertex = places.vertex(vertex);
                }
                scan(PlaceSelector(std::move(vertices), num_vertices()),
                     k,
                     scores,
                     labels);
                to_places(k, scores, labels);
                return;
            }
            wider = params_of_graph(hnsw, k, selected.fraction);
            params = wider.get();
            num_selected = selected.fraction * double(ntotal);
        }
        const bool passes_removed = !places.are_equal() && !sel;
        bool scans_all = !sel && k > ntotal; // all of them are found
        if (passes_removed) {
            const idx_t kept = std::max<idx_t>(hnsw.efSearch, k);
            scans_all |= places.num_passed() > ntotal &&
                    ntotal <= most_compared(double(kept), num_vertices());
        }
        if (scans_all) {
            scan(places.are_equal() ? PlaceSelector::from(0, ntotal)
                                    : PlaceSelector(
                                              {places.vertices.begin(),
                                               places.vertices.end()},
                                              num_vertices()),
                 k,
                 scores,
                 labels);
            to_places(k, scores, labels);
            return;
        }
        const bool selects = sel || passes_removed;
        const auto search_one = [&](idx_t i, GraphWalk& walk, auto&& run) {
            Frontier& selected = walk.selected;
            for (double times = wider ? 1.5 : 1;; times *= 3) {
                selected.clear(k);
                if (selects) {
                    run(times, [&](ScoredVertex v) {
                        if (wanted.is_member(v.id)) {
                            selected.push(v);
                        }
                    });
                } else {
                    run(times, [](ScoredVertex) {});
                }
                if (!wider || is_complete(selected, walk.frontier, k)) {
                    break;
                }
                // keeping a vertex takes as long as comparing 16 in a scan
                if (!walk.frontier.is_full() ||
                    3 * 16 * double(walk.frontier.size()) > num_selected) {
                    labels[(i + 1) * k - 1] = -1; // `complete` searches for it
                    return;
                }
            }
            const Frontier& best = selects ? selected : walk.frontier;
            for (idx_t j = 0; j < k; j++) {
                const ScoredVertex v = size_t(j) < best.size()
                        ? best[j]
                        : ScoredVertex{NAN, -1};
                const bool is_found = !std::isnan(v.score);
                scores[i * k + j] = is_found ? v.score : worst;
                labels[i * k + j] = is_found ? v.id : -1;
            }
        };
        walk_all(k, params, search_one);
        // links may not lead to all of many equal vectors
        if (is_plain_selection || !sel) {
            complete(wanted, k, scores, labels);
        }
        to_places(k, scores, labels);
    }

    /// Finds the selected vectors for which is_within(score) holds, among the
    /// vectors that a search examines. It may replace the score. Each result
    /// has the place of a vector as its id, by which they are ordered.
    template <class IsWithin>
    std::vector<std::vector<ScoredVertex>> within(
            IsWithin&& is_within,
            const faiss::SearchParameters* params) const {
        const faiss::IDSelector* sel = params ? params->sel : nullptr;
        const VertexSelector wanted(places, sel);
        std::optional<std::vector<idx_t>> few;
        if (sel && is_plain(params)) {
            few = Selected(*sel, ntotal, most_compared(hnsw.efSearch, ntotal))
                          .few;
        }
        std::vector<std::vector<ScoredVertex>> found(n);
        if (few) {
            parallel_blocks(n, 1, [&](idx_t i, idx_t) {
                for (const idx_t place : *few) {
                    const int32_t vertex = places.vertex(place);
                    ScoredVertex v = {0, int32_t(place)};
                    score(i, 1, &vertex, &v.score);
                    if (is_within(v.score)) {
                        found[i].push_back(v);
                    }
                }
            });
            return found;
        }
        walk_all(1, params, [&](idx_t i, GraphWalk&, auto&& run) {
            run(1, [&](ScoredVertex v) {
                if (wanted.is_member(v.id) && is_within(v.score)) {
                    found[i].push_back({v.score, int32_t(places.place(v.id))});
                }
            });
            std::sort(
                    found[i].begin(),
                    found[i].end(),
                    [](ScoredVertex a, ScoredVertex b) { return a.id < b.id; });
        });
        return found;
    }

   private:
    idx_t num_vertices() const {
        return idx_t(hnsw.offsets.size()) - 1;
    }

    /// Whether a walk has kept k selected vertices, and as many farther ones
    /// for each as it keeps without a selector. Otherwise it may not have met
    /// the nearest ones: few vertices near the query are selected.
    bool is_complete(const Frontier& selected, const Frontier& kept, idx_t k)
            const {
        if (selected.size() < size_t(k)) {
            return false;
        }
        const float last = selected[k - 1].score;
        const double expected = double(k) /
                double(std::max<idx_t>(hnsw.efSearch, k)) * double(kept.size());
        return last <= kept[kept.size() - 1].score &&
                double(kept.num_better(last)) <= expected;
    }

    /// Calls found(query, walk, run) for each query. run(times, met) walks the
    /// graph, keeps that many times as many vertices as a search does, and
    /// calls met(vertex) for all vertices that it meets.
    template <class Found>
    void walk_all(idx_t k, const faiss::SearchParameters* params, Found&& found)
            const {
        FAISS_EXT_THROW_IF_NOT_FMT(
                hnsw.levels.size() == size_t(num_vertices()),
                "%s: the graph has levels for %zu vectors, expected %" PRId64,
                where.c_str(),
                hnsw.levels.size(),
                int64_t(num_vertices()));
        const GraphSearch how = graph_search(hnsw, params, where.c_str());
        check_ef(how.ef, "efSearch", where.c_str());
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
            const auto of_query =
                    [&](size_t m, const int32_t* vertices, float* out) {
                        score(i, m, vertices, out);
                    };
            walk.num_scores = 0;
            found(i, walk, [&](double times, auto&& met) {
                const auto scaled = [&](size_t number) {
                    return size_t(std::ceil(times * double(number)));
                };
                if (ntotal > 0) {
                    const ScoredVertex start =
                            walk.descend(hnsw, 0, breadth_above, of_query);
                    met(start);
                    WalkLimits wider = limits;
                    wider.best = scaled(limits.best);
                    if (wider.steps == ef + 1) { // they are limited
                        wider.steps = scaled(limits.steps);
                    }
                    walk.walk(
                            hnsw, 0, start, scaled(kept), wider, of_query, met);
                } else {
                    walk.frontier.clear(0);
                }
            });
            num_scores += walk.num_scores;
        });
        faiss::hnsw_stats.n1 += n;
        faiss::hnsw_stats.ndis += num_scores;
    }

    /// Turns vertices into places; equal scores are ordered by place then.
    void to_places(idx_t k, const float* scores, idx_t* vertices) const {
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
};

} // namespace faiss_ext
