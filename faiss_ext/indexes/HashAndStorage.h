// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/hashes/KernelHash.h>

namespace faiss_ext {

/// A hash and the binary index that stores its codes. IndexKernelHash and
/// IndexBinaryKernelHash derive from it, and from a base class of FAISS.
struct HashAndStorage {
    KernelHash* hash = nullptr;
    faiss::IndexBinary* storage = nullptr;
    /// whether the destructor deletes hash and storage
    bool own_fields = false;

    /// @param storage  an index of 8 * hash->code_size() bits
    HashAndStorage(KernelHash* hash, faiss::IndexBinary* storage);
    HashAndStorage() = default;
    HashAndStorage(const HashAndStorage&) = delete;
    HashAndStorage& operator=(const HashAndStorage&) = delete;
    ~HashAndStorage();

   protected:
    /// Trains the hash and the storage if they are not trained yet. On error,
    /// both stay as they were.
    void train_parts(const VectorBatch& x, bool verbose);

    /// Returns the codes of vectors.
    std::vector<uint8_t> encode_vectors(const VectorBatch& x) const;

    /** Adds codes, with ids if xids is not null.
     *
     * Interrupts are checked before the first code is added, and while a graph
     * is built. An interrupted graph is restored to its previous state.
     */
    void add_codes(idx_t n, const uint8_t* codes, const idx_t* xids);

    /// Searches for codes; writes nothing for n = 0. Interrupts are checked
    /// between some of the queries.
    void search_codes(
            idx_t n,
            const uint8_t* codes,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const;

    /// Finds all codes at a distance below the radius.
    void range_search_codes(
            idx_t n,
            const uint8_t* codes,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params) const;

    /// Throws if the storage is not trained, if n and codes do not match, or if
    /// codes have ones beyond nbits.
    void check_codes(idx_t n, const uint8_t* codes, const char* where) const;

    /// Throws if a part of the storage has another number of codes.
    void check_counts_inside() const;

    /// Throws unless ids i0 to i0 + ni - 1 exist, for storages whose ids are
    /// positions.
    void check_stored_ids(idx_t i0, idx_t ni) const;

    /// Throws unless the codes of another index can be added to these.
    void check_mergeable(const HashAndStorage& other) const;
};

} // namespace faiss_ext
