// SPDX-License-Identifier: MIT
// The fragments in README.md and docs/cpp.md.

#include <cstdio>
#include <memory>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/progress.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

void readme(
        int d,
        faiss_ext::idx_t n,
        const float* x,
        faiss_ext::idx_t nq,
        const float* xq) {
    std::vector<float> distances(nq * 10);
    std::vector<faiss_ext::idx_t> labels(nq * 10);
    auto index = faiss_ext::index_factory(
            d, "SIK512(gaussian),BFlat,Refine(KFlat(gaussian))");
    index->train(n, x);
    index->add(n, x);
    index->search(nq, xq, 10, distances.data(), labels.data());
    faiss_ext::write_index(index.get(), "vectors.index");
}

void sparse(
        int d,
        faiss_ext::idx_t n,
        const int64_t* indptr,
        const int32_t* columns,
        const float* values,
        faiss_ext::idx_t nq,
        const int64_t* query_indptr,
        const int32_t* query_columns,
        const float* query_values,
        float* distances,
        faiss_ext::idx_t* labels) {
    auto index = faiss_ext::index_factory(d, "KFlat(jaccard,store=sparse)");
    const faiss_ext::SparseVectors x = {n, d, indptr, columns, values};
    const faiss_ext::SparseVectors queries = {
            nq, d, query_indptr, query_columns, query_values};
    faiss_ext::add(*index, x);
    faiss_ext::search(*index, queries, 10, distances, labels);
}

double packed_bits(
        int d,
        faiss_ext::idx_t n,
        const uint8_t* codes,
        faiss_ext::idx_t nq,
        const uint8_t* queries,
        int32_t* distances,
        faiss_ext::idx_t* labels) {
    auto index = faiss_ext::index_binary_factory(
            d, "CWS512,BFlat,Refine(BKFlat(jaccard))");
    index->add(n, codes);
    index->search(nq, queries, 10, distances, labels);
    double k = faiss_ext::IndexBinaryFlatKernel::kernel_value(distances[0]);
    return k;
}

void vectors_of_bits(int d, faiss_ext::idx_t n, const uint8_t* codes) {
    auto vectors = faiss_ext::index_factory(d, "KFlat(chi2,store=sparse)");
    const faiss_ext::SparseRows rows = faiss_ext::rows_of_bits(n, d, codes);
    faiss_ext::add(*vectors, rows.get());
}

void guarded(
        const faiss::Index* index,
        faiss_ext::idx_t nq,
        const float* xq,
        float* distances,
        faiss_ext::idx_t* labels) {
    faiss_ext::KernelExceptionGuard guard(index);
    index->search(nq, xq, 10, distances, labels);
    guard.rethrow();
}

void with_progress(faiss::Index* index, faiss_ext::idx_t n, const float* x) {
    faiss_ext::ProgressScope scope(
            [](const char* task, size_t done, size_t total) {
                printf("%s: %zu of %zu\n", task, done, total);
            });
    index->add(n, x);
}
