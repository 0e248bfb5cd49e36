#include "indexes/hash_storage.h"

#include <cinttypes>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryIVF.h>

#include "core/check.h"
#include "core/errors.h"

namespace faiss_ext {

void check_hash_storage(
        const KernelHash* hash,
        const faiss::IndexBinary* storage) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            hash && storage, "the hash or the storage is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            hash->nbits == storage->d,
            "the hash has %d bits, the storage takes %d",
            hash->nbits,
            storage->d);
}

std::vector<uint8_t> encode_vectors(
        const KernelHash& hash,
        idx_t n,
        const float* x) {
    check_batch(n, x, "encode");
    // in 1.7.3 faiss::IndexBinaryHash reads eight bytes where a code may end
    std::vector<uint8_t> codes;
    codes.reserve(n * hash.code_size() + 8);
    codes.resize(n * hash.code_size());
    hash.encode(n, x, codes.data());
    return codes;
}

void train_hash_storage(
        KernelHash& hash,
        faiss::IndexBinary& storage,
        idx_t n,
        const float* x,
        bool verbose) {
    hash.check_input(n, x, "train");
    std::unique_ptr<KernelHash> before;
    try {
        if (!hash.is_trained) {
            before = hash.clone();
            hash.verbose = verbose;
            hash.train(n, x);
        }
        if (!storage.is_trained) {
            storage.verbose = verbose;
            storage.train(n, encode_vectors(hash, n, x).data());
        }
    } catch (...) {
        if (before) {
            hash.assign(*before);
        }
        auto* ivf = dynamic_cast<faiss::IndexBinaryIVF*>(&storage);
        if (ivf && !ivf->is_trained && ivf->own_fields) {
            ivf->quantizer->reset();
        }
        throw;
    }
}

idx_t add_to_storage(
        faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        const idx_t* xids) {
    check_codes(storage, n, codes, xids ? "add_with_ids" : "add");
    if (n > 0 && xids) {
        storage.add_with_ids(n, codes, xids);
    } else if (n > 0) {
        storage.add(n, codes);
    }
    return storage.ntotal;
}

void check_ids(const faiss::IndexBinary& storage, idx_t i0, idx_t ni) {
    const bool by_position =
            dynamic_cast<const faiss::IndexBinaryFlat*>(&storage) ||
            dynamic_cast<const faiss::IndexBinaryHNSW*>(&storage);
    if (by_position) {
        check_ids(i0, ni, storage.ntotal, "reconstruct");
    }
}

void check_codes(
        const faiss::IndexBinary& storage,
        idx_t n,
        const void* codes,
        const char* where) {
    check_batch(n, codes, where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            storage.is_trained,
            "%s: the storage is not trained; call train first",
            where);
}

void search_storage(
        const faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    check_codes(storage, n, codes, "search");
    FAISS_EXT_THROW_IF_NOT_FMT(
            k > 0,
            "search: k is %" PRId64 ", expected a positive number",
            int64_t(k));
    if (n > 0) {
        storage.search(n, codes, k, distances, labels, params);
    }
}

} // namespace faiss_ext
