// SPDX-License-Identifier: MIT
// Collects the best hits of a scan.

#pragma once

#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss_ext/core/compat.h>

#include "core/ranking.h"
#include "simd/selection.h"

namespace faiss_ext {

/// A score and an id; smaller scores are better.
using Hit = std::pair<float, idx_t>;

/// The score of a missing hit, and the largest possible bound.
constexpr float worst_score = std::numeric_limits<float>::max();

/// The k smallest hits by score and id, pushed in any order.
struct TopK {
    size_t k = 1;
    std::vector<float> scores; ///< the k smallest and others
    std::vector<idx_t> ids;
    float bound = worst_score; ///< at least the k-th smallest score so far

    void start(size_t size) {
        k = size;
        scores.clear();
        scores.reserve(room());
        ids.clear();
        ids.reserve(room());
        bound = worst_score;
    }

    size_t room() const {
        return 2 * k + 32;
    }

    void push(float score, idx_t id) {
        if (score <= bound) {
            scores.push_back(score);
            ids.push_back(id);
            if (scores.size() >= room()) {
                shrink();
            }
        }
    }

    /// Keeps only the k smallest.
    void shrink() {
        bound = simd::kth_smallest(scores.size(), scores.data(), k);
        size_t kept = 0;
        for (size_t i = 0; i < scores.size(); i++) {
            const bool stays = scores[i] <= bound;
            scores[kept] = scores[i];
            ids[kept] = ids[i];
            kept += stays;
        }
        scores.resize(kept);
        ids.resize(kept);
        if (kept > k) { // scores are equal, so ids decide
            const auto first = sorted(k);
            for (size_t i = 0; i < k; i++) {
                std::tie(scores[i], ids[i]) = first[i];
            }
            scores.resize(k);
            ids.resize(k);
        }
    }

    /// Returns the m smallest, in order.
    std::vector<Hit> sorted(size_t m) const {
        std::vector<Hit> hits(scores.size());
        for (size_t i = 0; i < hits.size(); i++) {
            hits[i] = {scores[i], ids[i]};
        }
        keep_smallest(hits, m);
        return hits;
    }
};

} // namespace faiss_ext
