// SPDX-License-Identifier: MIT
#include "core/sample.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/random_streams.h"

namespace faiss_ext {

std::vector<idx_t> sample_ids(idx_t n, idx_t k, uint64_t seed) {
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    std::mt19937_64 rng(seed);
    k = std::min(n, k);
    partial_shuffle(ids, k, rng);
    ids.resize(k);
    return ids;
}

std::vector<float> gather_rows(
        const std::vector<idx_t>& ids,
        const float* x,
        size_t d) {
    std::vector<float> rows(ids.size() * d);
    for (size_t i = 0; i < ids.size(); i++) {
        std::copy_n(x + ids[i] * d, d, &rows[i * d]);
    }
    return rows;
}

} // namespace faiss_ext
