// SPDX-License-Identifier: MIT
#include "indexes/row_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include <faiss_ext/kernels/LinearKernel.h>

#include "core/parallel.h"
#include "indexes/incomplete_rows.h"
#include "simd/ranking.h"
#include "simd/rows.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

/// Whether scores are squared L2 distances of vectors that are bytes.
bool scores_are_l2_of_bytes(
        const IndexFlatKernel& index,
        const StoredRows& stored) {
    using Store = IndexFlatKernel::Store;
    const Store store = stored.codec.store;
    return (store == Store::u8 || store == Store::i8) &&
            stored.codec.has_factors && index.metric_type == faiss::METRIC_L2 &&
            typeid(*index.kernel) == typeid(LinearKernel);
}

} // namespace

RowScores::RowScores(const IndexFlatKernel& index, const char* where)
        : index(index),
          stored(StoredRows::of(index, where)),
          has_l2_of_bytes(scores_are_l2_of_bytes(index, stored)) {}

void RowScores::operator()(
        const float* x,
        size_t n,
        const int32_t* ids,
        float* scores) const {
    if (has_l2_of_bytes) {
        for (size_t i = 0; i < n; i++) {
            prefetch(ids[i]);
        }
        simd::squared_l2_of_byte_rows(
                stored.codec.store == IndexFlatKernel::Store::i8,
                d(),
                x,
                stored.data,
                stored.stride,
                n,
                ids,
                scores);
        return;
    }
    for_gathered_rows(
            stored, n, ids, [&](size_t begin, size_t count, const float* rows) {
                block(1, x, count, rows, scores + begin);
            });
}

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

void choose_nearest(
        idx_t n,
        idx_t m,
        const float* scores,
        const idx_t* ids,
        idx_t k,
        float* found,
        idx_t* labels) {
    parallel_blocks(n, 64, [&](idx_t begin, idx_t end) {
        std::vector<Hit> hits;
        hits.reserve(std::max(m, k));
        for (idx_t i = begin; i < end; i++) {
            hits.clear();
            for (idx_t j = i * m; j < (i + 1) * m; j++) {
                if (ids[j] >= 0 && !std::isnan(scores[j])) {
                    hits.emplace_back(scores[j], ids[j]);
                }
            }
            keep_smallest(hits, k);
            hits.resize(k, {worst_score, -1});
            for (idx_t j = 0; j < k; j++) {
                std::tie(found[i * k + j], labels[i * k + j]) = hits[j];
            }
        }
    });
}

void complete_results(
        const IndexFlatKernel& index,
        const faiss::IDSelector& sel,
        const VectorBatch& x,
        idx_t k,
        float* scores,
        idx_t* labels) {
    const IncompleteRows rows(x, k, labels);
    if (rows.empty()) {
        return;
    }
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelector*>(&sel); // FAISS's type
    rows.search_again(
            scores,
            labels,
            [&](const VectorBatch& queries, float* found, idx_t* ids) {
                search_scores(index, queries, k, found, ids, &params);
            });
}

} // namespace faiss_ext
