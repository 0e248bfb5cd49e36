// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/HashAndStorage.h>

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <utility>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/impl/AuxIndexStructures.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "core/slices.h"
#include "indexes/add_to_storage.h"
#include "indexes/batch_calls.h"
#include "indexes/hash_table_search.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"
#include "indexes/search_params.h"
#include "indexes/supported_calls.h"

namespace faiss_ext {

namespace {

/// Our indexes check for interrupts themselves.
bool is_ours(const faiss::IndexBinary& storage) {
    if (const auto* lists = dynamic_cast<const IndexBinaryIVFSIMD*>(&storage)) {
        return is_ours(*lists->quantizer);
    }
    return dynamic_cast<const IndexBinaryFlatSIMD*>(&storage) ||
            dynamic_cast<const IndexBinaryHNSWSIMD*>(&storage) ||
            dynamic_cast<const IndexBinaryPermuted*>(&storage);
}

template <class HashTables>
void check_flips(const faiss::IndexBinary& storage) {
    if (auto* tables = dynamic_cast<const HashTables*>(&storage)) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                tables->nflip >= 0 && tables->nflip <= tables->b,
                "search: nflip of the storage is %d, expected 0 to %d",
                tables->nflip,
                tables->b);
    }
}

/// Throws for parameters with which FAISS's search would not terminate, and for
/// parts whose vectors it would not find.
void check_parameters(const faiss::IndexBinary& storage) {
    check_flips<faiss::IndexBinaryHash>(storage);
    check_flips<faiss::IndexBinaryMultiHash>(storage);
    if (auto* graph = dynamic_cast<const faiss::IndexBinaryHNSW*>(&storage)) {
        check_ef(graph->hnsw.efSearch, "efSearch", "the storage");
    }
}

/// Takes the selector out of the parameters of a search of hash tables, which
/// refuse all parameters.
const faiss::IDSelector* take_selector(
        const faiss::IndexBinary& storage,
        const faiss::SearchParameters*& params,
        const char* where) {
    if (!is_hash_table(storage)) {
        return nullptr;
    }
    const faiss::IDSelector* sel = plain_selector(params, where);
    params = nullptr;
    return sel;
}

} // namespace

HashAndStorage::HashAndStorage(KernelHash* hash, faiss::IndexBinary* storage)
        : hash(hash), storage(storage) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            hash && storage, "the hash or the storage is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            padded_bits(hash->nbits) == storage->d,
            "the hash makes codes of %zu bits, but the storage takes codes of %d bits",
            8 * hash->code_size(),
            storage->d);
    FAISS_EXT_THROW_IF_NOT_FMT(
            distance_kind(storage) != DistanceKind::scaled,
            "%s cannot store the codes of a hash, which are compared by Hamming distance; use IndexBinaryFlat",
            AnyIndex(storage).class_name().c_str());
}

HashAndStorage::~HashAndStorage() {
    if (own_fields) {
        delete hash;
        delete storage;
    }
}

std::vector<uint8_t> HashAndStorage::encode_vectors(
        const VectorBatch& x) const {
    if (!x.is_sparse) {
        check_batch(x.n, x.dense, "encode");
    }
    // in 1.7.3 faiss::IndexBinaryHash reads eight bytes even if a code is
    // shorter
    std::vector<uint8_t> codes;
    codes.reserve(x.n * hash->code_size() + 8);
    codes.resize(x.n * hash->code_size());
    if (x.is_sparse) {
        hash->encode_sparse(x.sparse, codes.data());
    } else {
        hash->encode(x.n, x.dense, codes.data());
    }
    return codes;
}

void HashAndStorage::train_parts(const VectorBatch& x, bool verbose) {
    if (x.is_sparse) {
        hash->check_sparse_input(CanonicalVectors(x.sparse, "train"), "train");
    } else {
        hash->check_input(x.n, x.dense, "train");
    }
    check_training(storage, x.n, "train");
    std::unique_ptr<KernelHash> before;
    try {
        if (!hash->is_trained) {
            before = hash->clone();
            hash->verbose = verbose;
            if (x.is_sparse) {
                hash->train_sparse(x.sparse);
            } else {
                hash->train(x.n, x.dense);
            }
        }
        if (!storage->is_trained) {
            storage->verbose = verbose;
            storage->train(x.n, encode_vectors(x).data());
        }
    } catch (...) {
        if (before) {
            hash->assign(*before);
        }
        auto* ivf = dynamic_cast<faiss::IndexBinaryIVF*>(storage);
        if (ivf && !ivf->is_trained && ivf->own_fields) {
            ivf->quantizer->reset();
        }
        throw;
    }
}

void HashAndStorage::add_codes(
        idx_t n,
        const uint8_t* codes,
        const idx_t* xids) {
    check_codes(n, codes, xids ? "add_with_ids" : "add");
    check_new_ids(n, xids, "add_with_ids");
    check_counts_inside();
    check_interrupt();
    if (n > 0) {
        add_to_storage(*storage, n, codes, xids);
    }
}

void HashAndStorage::check_counts_inside() const {
    check_counts(storage);
}

void HashAndStorage::check_stored_ids(idx_t i0, idx_t ni) const {
    check_counts_inside();
    if (dynamic_cast<const faiss::IndexBinaryHash*>(storage) ||
        dynamic_cast<const faiss::IndexBinaryMultiHash*>(storage)) {
        throw_unsupported(
                AnyIndex(storage).class_name(),
                "reconstruct",
                "BFlat, BIVF, BHNSW and BPerm return codes");
    }
    const bool by_position =
            dynamic_cast<const faiss::IndexBinaryFlat*>(storage) ||
            dynamic_cast<const faiss::IndexBinaryHNSW*>(storage);
    if (by_position) {
        check_ids(i0, ni, storage->ntotal, "reconstruct");
    }
}

void HashAndStorage::check_codes(
        idx_t n,
        const uint8_t* codes,
        const char* where) const {
    check_batch(n, codes, where);
    const int used = hash->nbits % 8; // bits of the last byte
    for (idx_t i = 0; used > 0 && i < n; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                codes[(i + 1) * hash->code_size() - 1] >> used == 0,
                "%s: code %" PRId64
                " has ones beyond its first %d bits; expected zeros in the %d high bits of the last byte, as encode gives",
                where,
                int64_t(i),
                hash->nbits,
                8 - used);
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            storage->is_trained,
            "%s: the storage is not trained; call train first",
            where);
}

void HashAndStorage::search_codes(
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_codes(n, codes, "search");
    check_params_for(*storage, params, "search");
    const faiss::IDSelector* sel = take_selector(*storage, params, "search");
    check_params_supported(*storage, params, "search");
    check_parameters(*storage);
    check_counts_inside();
    check_k(k, "search");
    const auto search = [&](idx_t n,
                            const uint8_t* codes,
                            idx_t k,
                            int32_t* distances,
                            idx_t* labels) {
        if (n > 0 && is_ours(*storage)) {
            storage->search(n, codes, k, distances, labels, params);
            return;
        }
        for_timed_batches(n, [&](idx_t begin, idx_t end) {
            storage->search(
                    end - begin,
                    codes + begin * storage->code_size,
                    k,
                    distances + begin * k,
                    labels + begin * k,
                    params);
        });
    };
    if (sel) {
        search_selected(*storage, search, n, codes, k, distances, labels, *sel);
    } else {
        search(n, codes, k, distances, labels);
    }
}

void HashAndStorage::range_search_codes(
        idx_t n,
        const uint8_t* codes,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_codes(n, codes, "range_search");
    check_params_for(*storage, params, "range_search");
    check_range_search_supported(*storage, "range_search");
    const faiss::IDSelector* sel =
            take_selector(*storage, params, "range_search");
    check_params_supported(*storage, params, "range_search");
    check_parameters(*storage);
    check_counts_inside();
    if (is_ours(*storage) || n == 0) {
        storage->range_search(n, codes, radius, result, params);
        return;
    }
    if (sel && range_search_few(*storage, n, codes, radius, *sel, result)) {
        return;
    }
    std::vector<std::unique_ptr<faiss::RangeSearchResult>> parts;
    for_timed_batches(n, [&](idx_t begin, idx_t end) {
        auto part = std::make_unique<faiss::RangeSearchResult>(end - begin);
        storage->range_search(
                end - begin,
                codes + begin * storage->code_size,
                radius,
                part.get(),
                params);
        if (sel) {
            keep_selected(*part, *sel);
        }
        for (idx_t i = begin; i < end; i++) {
            result->lims[i] = part->lims[i - begin + 1] - part->lims[i - begin];
        }
        parts.push_back(std::move(part));
    });
    result->do_allocation();
    size_t to = 0;
    for (const auto& part : parts) {
        const size_t size = part->lims[part->nq];
        std::copy_n(part->labels, size, result->labels + to);
        std::copy_n(part->distances, size, result->distances + to);
        to += size;
    }
}

void HashAndStorage::check_mergeable(const HashAndStorage& other) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            &other != this && other.storage != storage,
            "an index cannot be merged with itself");
    check_counts_inside();
    other.check_counts_inside();
    hash->check_identical(*other.hash);
    check_merge(*storage, *other.storage);
}

} // namespace faiss_ext
