// SPDX-License-Identifier: MIT
#include "indexes/row_scores.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace faiss_ext {

float worst_of(faiss::MetricType metric) {
    constexpr float worst = std::numeric_limits<float>::max();
    return metric == faiss::METRIC_L2 ? worst : -worst;
}

void finish_results(
        const IndexFlatKernel& index,
        idx_t k,
        float* scores,
        idx_t* labels) {
    const bool is_distance = index.metric_type == faiss::METRIC_L2;
    const idx_t n = std::find(labels, labels + k, -1) - labels;
    index.kernel->values_of_scores(index.metric_type, n, scores);
    std::fill(scores + n, scores + k, worst_of(index.metric_type));
    std::fill(labels + n, labels + k, -1);
    const auto is_nearer = [&](float a, float b) {
        return is_distance ? a < b : a > b;
    };
    if (std::is_sorted(scores, scores + n, is_nearer)) {
        return;
    }
    // values of close scores may differ in order by their last bit
    std::vector<std::pair<float, idx_t>> results(n);
    for (idx_t i = 0; i < n; i++) {
        results[i] = {scores[i], labels[i]};
    }
    std::stable_sort(
            results.begin(), results.end(), [&](const auto& a, const auto& b) {
                return is_nearer(a.first, b.first);
            });
    for (idx_t i = 0; i < n; i++) {
        std::tie(scores[i], labels[i]) = results[i];
    }
}

} // namespace faiss_ext
