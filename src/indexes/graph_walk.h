// SPDX-License-Identifier: MIT
// Best-first search on the graph of a faiss::HNSW.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <faiss/impl/HNSW.h>

#include "core/huge_pages.h"
#include "core/prefetch.h"

namespace faiss_ext {

/// Returns the places for links of a vertex on a level. Unused ones, at the
/// end, are -1.
inline std::span<const int32_t> link_places(
        const faiss::HNSW& hnsw,
        int32_t vertex,
        int level) {
    const auto& cum = hnsw.cum_nneighbor_per_level;
    const int32_t* links = hnsw.neighbors.data() + hnsw.offsets[vertex];
    return {links + cum[level], links + cum[level + 1]};
}

/// Returns the links of a vertex on a level.
inline std::span<const int32_t> links_of(
        const faiss::HNSW& hnsw,
        int32_t vertex,
        int level) {
    const auto places = link_places(hnsw, vertex, level);
    return {places.begin(), std::find(places.begin(), places.end(), -1)};
}

/// Marks the vertices that a walk has met.
class VisitedMarks {
   public:
    /// Removes all marks.
    void clear(size_t ntotal) {
        if (marks.size() < ntotal) {
            const StaysInHugePages huge(marks);
            marks.resize(ntotal, 0);
        }
        if (++epoch == 0) {
            std::fill(marks.begin(), marks.end(), 0);
            epoch = 1;
        }
    }

    void set(int32_t vertex) {
        marks[vertex] = epoch;
    }

    /// Marks vertices, up to the first -1. Writes the ones that were not marked
    /// and returns their number. `added` has room for all vertices.
    size_t set_all(std::span<const int32_t> vertices, int32_t* added) {
        // for all the compiler knows, a mark may overwrite a member
        uint8_t* const all = marks.data();
        const uint8_t mark = epoch;
        size_t num_added = 0;
        for (size_t i = 0; i < vertices.size() && vertices[i] >= 0; i++) {
            const int32_t vertex = vertices[i];
            added[num_added] = vertex; // branchless: half are new
            num_added += all[vertex] != mark;
            all[vertex] = mark;
        }
        return num_added;
    }

   private:
    std::vector<uint8_t> marks; ///< the epoch in which a vertex was met
    uint8_t epoch = 0;
};

/// A vertex and its score: smaller is better, NaN is worst.
struct ScoredVertex {
    float score;
    int32_t id;
};

/** The best vertices that a walk has met, by score and then by id. Each is open
 * until the walk has expanded it.
 */
class Frontier {
   public:
    /// @param new_tie_mask  if it is not 0, vertices with equal scores are in
    ///                      the order of the exclusive or of their ids and this
    void clear(size_t new_capacity, uint32_t new_tie_mask = 0) {
        keys.clear();
        capacity = new_capacity;
        tie_mask = new_tie_mask & ~sign;
        first_open = 0;
    }

    size_t size() const {
        return keys.size();
    }

    bool is_full() const {
        return keys.size() == capacity;
    }

    ScoredVertex operator[](size_t i) const {
        const uint32_t bits = uint32_t(keys[i] >> 32);
        return {std::bit_cast<float>(bits >> 31 ? bits ^ sign : ~bits),
                int32_t(uint32_t(keys[i]) >> 1 ^ tie_mask)};
    }

    /// How many vertices have a better score.
    size_t num_better(float score) const {
        const uint64_t first = key_of({score, 0}) >> 32 << 32;
        return std::lower_bound(keys.begin(), keys.end(), first) - keys.begin();
    }

    /// Inserts the vertex if it is among the best.
    void push(ScoredVertex v) {
        const uint64_t key = key_of(v);
        if (!is_full() || (capacity > 0 && key < keys.back())) {
            insert(key);
        }
    }

    /// Returns whether one of the best `limit` vertices is open.
    bool has_open(size_t limit) {
        while (first_open < keys.size() && keys[first_open] & 1) {
            first_open++;
        }
        return first_open < std::min(limit, keys.size());
    }

    /// Returns the best open vertex.
    int32_t next_open() const {
        return (*this)[first_open].id;
    }

    void close_next() {
        keys[first_open] |= 1;
    }

   private:
    static constexpr uint32_t sign = uint32_t(1) << 31;

    /// Sort key: the score, then the id. The last bit is set once the walk has
    /// expanded the vertex.
    uint64_t key_of(ScoredVertex v) const {
        const uint32_t bits = std::bit_cast<uint32_t>(
                std::isnan(v.score) ? std::numeric_limits<float>::quiet_NaN()
                                    : v.score);
        const uint32_t ordered = bits & sign ? ~bits : bits ^ sign;
        return uint64_t(ordered) << 32 | (uint32_t(v.id) ^ tie_mask) << 1;
    }

    /// Inserts a key that is among the best. It is not inlined: most vertices
    /// are not among them, and the loop that rejects these stays small.
    [[gnu::noinline]] void insert(uint64_t key) {
        if (!is_full()) {
            keys.push_back(key);
        }
        const size_t last = keys.size() - 1, at = num_before(key, last);
        std::copy_backward(&keys[at], &keys[last], &keys[last] + 1);
        keys[at] = key;
        first_open = std::min(first_open, at);
    }

    /// Returns how many of the first n keys come before `key`. The bisection
    /// has no branches, because no processor could predict them.
    size_t num_before(uint64_t key, size_t n) const {
        const uint64_t* first = keys.data();
        while (n > 0) {
            const size_t half = (n + 1) / 2;
            // compilers would make a branch of ?:
            first += half & -size_t(first[half - 1] < key);
            n -= half;
        }
        return first - keys.data();
    }

    std::vector<uint64_t> keys; ///< ascending
    size_t capacity = 0, first_open = 0;
    uint32_t tie_mask = 0;
};

/// Limits of a walk.
struct WalkLimits {
    /// number of best vertices to expand
    size_t best;
    /// maximum number of vertices to expand
    size_t steps = std::numeric_limits<size_t>::max();
};

/** A best-first walk. Its memory is reused from walk to walk.
 *
 * The scores of all newly met links of a vertex are computed together:
 * scores(n, ids, out) writes the scores of n vertices.
 */
class GraphWalk {
   public:
    Frontier frontier;
    Frontier selected;     ///< results that are not the whole frontier
    size_t num_scores = 0; ///< computed since the last reset to 0
    uint32_t tie_mask = 0; ///< of the frontier

    /// Walks from a vertex on a level and keeps the best vertices in the
    /// frontier. Calls met(vertex) for each vertex that is met after the first.
    template <class Scores, class Met>
    void walk(
            const faiss::HNSW& hnsw,
            int level,
            ScoredVertex start,
            size_t kept,
            WalkLimits limits,
            Scores&& scores,
            Met&& met) {
        visited.clear(hnsw.levels.size());
        visited.set(start.id);
        frontier.clear(kept, tie_mask);
        frontier.push(start);
        for (size_t left = limits.steps; left > 0; left -= open.size()) {
            open.clear();
            while (open.size() < std::min(together, left) &&
                   frontier.has_open(limits.best)) {
                open.push_back(frontier.next_open());
                frontier.close_next();
            }
            if (open.empty()) {
                break;
            }
            collect(hnsw, level);
            values.resize(std::max(values.size(), num_ids));
            scores(num_ids, ids.data(), values.data());
            num_scores += num_ids;
            for (size_t i = 0; i < num_ids; i++) {
                const ScoredVertex v = {values[i], ids[i]};
                met(v);
                frontier.push(v);
            }
        }
    }

    /// Walks from the entry point of the graph down to the level above `level`
    /// and returns the best vertex found. On each level, the best `breadth`
    /// vertices are expanded.
    template <class Scores>
    ScoredVertex descend(
            const faiss::HNSW& hnsw,
            int level,
            size_t breadth,
            Scores&& scores) {
        ScoredVertex best = {0, hnsw.entry_point};
        scores(1, &best.id, &best.score);
        num_scores++;
        for (int l = hnsw.max_level; l > level; l--) {
            walk(hnsw, l, best, breadth, {breadth}, scores, [](ScoredVertex) {
            });
            best = frontier[0];
        }
        return best;
    }

   private:
    /// Vertices that are expanded at a time. Their links are loaded together,
    /// and kernels compare more vectors at once.
    static constexpr size_t together = 4;

    /// Collects the links of the open vertices that have not been met.
    void collect(const faiss::HNSW& hnsw, int level) {
        for (int32_t vertex : open) {
            const auto links = link_places(hnsw, vertex, level);
            prefetch_row(links.data(), links.size_bytes());
        }
        num_ids = 0;
        for (int32_t vertex : open) {
            const auto links = link_places(hnsw, vertex, level);
            ids.resize(std::max(ids.size(), num_ids + links.size()));
            num_ids += visited.set_all(links, ids.data() + num_ids);
        }
    }

    VisitedMarks visited;
    std::vector<int32_t> open;
    std::vector<int32_t> ids; ///< the first num_ids are valid
    size_t num_ids = 0;
    std::vector<float> values;
};

/// Lends the memory of a walk. Each thread keeps it, so that a query allocates
/// nothing. If a kernel searches another graph meanwhile, that search gets
/// memory of its own.
struct ThreadWalk {
    ThreadWalk() : walk(std::move(kept())) {
        if (!walk) {
            walk = std::make_unique<GraphWalk>();
        }
        walk->tie_mask = 0;
    }
    ~ThreadWalk() {
        kept() = std::move(walk);
    }
    ThreadWalk(const ThreadWalk&) = delete;
    ThreadWalk& operator=(const ThreadWalk&) = delete;

    GraphWalk& operator*() const {
        return *walk;
    }

   private:
    static std::unique_ptr<GraphWalk>& kept() {
        thread_local std::unique_ptr<GraphWalk> walk;
        return walk;
    }

    std::unique_ptr<GraphWalk> walk;
};

} // namespace faiss_ext
