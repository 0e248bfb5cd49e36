#include "indexes/best_hits.h"

#include <algorithm>
#include <cstdint>

#include "core/ranking.h"

namespace faiss_ext {

void keep_best(std::vector<Hit>& hits, size_t m) {
    m = std::min(m, hits.size());
    if (hits.size() > std::numeric_limits<uint32_t>::max()) {
        std::partial_sort(hits.begin(), hits.begin() + m, hits.end());
        hits.resize(m);
        return;
    }
    std::vector<Ranked> ranked(hits.size());
    for (size_t i = 0; i < hits.size(); i++) {
        ranked[i] = {hits[i].first, uint32_t(i)};
    }
    keep_smallest(ranked, hits.size());
    std::vector<Hit> kept;
    kept.reserve(hits.size());
    for (const auto& [score, position] : ranked) {
        if (kept.size() >= m && (m == 0 || score > kept[m - 1].first)) {
            break;
        }
        kept.push_back(hits[position]);
    }
    for (auto from = kept.begin(); from != kept.end();) {
        const auto to = std::find_if(from, kept.end(), [&](const Hit& hit) {
            return hit.first > from->first;
        });
        std::sort(from, to); // equal scores: ids decide
        from = to;
    }
    kept.resize(m);
    hits.swap(kept);
}

} // namespace faiss_ext
