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
#include "indexes/row_scores.h"

namespace faiss_ext {

namespace {

using Links = std::vector<int32_t>;

/// A possible neighbour. Neighbours that were selected together are not
/// compared with each other again.
struct Candidate {
    ScoredVertex vertex;
    bool is_selected = false;

    bool operator<(const Candidate& other) const {
        return std::pair(vertex.score, vertex.id) <
                std::pair(other.vertex.score, other.vertex.id);
    }
};

/// Rows of selected neighbours.
struct SelectedRows {
    const RowScores& scores;
    const Scratch rows;
    size_t n = 0;

    SelectedRows(const RowScores& scores, size_t capacity)
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
/// Yashunin, arXiv 1603.09320).
Links select_neighbors(
        const RowScores& scores,
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
    Links links;
    for (size_t i = 0; i < ascending.size() && links.size() < most; i++) {
        if (i + 1 < ascending.size()) {
            scores.prefetch(ascending[i + 1].vertex.id);
        }
        const auto [vertex, is_selected] = ascending[i];
        scores.decode(vertex.id, row.get());
        if (added.any_within(row.get(), vertex.score) ||
            (!is_selected && before.any_within(row.get(), vertex.score))) {
            continue;
        }
        (is_selected ? before : added).add(row.get());
        links.push_back(vertex.id);
    }
    return links;
}

/// A link from a vertex of the round to `target`, which shall link back.
struct Reverse {
    int level;
    int32_t target, source;
};

class Builder {
   public:
    Builder(faiss::HNSW& hnsw, const IndexFlatKernel& vectors)
            : hnsw(hnsw),
              scores(vectors, "build_graph"),
              selected(hnsw.levels.size(), 0) {}

    /// Inserts unlinked vertices, sorted by descending level.
    void insert(std::span<const int32_t> vertices) {
        const size_t total = vertices.size();
        Progress progress("graph", total);
        while (!vertices.empty()) {
            const size_t count = std::min(vertices.size(), round_size());
            insert_round(vertices.first(count));
            vertices = vertices.subspan(count);
            num_linked += count;
            progress.at(total - vertices.size());
        }
    }

    size_t num_linked = 0;

   private:
    /// Returns the size of the next round. It is small, so that most neighbours
    /// are in the graph already and comparing a round with itself takes little
    /// of the time.
    size_t round_size() const {
        return std::clamp<size_t>(num_linked / 16, 1, 1024);
    }

    int level_of(int32_t vertex) const {
        return hnsw.levels[vertex] - 1;
    }

    std::span<int32_t> slots(int32_t vertex, int level) {
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
        const auto score = [&](size_t n, const int32_t* ids, float* out) {
            scores(x, n, ids, out);
        };
        const int top = level_of(vertex);
        const size_t ef = hnsw.efConstruction;
        std::vector<Links> links(top + 1);
        std::vector<Candidate> candidates;
        ScoredVertex start = walk.descend(hnsw, top, score);
        for (int level = std::min(top, hnsw.max_level); level >= 0; level--) {
            walk.walk(hnsw, level, start, ef, {ef}, score, [](ScoredVertex) {});
            start = walk.frontier[0];
            for (size_t i = 0; i < earlier.size(); i++) {
                if (level_of(earlier[i]) >= level) {
                    walk.frontier.push({earlier_scores[i], earlier[i]});
                }
            }
            candidates.clear();
            for (size_t i = 0; i < walk.frontier.size(); i++) {
                candidates.push_back({walk.frontier[i]});
            }
            links[level] = select_neighbors(
                    scores, candidates, hnsw.nb_neighbors(level));
        }
        return links;
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
        const Scratch x(scores.d()), values(ids.size());
        scores.decode(vertex, x.get());
        scores(x.get(), ids.size(), ids.data(), values.get());
        std::vector<Candidate> candidates;
        const size_t num_selected = level == 0 ? selected[vertex] : 0;
        for (size_t i = 0; i < ids.size(); i++) {
            candidates.push_back({{values[i], ids[i]}, i < num_selected});
        }
        std::sort(candidates.begin(), candidates.end());
        // leave room, or each of the next links would need a selection
        const size_t most = to.size() - to.size() / 5;
        const Links links = select_neighbors(scores, candidates, most);
        set_links(vertex, level, links);
        if (level == 0) {
            selected[vertex] = uint16_t(links.size());
        }
    }

    faiss::HNSW& hnsw;
    const RowScores scores;
    /// for each vertex, how many of its first links on level 0 were selected
    /// together
    std::vector<uint16_t> selected;
    std::vector<std::vector<Links>> found; ///< by vertex of the round and level
};

/// Returns the vertices from the highest level down, in random order within a
/// level.
std::vector<int32_t> insertion_order(const faiss::HNSW& hnsw, idx_t n0) {
    std::vector<int32_t> order(hnsw.levels.size() - n0);
    std::iota(order.begin(), order.end(), int32_t(n0));
    faiss::RandomGenerator random(789);
    for (size_t i = 0; i < order.size(); i++) {
        std::swap(order[i], order[i + random.rand_int(int(order.size() - i))]);
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return hnsw.levels[a] > hnsw.levels[b];
    });
    return order;
}

} // namespace

void build_graph(faiss::HNSW& hnsw, const IndexFlatKernel& vectors, idx_t n0) {
    const size_t n = vectors.ntotal - n0;
    hnsw.prepare_level_tab(n, hnsw.levels.size() == size_t(vectors.ntotal));
    Builder builder(hnsw, vectors);
    builder.num_linked = n0;
    builder.insert(insertion_order(hnsw, n0));
}

} // namespace faiss_ext
