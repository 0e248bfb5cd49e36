// SPDX-License-Identifier: MIT
#include "core/sample.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "core/random_streams.h"

namespace faiss_ext {

std::vector<idx_t> all_ids(idx_t n) {
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), idx_t(0));
    return ids;
}

std::vector<idx_t> sample_ids(idx_t n, idx_t k, uint64_t seed) {
    std::vector<idx_t> ids = all_ids(n);
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

SparseRows gather_rows(const std::vector<idx_t>& ids, const SparseVectors& x) {
    size_t size = 0;
    for (idx_t id : ids) {
        size += x.num_components(id);
    }
    SparseRows rows;
    rows.d = x.d;
    rows.indptr.reserve(ids.size() + 1);
    rows.indices.reserve(size);
    rows.values.reserve(size);
    rows.indptr.push_back(0);
    for (idx_t id : ids) {
        const int64_t begin = x.indptr[id], end = x.indptr[id + 1];
        rows.indices.insert(
                rows.indices.end(), x.indices + begin, x.indices + end);
        rows.values.insert(rows.values.end(), x.values + begin, x.values + end);
        rows.indptr.push_back(int64_t(rows.indices.size()));
    }
    return rows;
}

VectorSample gather_rows(const std::vector<idx_t>& ids, const VectorBatch& x) {
    VectorSample sample;
    sample.n = idx_t(ids.size());
    sample.d = x.d;
    sample.is_sparse = x.is_sparse;
    if (x.is_sparse) {
        sample.sparse = gather_rows(ids, x.sparse);
    } else {
        sample.dense = gather_rows(ids, x.dense, x.d);
    }
    return sample;
}

} // namespace faiss_ext
