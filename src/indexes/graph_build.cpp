// SPDX-License-Identifier: MIT
#include "indexes/graph_build.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <faiss/utils/random.h>

#include "core/parallel.h"
#include "core/progress.h"
#include "core/scratch.h"
#include "indexes/graph_walk.h"

namespace faiss_ext {

namespace {

using Links = std::vector<int32_t>;

/// A possible neighbour. Neighbours that were selected together are not
/// compared with each other again.
struct Candidate {
    ScoredVertex vertex;
    bool is_selected = false;
};

/// A number for each vertex by which it puts vertices with equal scores in an
/// order. If all preferred those of the lowest ids, no links would lead to the
/// other ones.
uint32_t tie_mask_of(int32_t vertex) {
    uint32_t mixed = uint32_t(vertex) + 1; // mixed as by MurmurHash3
    mixed = (mixed ^ mixed >> 16) * 0x85ebca6b;
    mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35;
    return mixed ^ mixed >> 16;
}

/// Rows of selected neighbours.
struct SelectedRows {
    const VertexScores& scores;
    const Scratch rows;
    size_t n = 0;

    SelectedRows(const VertexScores& scores, size_t capacity)
            : scores(scores), rows(capacity * scores.d()) {}

    float* row(size_t i) const {
        return rows.get() + i * scores.d();
    }

    /// Returns whether one of them is nearer to a vector than `bound`.
    bool any_within(const float* x, float bound) const {
        constexpr size_t step = 8;
        float values[step];
        for (size_t i = 0; i < n; i += step) {
            const size_t count = std::min(step, n - i);
            scores.block(1, x, count, row(i), values);
            if (std::any_of(values, values + count, [&](float value) {
                    return value < bound;
                })) {
                return true;
            }
        }
        return false;
    }

    void add(const float* x) {
        std::copy_n(x, scores.d(), row(n++));
    }
};

/// Returns all candidates if they are fewer than `most`, as FAISS does.
/// Otherwise goes through them from the nearest on and keeps each that is
/// nearer to the vertex than to those already kept (algorithm 4 of Malkov and
/// Yashunin, arXiv 1603.09320). Of vertices that are all as near as the nearest
/// one, it keeps at most a half of `most`, unless there are too few others:
/// many equal vectors need links to other ones.
Links select_neighbors(
        const VertexScores& scores,
        const std::vector<Candidate>& ascending,
        size_t most) {
    if (ascending.size() < most) {
        Links all;
        for (const Candidate& candidate : ascending) {
            all.push_back(candidate.vertex.id);
        }
        return all;
    }
    SelectedRows before(scores, most), added(scores, most);
    const Scratch row(scores.d());
    Links links, ties;
    for (size_t i = 0; i < ascending.size() && links.size() < most; i++) {
        if (i + 1 < ascending.size()) {
            scores.prefetch(ascending[i + 1].vertex.id);
        }
        const auto [vertex, is_selected] = ascending[i];
        if (links.size() >= most / 2 &&
            vertex.score == ascending[0].vertex.score) {
            ties.push_back(vertex.id);
            continue;
        }
        scores.decode(vertex.id, row.get());
        if (added.any_within(row.get(), vertex.score) ||
            (!is_selected && before.any_within(row.get(), vertex.score))) {
            continue;
        }
        (is_selected ? before : added).add(row.get());
        links.push_back(vertex.id);
    }
    ties.resize(std::min(ties.size(), most - links.size()));
    links.insert(links.end(), ties.begin(), ties.end());
    return links;
}

/// A link from a vertex of the round to `target`, which shall link back.
struct Reverse {
    int level;
    int32_t target, source;
};

class Builder {
   public:
    /// @param num_linked   number of vertices that the graph links already
    /// @param num_changed  number of vertices to be linked
    Builder(faiss::HNSW& hnsw,
            const VertexScores& scores,
            const GraphPlaces& places,
            size_t num_linked,
            size_t num_changed)
            : hnsw(hnsw),
              scores(scores),
              places(places),
              num_linked(num_linked) {
        if (num_changed >= hnsw.levels.size() / 64) {
            selected.assign(hnsw.levels.size(), 0);
        }
    }

    /// Inserts unlinked vertices, sorted by descending level.
    void insert(std::span<const int32_t> vertices) {
        const size_t total = vertices.size();
        Progress progress("graph", total);
        while (!vertices.empty()) {
            const size_t count = std::min(vertices.size(), round_size());
            unlinked = vertices;
            insert_round(vertices.first(count));
            vertices = vertices.subspan(count);
            num_linked += count;
            progress.at(total - vertices.size());
        }
    }

    /// Links the vertices from `begin` up to `end` past removed ones.
    void link_past(idx_t begin, idx_t end) {
        const std::vector<Relinked> changed = relinked_past(begin, end);
        std::vector<Reverse> reverse;
        for (const Relinked& r : changed) {
            set_links(r.vertex, r.level, r.links);
        }
        for (const Relinked& r : changed) {
            for (int32_t target : r.added) {
                const auto back = links_of(hnsw, target, r.level);
                if (std::find(back.begin(), back.end(), r.vertex) ==
                    back.end()) {
                    reverse.push_back({r.level, target, r.vertex});
                }
            }
        }
        link_back(std::move(reverse));
    }

   private:
    /// New links of a vertex on a level.
    struct Relinked {
        int32_t vertex;
        int level;
        Links links;
        Links added; ///< new ones, which shall link back
    };

    /// Selects links for the vertices that have links to removed ones.
    std::vector<Relinked> relinked_past(idx_t first, idx_t last) const {
        constexpr idx_t block = 256;
        const idx_t n = last - first;
        std::vector<std::vector<Relinked>> of_blocks((n + block - 1) / block);
        parallel_blocks(n, block, [&](idx_t begin, idx_t end) {
            for (auto v = int32_t(first + begin); v < first + end; v++) {
                if (std::ranges::binary_search(places.leaving, v)) {
                    continue; // until then, walks need all of its links
                }
                for (int level = 0; level <= level_of(v); level++) {
                    const auto links = links_of(hnsw, v, level);
                    if (std::any_of(
                                links.begin(), links.end(), [&](int32_t to) {
                                    return places.place(to) < 0;
                                })) {
                        of_blocks[begin / block].push_back(relinked(v, level));
                    }
                }
            }
        });
        std::vector<Relinked> all;
        for (auto& found : of_blocks) {
            std::move(found.begin(), found.end(), std::back_inserter(all));
        }
        return all;
    }

    /// Replaces each link to a removed vertex by one to a vertex that this one
    /// links to. A vertex that is removed itself needs this, too:
    /// walks pass it, and the vertices that it linked to will have new vectors.
    Relinked relinked(int32_t vertex, int level) const {
        Relinked result{vertex, level, {}, {}};
        Links passed;
        for (const int32_t to : links_of(hnsw, vertex, level)) {
            (places.place(to) < 0 ? passed : result.links).push_back(to);
        }
        const Scratch x(scores.d());
        scores.decode(vertex, x.get());
        for (const int32_t removed : passed) {
            Links others = ends_of_paths(removed, level);
            std::erase_if(others, [&](int32_t to) {
                return to == vertex || contains(result.links, to);
            });
            constexpr size_t most_compared = 16; // more hardly help
            others.resize(std::min(others.size(), most_compared));
            if (!others.empty()) {
                const int32_t to = substitute(x.get(), removed, others);
                result.links.push_back(to);
                if (places.place(vertex) >= 0) {
                    result.added.push_back(to);
                }
            }
        }
        return result;
    }

    /// Returns the vertex that replaces a removed one in a link from x: the
    /// nearest of the vertices that are nearer to the removed vertex than to x,
    /// so that links between clusters stay. If there is none, returns the
    /// nearest of all.
    int32_t substitute(const float* x, int32_t removed, const Links& others)
            const {
        const size_t n = others.size();
        const Scratch from_x(n), row(scores.d());
        scores(x, n, others.data(), from_x.get());
        Frontier ascending;
        ascending.clear(n);
        for (size_t i = 0; i < n; i++) {
            ascending.push({from_x.get()[i], others[i]});
        }
        scores.decode(removed, row.get());
        constexpr size_t step = 4; // usually one of the first qualifies
        for (size_t i = 0; i < n; i += step) {
            const size_t count = std::min(step, n - i);
            int32_t ids[step];
            float from_removed[step];
            for (size_t j = 0; j < count; j++) {
                ids[j] = ascending[i + j].id;
            }
            scores(row.get(), count, ids, from_removed);
            for (size_t j = 0; j < count; j++) {
                if (from_removed[j] < ascending[i + j].score) {
                    return ids[j];
                }
            }
        }
        return ascending[0].id;
    }

    /// The nearest vertices with vectors on paths that begin with the links of
    /// a removed vertex and lead through removed ones, or none if these are
    /// many.
    Links ends_of_paths(int32_t removed, int level) const {
        constexpr size_t most_passed = 64;
        Links passed{removed}, ends;
        for (size_t i = 0;
             ends.empty() && i < std::min(passed.size(), most_passed);
             i++) {
            for (const int32_t to : links_of(hnsw, passed[i], level)) {
                if (places.place(to) >= 0) {
                    ends.push_back(to);
                } else if (!contains(passed, to)) {
                    passed.push_back(to);
                }
            }
        }
        return ends;
    }

    static bool contains(const Links& links, int32_t vertex) {
        return std::find(links.begin(), links.end(), vertex) != links.end();
    }

    /// Selects links of a vertex among others. The first num_selected of them
    /// were selected together before.
    Links selected_for(
            int32_t vertex,
            const Links& others,
            size_t num_selected,
            size_t num_slots) const {
        const Scratch x(scores.d()), values(others.size());
        scores.decode(vertex, x.get());
        scores(x.get(), others.size(), others.data(), values.get());
        std::vector<Candidate> candidates;
        for (size_t i = 0; i < others.size(); i++) {
            candidates.push_back({{values[i], others[i]}, i < num_selected});
        }
        // another order each time, so that new links are kept as often as old
        const uint32_t mask = tie_mask_of(vertex) ^ tie_mask_of(others.back());
        const auto key = [mask](const Candidate& c) {
            return std::pair(c.vertex.score, uint32_t(c.vertex.id) ^ mask);
        };
        std::sort(
                candidates.begin(),
                candidates.end(),
                [&](const Candidate& a, const Candidate& b) {
                    return key(a) < key(b);
                });
        // leave room, or each of the next links would need a selection
        return select_neighbors(scores, candidates, num_slots - num_slots / 5);
    }

    /// Returns the size of the next round. It is small, so that most neighbours
    /// are in the graph already and comparing a round with itself takes little
    /// of the time.
    size_t round_size() const {
        return std::clamp<size_t>(num_linked / 16, 1, 1024);
    }

    int level_of(int32_t vertex) const {
        return hnsw.levels[vertex] - 1;
    }

    std::span<int32_t> slots(int32_t vertex, int level) const {
        const auto& cum = hnsw.cum_nneighbor_per_level;
        int32_t* all = hnsw.neighbors.data() + hnsw.offsets[vertex];
        return {all + cum[level], all + cum[level + 1]};
    }

    void set_links(int32_t vertex, int level, const Links& links) {
        const auto to = slots(vertex, level);
        std::fill(
                std::copy(links.begin(), links.end(), to.begin()),
                to.end(),
                -1);
    }

    void insert_round(std::span<const int32_t> round) {
        if (hnsw.entry_point >= 0) {
            find_neighbors(round);
            link(round);
        }
        const int32_t highest = round[0];
        if (level_of(highest) > hnsw.max_level) {
            hnsw.max_level = level_of(highest);
            hnsw.entry_point = highest;
        }
    }

    void find_neighbors(std::span<const int32_t> round) {
        const size_t d = scores.d(), n = round.size();
        const Scratch rows(n * d);
        parallel_blocks(n, 16, [&](idx_t begin, idx_t end) {
            for (idx_t i = begin; i < end; i++) {
                scores.decode(round[i], rows.get() + i * d);
            }
        });
        found.assign(n, {});
        constexpr idx_t block = 4; // kernels compare this many together
        parallel_blocks(n, block, [&](idx_t begin, idx_t end) {
            const Scratch pairs((end - begin) * end);
            scores.block(
                    end - begin,
                    rows.get() + begin * d,
                    end,
                    rows.get(),
                    pairs.get());
            for (idx_t i = begin; i < end; i++) {
                found[i] = neighbors_of(
                        round.first(i),
                        round[i],
                        rows.get() + i * d,
                        pairs.get() + (i - begin) * end);
            }
        });
    }

    /// Selects the neighbours of a vertex on each of its levels.
    std::vector<Links> neighbors_of(
            std::span<const int32_t> earlier,
            int32_t vertex,
            const float* x,
            const float* earlier_scores) const {
        const ThreadWalk memory;
        GraphWalk& walk = *memory;
        walk.tie_mask = tie_mask_of(vertex);
        const auto score = [&](size_t n, const int32_t* ids, float* out) {
            scores(x, n, ids, out);
        };
        const bool passes_removed = places.num_passed() > 0;
        Frontier& nearest = passes_removed ? walk.selected : walk.frontier;
        const auto met = [&](ScoredVertex v) {
            if (passes_removed && places.place(v.id) >= 0) {
                walk.selected.push(v);
            }
        };
        const int top = level_of(vertex);
        std::vector<Links> links(top + 1);
        std::vector<Candidate> candidates;
        ScoredVertex start = walk.descend(hnsw, top, breadth_above(), score);
        for (int level = std::min(top, hnsw.max_level); level >= 0; level--) {
            const size_t ef = breadth_on(level);
            walk.selected.clear(ef, walk.tie_mask);
            met(start);
            walk.walk(hnsw, level, start, ef, {ef}, score, met);
            start = walk.frontier[0];
            if (level == 0 && nearest.size() == 0) {
                compare_all(x, nearest);
            }
            for (size_t i = 0; i < earlier.size(); i++) {
                if (level_of(earlier[i]) >= level) {
                    nearest.push({earlier_scores[i], earlier[i]});
                }
            }
            candidates.clear();
            for (size_t i = 0; i < nearest.size(); i++) {
                candidates.push_back({nearest[i]});
            }
            links[level] = select_neighbors(
                    scores, candidates, hnsw.nb_neighbors(level));
        }
        return links;
    }

    /// The number of vertices to expand on each level above the level of a new
    /// vertex. If most vectors were added while their cluster was large, few
    /// links lead from a wrong cluster to the right one.
    size_t breadth_above() const {
        return places.are_equal() ? 1 : 4;
    }

    /// The number of candidates from which the links of a new vertex are
    /// selected. In a new graph, the first vertices get links between distant
    /// regions. Above the lowest level, many candidates give such links to a
    /// replacement.
    size_t breadth_on(int level) const {
        const size_t ef = hnsw.efConstruction;
        return level > 0 && !places.are_equal() ? 4 * ef : ef;
    }

    /// Collects the nearest of all linked vertices that have vectors. A walk
    /// meets none if all vectors near the entry point were removed.
    void compare_all(const float* x, Frontier& nearest) const {
        std::vector<bool> are_left_out(hnsw.levels.size());
        for (const int32_t vertex : unlinked) {
            are_left_out[vertex] = true;
        }
        for (int32_t v = 0; v < int32_t(are_left_out.size()); v++) {
            if (places.place(v) >= 0 && !are_left_out[v]) {
                float score;
                scores(x, 1, &v, &score);
                nearest.push({score, v});
            }
        }
    }

    void link(std::span<const int32_t> round) {
        std::vector<Reverse> reverse;
        for (size_t i = 0; i < round.size(); i++) {
            const int32_t source = round[i];
            for (size_t level = 0; level < found[i].size(); level++) {
                const Links& links = found[i][level];
                set_links(source, int(level), links);
                for (int32_t target : links) {
                    reverse.push_back({int(level), target, source});
                }
            }
        }
        link_back(std::move(reverse));
    }

    void link_back(std::vector<Reverse> reverse) {
        std::stable_sort(
                reverse.begin(),
                reverse.end(),
                [](const Reverse& a, const Reverse& b) {
                    return std::pair(a.level, a.target) <
                            std::pair(b.level, b.target);
                });
        std::vector<size_t> begins; // where the links to each vertex begin
        for (size_t i = 0; i < reverse.size(); i++) {
            if (i == 0 || reverse[i].target != reverse[i - 1].target ||
                reverse[i].level != reverse[i - 1].level) {
                begins.push_back(i);
            }
        }
        begins.push_back(reverse.size());
        parallel_blocks(begins.size() - 1, 16, [&](idx_t begin, idx_t end) {
            for (idx_t i = begin; i < end; i++) {
                link_back({&reverse[begins[i]], begins[i + 1] - begins[i]});
            }
        });
    }

    /// Adds links from one vertex on one level.
    void link_back(std::span<const Reverse> added) {
        const auto [level, vertex, source] = added[0];
        const auto to = slots(vertex, level);
        const size_t n = links_of(hnsw, vertex, level).size();
        if (n + added.size() <= to.size()) {
            for (size_t i = 0; i < added.size(); i++) {
                to[n + i] = added[i].source;
            }
            return;
        }
        Links ids(to.begin(), to.begin() + n);
        for (const Reverse& r : added) {
            ids.push_back(r.source);
        }
        const Links links = selected_for(
                vertex,
                ids,
                level == 0 && !selected.empty() ? selected[vertex] : 0,
                to.size());
        set_links(vertex, level, links);
        if (level == 0 && !selected.empty()) {
            selected[vertex] = uint16_t(links.size());
        }
    }

    faiss::HNSW& hnsw;
    const VertexScores& scores;
    const GraphPlaces& places;
    size_t num_linked;
    std::span<const int32_t> unlinked; ///< vertices that are to be linked
    /// for each vertex, how many of its first links on level 0 were selected
    /// together; empty if few vertices are to be linked
    std::vector<uint16_t> selected;
    std::vector<std::vector<Links>> found; ///< by vertex of the round and level
};

/// Sorts vertices from the highest level down, in random order within a level.
void put_in_insertion_order(
        const faiss::HNSW& hnsw,
        std::vector<int32_t>& vertices) {
    faiss::RandomGenerator random(789);
    const size_t n = vertices.size();
    for (size_t i = 0; i < n; i++) {
        std::swap(vertices[i], vertices[i + random.rand_int(int(n - i))]);
    }
    std::stable_sort(
            vertices.begin(), vertices.end(), [&](int32_t a, int32_t b) {
                return hnsw.levels[a] > hnsw.levels[b];
            });
}

/// Lets searches begin at a vertex of the highest level that has one with a
/// vector, unless they begin at a vertex with a vector.
void choose_entry_point(faiss::HNSW& hnsw, const GraphPlaces& places) {
    if (hnsw.entry_point >= 0 && places.place(hnsw.entry_point) >= 0) {
        return;
    }
    hnsw.entry_point = hnsw.max_level = -1;
    for (size_t v = 0; v < hnsw.levels.size(); v++) {
        const int level = hnsw.levels[v] - 1;
        if (level > hnsw.max_level && places.place(int32_t(v)) >= 0) {
            hnsw.max_level = level;
            hnsw.entry_point = int32_t(v);
        }
    }
}

/// Clears the links of vertices.
void unlink(faiss::HNSW& hnsw, const std::vector<int32_t>& vertices) {
    int32_t* links = hnsw.neighbors.data();
    for (const int32_t vertex : vertices) {
        std::fill(
                links + hnsw.offsets[vertex],
                links + hnsw.offsets[vertex + 1],
                -1);
    }
}

} // namespace

void link_vertices(
        faiss::HNSW& hnsw,
        const VertexScores& scores,
        const GraphPlaces& places,
        std::vector<int32_t> vertices,
        size_t num_linked) {
    put_in_insertion_order(hnsw, vertices);
    Builder(hnsw, scores, places, num_linked, vertices.size()).insert(vertices);
}

void link_past_removed(
        faiss::HNSW& hnsw,
        const VertexScores& scores,
        GraphPlaces& places,
        size_t num_visits) {
    const auto total = idx_t(hnsw.levels.size());
    const auto is_pass_due = [&] {
        const idx_t num_passed = places.num_passed();
        return num_passed > 0 && 64 * num_passed >= total;
    };
    while (num_visits > 0 && (!places.leaving.empty() || is_pass_due())) {
        if (places.leaving.empty()) {
            places.begin_pass();
        }
        const idx_t begin = places.next_visited;
        const idx_t end = begin + std::min<idx_t>(num_visits, total - begin);
        Builder(hnsw, scores, places, total, end - begin).link_past(begin, end);
        num_visits -= end - begin;
        places.next_visited = end;
        if (end == total) {
            unlink(hnsw, places.leaving);
            places.end_pass();
            choose_entry_point(hnsw, places);
        }
    }
}

} // namespace faiss_ext
