// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexKernelHash.h>

#include <algorithm>
#include <limits>

#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/DistanceComputer.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "indexes/batch_calls.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/no_vectors.h"
#include "simd/ranking.h"

namespace faiss_ext {

namespace {

constexpr float max_float = std::numeric_limits<float>::max();

float metric_of_hamming(const IndexKernelHash& index, float hamming) {
    return index.metric_type == faiss::METRIC_L2
            ? hamming
            : index.hash->nbits - 2 * hamming;
}

float farthest(const IndexKernelHash& index) {
    return index.metric_type == faiss::METRIC_L2 ? max_float : -max_float;
}

/// Returns the number of Hamming distances, counted from 0, within a radius.
int to_hamming_radius(const IndexKernelHash& index, float radius) {
    int low = 0, high = index.hash->nbits + 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        const float distance = metric_of_hamming(index, float(middle));
        if (is_within(index.metric_type, distance, radius)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct HashDistanceComputer : faiss::DistanceComputer {
    const IndexKernelHash& index;
    const faiss::IndexBinary& codes;
    std::vector<uint8_t> query, a, b;

    HashDistanceComputer(
            const IndexKernelHash& index,
            const faiss::IndexBinary& codes)
            : index(index),
              codes(codes),
              query(index.sa_code_size()),
              a(query.size()),
              b(query.size()) {}

    // FAISS calls these from parallel loops, which exceptions cannot leave

    void set_query(const float* x) override {
        guarded([&] { index.hash->encode(1, x, query.data()); });
    }

    float operator()(idx_t i) override {
        guarded([&] { codes.reconstruct(i, a.data()); });
        return distance(query);
    }

    float symmetric_dis(idx_t i, idx_t j) override {
        guarded([&] {
            codes.reconstruct(i, a.data());
            codes.reconstruct(j, b.data());
        });
        return distance(b);
    }

   private:
    /// after an exception all pairs count as farthest
    bool failed = false;

    template <class F>
    void guarded(F&& f) noexcept {
        try {
            if (!failed) {
                f();
            }
        } catch (...) {
            failed = true;
            index.exceptions.record(std::current_exception());
        }
    }

    float distance(const std::vector<uint8_t>& other) const {
        return failed ? farthest(index)
                      : metric_of_hamming(
                                index,
                                float(hamming_distance(
                                        a.data(), other.data(), a.size())));
    }
};

} // namespace

IndexKernelHash::IndexKernelHash(
        KernelHash* hash,
        faiss::IndexBinary* storage,
        faiss::MetricType metric)
        : Index(hash ? hash->d_in : 0, metric), HashAndStorage(hash, storage) {
    check_metric(metric);
    ntotal = storage->ntotal;
    is_trained = hash->is_trained && storage->is_trained;
}

void IndexKernelHash::train(idx_t n, const float* x) {
    train_batch({n, x, d});
}

void IndexKernelHash::train_batch(const VectorBatch& x) {
    train_parts(x, verbose);
    is_trained = true;
}

void IndexKernelHash::add(idx_t n, const float* x) {
    add_batch({n, x, d});
}

void IndexKernelHash::add_batch(const VectorBatch& x) {
    check_counts_with(*this, storage);
    const std::vector<uint8_t> codes = encode_vectors(x);
    add_codes(x.n, codes.data(), nullptr);
    ntotal = storage->ntotal;
}

void IndexKernelHash::add_with_ids(idx_t n, const float* x, const idx_t* xids) {
    check_counts_with(*this, storage);
    check_batch(n, xids, "add_with_ids");
    const std::vector<uint8_t> codes = encode_vectors({n, x, d});
    add_codes(n, codes.data(), xids);
    ntotal = storage->ntotal;
}

void IndexKernelHash::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_batch({n, x, d}, k, distances, labels, params);
}

void IndexKernelHash::search_batch(
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_counts_with(*this, storage);
    const std::vector<uint8_t> codes = encode_vectors(x);
    std::vector<int32_t> hamming(x.n * std::max<idx_t>(k, 0));
    search_codes(x.n, codes.data(), k, hamming.data(), labels, params);
    const float padding = farthest(*this);
    for (size_t i = 0; i < hamming.size(); i++) {
        distances[i] = labels[i] == -1
                ? padding
                : metric_of_hamming(*this, float(hamming[i]));
    }
}

void IndexKernelHash::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    range_search_batch({n, x, d}, radius, result, params);
}

void IndexKernelHash::range_search_batch(
        const VectorBatch& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_counts_with(*this, storage);
    check_radius(radius, "IndexKernelHash::range_search");
    const std::vector<uint8_t> codes = encode_vectors(x);
    range_search_codes(
            x.n,
            codes.data(),
            to_hamming_radius(*this, radius),
            result,
            params);
    for (size_t i = 0; i < result->lims[x.n]; i++) {
        result->distances[i] = metric_of_hamming(*this, result->distances[i]);
    }
}

void IndexKernelHash::reconstruct(idx_t, float*) const {
    throw_no_vectors("IndexKernelHash");
}

void IndexKernelHash::reconstruct_n(idx_t, idx_t, float* recons) const {
    reconstruct(0, recons);
}

void IndexKernelHash::reconstruct_batch(idx_t, const idx_t*, float*) const {
    throw_no_vectors("IndexKernelHash");
}

void IndexKernelHash::reset() {
    reset_binary_index(*storage);
    ntotal = storage->ntotal;
}

size_t IndexKernelHash::remove_ids(const faiss::IDSelector& sel) {
    check_removal(*this, sel, "IndexKernelHash::remove_ids");
    check_counts_with(*this, storage);
    const size_t removed = storage->remove_ids(sel);
    ntotal = storage->ntotal;
    return removed;
}

void IndexKernelHash::merge_from(faiss::Index& other, idx_t add_id) {
    check_compatible_for_merge(other);
    auto& source = dynamic_cast<IndexKernelHash&>(other);
    storage->merge_from(*source.storage, add_id);
    ntotal = storage->ntotal;
    source.ntotal = source.storage->ntotal;
}

void IndexKernelHash::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_before_merge(*this, other);
    auto* source = dynamic_cast<const IndexKernelHash*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another IndexKernelHash");
    FAISS_EXT_THROW_IF_NOT_MSG(
            metric_type == source->metric_type,
            "cannot merge: the metrics differ");
    check_counts_with(*this, storage);
    check_counts(other);
    check_mergeable(*source);
}

faiss::DistanceComputer* IndexKernelHash::get_distance_computer() const {
    check_counts_with(*this, storage);
    check_counts_inside();
    if (auto* multi = dynamic_cast<faiss::IndexBinaryMultiHash*>(storage)) {
        return new HashDistanceComputer(*this, *multi->storage);
    }
    // FAISS asks for codes in parallel loops, which exceptions cannot leave
    auto* ivf = dynamic_cast<faiss::IndexBinaryIVF*>(storage);
    if (dynamic_cast<faiss::IndexBinaryHash*>(storage) ||
        (ivf && ivf->direct_map.no())) {
        throw UnsupportedError(
                "IndexKernelHash: the storage cannot return codes by id, so distances to single vectors cannot be computed");
    }
    return new HashDistanceComputer(*this, *storage);
}

size_t IndexKernelHash::sa_code_size() const {
    return hash->code_size();
}

void IndexKernelHash::sa_encode(idx_t n, const float* x, uint8_t* bytes) const {
    hash->encode(n, x, bytes);
}

void IndexKernelHash::sa_decode(idx_t, const uint8_t*, float*) const {
    throw_no_vectors("IndexKernelHash");
}

} // namespace faiss_ext
