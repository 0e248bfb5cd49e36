#include "hash_storage.h"

#include <cinttypes>

#include <faiss/impl/FaissAssert.h>

#include "check.h"

namespace faiss_ext {

void check_hash_storage(
        const KernelHash* hash,
        const faiss::IndexBinary* storage) {
    FAISS_THROW_IF_NOT_MSG(hash && storage, "the hash or the storage is null");
    FAISS_THROW_IF_NOT_FMT(
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
    const bool hash_was_trained = hash.is_trained;
    if (!hash.is_trained) {
        hash.verbose = verbose;
        hash.train(n, x);
    }
    if (!storage.is_trained) {
        storage.verbose = verbose;
        try {
            storage.train(n, encode_vectors(hash, n, x).data());
        } catch (...) {
            // another call must choose anew
            hash.is_trained = hash_was_trained;
            throw;
        }
    }
}

void check_codes(
        const faiss::IndexBinary& storage,
        idx_t n,
        const void* codes,
        const char* where) {
    check_batch(n, codes, where);
    FAISS_THROW_IF_NOT_FMT(
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
    FAISS_THROW_IF_NOT_FMT(
            k > 0,
            "search: k is %" PRId64 ", expected a positive number",
            int64_t(k));
    if (n > 0) {
        storage.search(n, codes, k, distances, labels, params);
    }
}

} // namespace faiss_ext
