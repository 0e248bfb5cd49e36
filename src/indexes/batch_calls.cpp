// SPDX-License-Identifier: MIT
#include "indexes/batch_calls.h"

#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/sparse_calls.h>

namespace faiss_ext {

GatheredVectors::GatheredVectors(
        const VectorBatch& x,
        const std::vector<idx_t>& numbers)
        : n(idx_t(numbers.size())), d(x.d), is_sparse(x.is_sparse) {
    indptr.push_back(0);
    for (const idx_t i : numbers) {
        if (!is_sparse) {
            const float* row = x.dense + i * d;
            values.insert(values.end(), row, row + d);
            continue;
        }
        const int64_t begin = x.sparse.indptr[i], end = x.sparse.indptr[i + 1];
        values.insert(
                values.end(), x.sparse.values + begin, x.sparse.values + end);
        columns.insert(
                columns.end(),
                x.sparse.indices + begin,
                x.sparse.indices + end);
        indptr.push_back(int64_t(values.size()));
    }
}

VectorBatch GatheredVectors::get() const {
    return is_sparse
            ? VectorBatch({n, d, indptr.data(), columns.data(), values.data()})
            : VectorBatch(n, values.data(), d);
}

namespace {

const IndexSparseKernel& as_sparse(const IndexFlatKernel& flat) {
    return dynamic_cast<const IndexSparseKernel&>(flat);
}

} // namespace

void add(faiss::Index& index, const VectorBatch& x) {
    if (x.is_sparse) {
        add(index, x.sparse);
    } else {
        index.add(x.n, x.dense);
    }
}

void train(faiss::Index& index, const VectorBatch& x) {
    if (x.is_sparse) {
        train(index, x.sparse);
    } else {
        index.train(x.n, x.dense);
    }
}

void search(
        const faiss::Index& index,
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    if (x.is_sparse) {
        search(index, x.sparse, k, distances, labels, params);
    } else {
        index.search(x.n, x.dense, k, distances, labels, params);
    }
}

void search_scores(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    if (x.is_sparse) {
        as_sparse(flat).search_scores(x.sparse, k, scores, labels, params);
    } else {
        flat.search_scores(x.n, x.dense, k, scores, labels, params);
    }
}

void compute_score_subset(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* scores,
        const idx_t* labels) {
    if (x.is_sparse) {
        as_sparse(flat).compute_score_subset(x.sparse, k, scores, labels);
    } else {
        flat.compute_score_subset(x.n, x.dense, k, scores, labels);
    }
}

void compute_distance_subset(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* distances,
        const idx_t* labels) {
    if (x.is_sparse) {
        as_sparse(flat).compute_distance_subset(x.sparse, k, distances, labels);
    } else {
        flat.compute_distance_subset(x.n, x.dense, k, distances, labels);
    }
}

void compute_kernel_subset(
        const IndexFlatKernel& flat,
        const VectorBatch& x,
        idx_t k,
        float* values,
        const idx_t* labels) {
    if (x.is_sparse) {
        compute_kernel_subset(as_sparse(flat), x.sparse, k, values, labels);
    } else {
        flat.compute_kernel_subset(x.n, x.dense, k, values, labels);
    }
}

} // namespace faiss_ext
