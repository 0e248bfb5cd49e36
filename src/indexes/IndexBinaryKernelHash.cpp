// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>

#include <faiss/impl/AuxIndexStructures.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/batch_calls.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"

namespace faiss_ext {

IndexBinaryKernelHash::IndexBinaryKernelHash(
        KernelHash* hash,
        faiss::IndexBinary* storage)
        : IndexBinary(storage ? storage->d : 0), HashAndStorage(hash, storage) {
    ntotal = storage->ntotal;
    is_trained = hash->is_trained && storage->is_trained;
}

void IndexBinaryKernelHash::train(idx_t n, const uint8_t* codes) {
    check_batch(n, codes, "train");
    storage->verbose = verbose;
    storage->train(n, codes);
    is_trained = hash->is_trained && storage->is_trained;
}

void IndexBinaryKernelHash::train(idx_t n, const float* x) {
    train_parts({n, x, hash->d_in}, verbose);
    is_trained = true;
}

void IndexBinaryKernelHash::train(const SparseVectors& x) {
    train_parts(x, verbose);
    is_trained = true;
}

void IndexBinaryKernelHash::add(idx_t n, const uint8_t* codes) {
    check_counts_with(*this, storage);
    add_codes(n, codes, nullptr);
    ntotal = storage->ntotal;
}

void IndexBinaryKernelHash::add(idx_t n, const float* x) {
    add(n, encode_vectors({n, x, hash->d_in}).data());
}

void IndexBinaryKernelHash::add(const SparseVectors& x) {
    add(x.n, encode_vectors(x).data());
}

void IndexBinaryKernelHash::add_with_ids(
        idx_t n,
        const uint8_t* codes,
        const idx_t* xids) {
    check_counts_with(*this, storage);
    check_batch(n, xids, "add_with_ids");
    add_codes(n, codes, xids);
    ntotal = storage->ntotal;
}

void IndexBinaryKernelHash::add_with_ids(
        idx_t n,
        const float* x,
        const idx_t* xids) {
    add_with_ids(n, encode_vectors({n, x, hash->d_in}).data(), xids);
}

void IndexBinaryKernelHash::add_with_ids(
        const SparseVectors& x,
        const idx_t* xids) {
    add_with_ids(x.n, encode_vectors(x).data(), xids);
}

void IndexBinaryKernelHash::search(
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_counts_with(*this, storage);
    search_codes(n, codes, k, distances, labels, params);
}

void IndexBinaryKernelHash::search(
        idx_t n,
        const float* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search(n,
           encode_vectors({n, x, hash->d_in}).data(),
           k,
           distances,
           labels,
           params);
}

void IndexBinaryKernelHash::search(
        const SparseVectors& x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search(x.n, encode_vectors(x).data(), k, distances, labels, params);
}

void IndexBinaryKernelHash::range_search(
        idx_t n,
        const uint8_t* codes,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_counts_with(*this, storage);
    range_search_codes(n, codes, radius, result, params);
}

void IndexBinaryKernelHash::range_search(
        idx_t n,
        const float* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    range_search(
            n,
            encode_vectors({n, x, hash->d_in}).data(),
            radius,
            result,
            params);
}

void IndexBinaryKernelHash::range_search(
        const SparseVectors& x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    range_search(x.n, encode_vectors(x).data(), radius, result, params);
}

void IndexBinaryKernelHash::reset() {
    reset_binary_index(*storage);
    ntotal = storage->ntotal;
}

size_t IndexBinaryKernelHash::remove_ids(const faiss::IDSelector& sel) {
    check_removal(*this, sel, "IndexBinaryKernelHash::remove_ids");
    check_counts_with(*this, storage);
    const size_t removed = storage->remove_ids(sel);
    ntotal = storage->ntotal;
    return removed;
}

void IndexBinaryKernelHash::reconstruct(idx_t key, uint8_t* recons) const {
    check_counts_with(*this, storage);
    check_stored_ids(key, 1);
    storage->reconstruct(key, recons);
}

void IndexBinaryKernelHash::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    check_counts_with(*this, storage);
    check_stored_ids(i0, ni);
    // one by one: in 1.7.3 faiss::IndexBinary leaves gaps between codes
    for (idx_t i = 0; i < ni; i++) {
        storage->reconstruct_n(i0 + i, 1, recons + i * code_size);
    }
}

void IndexBinaryKernelHash::merge_from(
        faiss::IndexBinary& other,
        idx_t add_id) {
    check_compatible_for_merge(other);
    auto& source = dynamic_cast<IndexBinaryKernelHash&>(other);
    storage->merge_from(*source.storage, add_id);
    ntotal = storage->ntotal;
    source.ntotal = source.storage->ntotal;
}

void IndexBinaryKernelHash::check_compatible_for_merge(
        const faiss::IndexBinary& other) const {
    check_before_merge(*this, other);
    auto* source = dynamic_cast<const IndexBinaryKernelHash*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another IndexBinaryKernelHash");
    check_counts_with(*this, storage);
    check_counts(other);
    check_mergeable(*source);
}

} // namespace faiss_ext
