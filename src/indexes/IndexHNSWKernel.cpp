#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <algorithm>
#include <cinttypes>
#include <vector>

#include <faiss_ext/indexes/KernelExceptions.h>

#include "core/errors.h"

namespace faiss_ext {

namespace {

IndexFlatKernel* checked(IndexFlatKernel* storage, int M) {
    FAISS_EXT_THROW_IF_NOT_MSG(storage, "IndexHNSWKernel: the storage is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            M >= 2 && M <= 1024 && storage->ntotal == 0,
            "IndexHNSWKernel: M is %d and the storage has %" PRId64
            " vectors, expected M from 2 to 1024 and an empty storage",
            M,
            int64_t(storage->ntotal));
    return storage;
}

} // namespace

IndexHNSWKernel::IndexHNSWKernel(IndexFlatKernel* storage, int M)
        : IndexHNSW(checked(storage, M), M) {
    is_trained = storage->is_trained;
}

IndexFlatKernel& IndexHNSWKernel::vectors() const {
    auto* flat = dynamic_cast<IndexFlatKernel*>(storage);
    FAISS_EXT_THROW_IF_NOT_MSG(
            flat, "IndexHNSWKernel: the storage is not an IndexFlatKernel");
    return *flat;
}

void IndexHNSWKernel::check_graph(const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            graph_is_complete,
            "IndexHNSWKernel::%s: an add that failed or was interrupted has left the graph incomplete; call rebuild(), or reset() and add the vectors again",
            where);
}

void IndexHNSWKernel::add(idx_t n, const float* x) {
    check_graph("add");
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained, "IndexHNSWKernel::add: call train first");
    if (n == 0) {
        return;
    }
    add_or_roll_back(n, x);
}

void IndexHNSWKernel::add_or_roll_back(idx_t n, const float* x) {
    const idx_t n0 = ntotal;
    const faiss::RandomGenerator random = hnsw.rng;
    IndexFlatKernel& flat = vectors();
    try {
        KernelExceptionGuard guard(this);
        IndexHNSW::add(n, x);
        guard.rethrow();
    } catch (...) {
        if (flat.ntotal > n0) { // or else the vectors were refused
            flat.codes.resize(n0 * flat.code_size);
            flat.ntotal = ntotal = n0;
            hnsw.rng = random;
            if (n0 == 0) {
                hnsw.reset();
            } else {
                graph_is_complete = false;
            }
        }
        throw;
    }
}

void IndexHNSWKernel::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_graph("search");
    KernelExceptionGuard guard(this);
    IndexHNSW::search(n, x, k, distances, labels, params);
    guard.rethrow();
}

void IndexHNSWKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_graph("range_search");
    KernelExceptionGuard guard(this);
    IndexHNSW::range_search(n, x, radius, result, params);
    guard.rethrow();
}

void IndexHNSWKernel::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    vectors().reconstruct_n(i0, ni, recons);
}

void IndexHNSWKernel::reset() {
    IndexHNSW::reset();
    graph_is_complete = true;
}

void IndexHNSWKernel::rebuild() {
    IndexFlatKernel& flat = vectors();
    const idx_t n = flat.ntotal;
    const std::vector<uint8_t> codes(
            flat.codes.data(), flat.codes.data() + n * flat.code_size);
    std::vector<float> x(n * d);
    flat.sa_decode(n, codes.data(), x.data());
    reset();
    const auto put_back = [&] {
        flat.codes.resize(codes.size());
        std::copy(codes.begin(), codes.end(), flat.codes.data());
        flat.ntotal = ntotal = n;
    };
    try {
        add(n, x.data());
    } catch (...) {
        put_back();
        graph_is_complete = false;
        throw;
    }
    put_back();
}

} // namespace faiss_ext
