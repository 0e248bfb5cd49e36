// SPDX-License-Identifier: MIT
// Keeps the best hits of a scan.

#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss_ext/core/compat.h>

#include "simd/ranking.h"
#include "simd/selection.h"

namespace faiss_ext {

/// A score and an id; smaller scores are better.
using Hit = std::pair<float, idx_t>;

/// The score of a missing hit.
constexpr float worst_score = std::numeric_limits<float>::max();

/** The k smallest hits by score and id. Scores are float or int32_t.
 *
 * Hits are collected until there is no room for more. Then the k smallest are
 * kept, and the largest of these scores bounds those to come. This costs less
 * per hit than a heap.
 */
template <class Score>
struct TopK {
    size_t k;
    Score bound;               ///< larger scores are not kept
    std::vector<Score> scores; ///< the k smallest and others
    std::vector<idx_t> ids;

    explicit TopK(size_t k = 1, Score bound = std::numeric_limits<Score>::max())
            : k(k), bound(bound) {}

    /// The largest number of hits that are held: about 1.5 k, and some 50 more,
    /// so that few hits are not shrunk often. kth_smallest takes multiples of
    /// 16 fastest.
    size_t room() const {
        return (k + k / 2 + 63) / 16 * 16;
    }

    void reserve() {
        scores.reserve(room());
        ids.reserve(room());
    }

    /// Pushes a hit. NaN is skipped.
    void push(Score score, idx_t id) {
        if (score <= bound) {
            scores.push_back(score);
            ids.push_back(id);
            if (scores.size() >= room()) {
                shrink();
            }
        }
    }

    /// Pushes n hits. NaN is skipped. No branch depends on a single score.
    void push_all(size_t n, const Score* of_hits, const idx_t* ids_of_hits) {
        for (size_t i = 0; i < n;) {
            size_t held = scores.size();
            const size_t end = std::min(n, i + room() - held);
            scores.resize(held + end - i);
            ids.resize(scores.size());
            for (; i < end; i++) {
                scores[held] = of_hits[i];
                ids[held] = ids_of_hits[i];
                held += of_hits[i] <= bound;
            }
            scores.resize(held);
            ids.resize(held);
            if (held >= room()) {
                shrink();
            }
        }
    }

    /// Pushes the scores of the wanted among n consecutive ids, all above the
    /// ids before.
    template <class IsWanted>
    void push_block(
            idx_t first,
            size_t n,
            const Score* block,
            IsWanted&& is_wanted) {
        const auto push_wanted = [&](size_t i) {
            if (is_wanted(first + idx_t(i))) {
                push(block[i], first + idx_t(i));
            }
        };
        size_t i = 0;
        for (; i < n && scores.size() < k; i++) {
            push_wanted(i);
        }
        // from now on, a score equal to the bound loses by its id
        const auto next = [&](size_t from) {
            return simd::first_below(n, block, from, bound);
        };
        for (i = next(i); i < n; i = next(i + 1)) {
            push_wanted(i);
        }
    }

    /// Keeps only the k smallest, of at least k hits.
    void shrink() {
        if constexpr (std::is_same_v<Score, float>) {
            remove_beyond(simd::kth_smallest(scores.size(), scores.data(), k));
            if (scores.size() == k) {
                return;
            }
        }
        // integers, or scores that are equal at the bound: ids decide
        auto hits = hits_of(std::span<const TopK>(this, 1));
        std::nth_element(hits.begin(), hits.begin() + (k - 1), hits.end());
        for (size_t i = 0; i < k; i++) {
            std::tie(scores[i], ids[i]) = hits[i];
        }
        bound = scores[k - 1];
        scores.resize(k);
        ids.resize(k);
    }

    /// Returns the m smallest, in order; m is at most k.
    std::vector<std::pair<Score, idx_t>> sorted(size_t m) const {
        return smallest_of(std::span(this, 1), m);
    }

   private:
    /// Makes this the bound.
    void remove_beyond(Score largest) {
        bound = largest;
        size_t kept = 0;
        for (size_t i = 0; i < scores.size(); i++) {
            const bool stays = scores[i] <= bound;
            scores[kept] = scores[i];
            ids[kept] = ids[i];
            kept += stays;
        }
        scores.resize(kept);
        ids.resize(kept);
    }
};

/// Returns all hits that are held, in any order.
template <class Score>
std::vector<std::pair<Score, idx_t>> hits_of(
        std::span<const TopK<Score>> parts) {
    std::vector<std::pair<Score, idx_t>> hits;
    for (const TopK<Score>& part : parts) {
        hits.reserve(hits.size() + part.scores.size());
        for (size_t i = 0; i < part.scores.size(); i++) {
            hits.emplace_back(part.scores[i], part.ids[i]);
        }
    }
    return hits;
}

/// Returns the m smallest of all hits, in order; m is at most k.
template <class Score>
std::vector<std::pair<Score, idx_t>> smallest_of(
        std::span<const TopK<Score>> parts,
        size_t m) {
    auto hits = hits_of(parts);
    keep_smallest(hits, m);
    return hits;
}

} // namespace faiss_ext
