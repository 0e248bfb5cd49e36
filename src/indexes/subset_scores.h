// SPDX-License-Identifier: MIT
// Compares each query with the vectors that it names.

#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include <faiss_ext/indexes/IndexFlatKernel.h>

#include "core/check.h"
#include "core/parallel.h"
#include "indexes/row_scores.h"
#include "simd/top_k.h"

namespace faiss_ext {

/// Fills `out`, of shape (n, k), from the scores of the labels that are not -1:
/// score(metric, i, ids,
/// scores) compares query i with the vectors `ids`.
/// @param what  of IndexFlatKernel::Subset, which is protected
template <class Subset, class Score>
void fill_subset(
        const IndexFlatKernel& index,
        Subset what,
        idx_t n,
        idx_t k,
        float* out,
        const idx_t* labels,
        Score&& score) {
    const faiss::MetricType metric = what == Subset::kernel_values
            ? faiss::METRIC_INNER_PRODUCT
            : index.metric_type;
    const float worst = what == Subset::scores ? worst_score : worst_of(metric);
    const idx_t queries = std::max<idx_t>(1, 256 / std::max<idx_t>(1, k));
    parallel_blocks(n, queries, [&](idx_t begin, idx_t end) {
        std::vector<idx_t> ids;
        std::vector<float> found;
        ids.reserve(k);
        for (idx_t i = begin; i < end; i++) {
            ids.clear();
            std::copy_if(
                    labels + i * k,
                    labels + (i + 1) * k,
                    std::back_inserter(ids),
                    [](idx_t label) { return label >= 0; });
            found.resize(ids.size());
            score(metric, i, ids, found.data());
            if (what != Subset::scores) {
                index.kernel->values_of_scores(
                        metric, found.size(), found.data());
            }
            auto next = found.begin();
            for (idx_t j = i * k; j < (i + 1) * k; j++) {
                out[j] = labels[j] >= 0 ? *next++ : worst;
            }
        }
    });
}

} // namespace faiss_ext
