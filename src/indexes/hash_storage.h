// A hash and the binary index that stores its codes: what
// IndexBinaryKernelHash and IndexKernelHash have in common.

#pragma once

#include <vector>

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/// Throws unless the storage takes the hash's codes.
void check_hash_storage(
        const KernelHash* hash,
        const faiss::IndexBinary* storage);

/// The codes of n vectors.
std::vector<uint8_t> encode_vectors(
        const KernelHash& hash,
        idx_t n,
        const float* x);

/// Trains what is not trained yet. What fails leaves both as they were.
void train_hash_storage(
        KernelHash& hash,
        faiss::IndexBinary& storage,
        idx_t n,
        const float* x,
        bool verbose);

/// Adds codes to the storage, with ids if xids is not null; its new ntotal.
idx_t add_to_storage(
        faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        const idx_t* xids);

/// Throws unless ids i0 to i0 + ni - 1 are there, for storages whose ids are
/// their positions.
void check_ids(const faiss::IndexBinary& storage, idx_t i0, idx_t ni);

/// Throws unless the storage is trained, and n and codes agree.
void check_codes(
        const faiss::IndexBinary& storage,
        idx_t n,
        const void* codes,
        const char* where);

/// Searches the storage for codes; answers nothing for n = 0.
void search_storage(
        const faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params);

} // namespace faiss_ext
