// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/HashAndStorage.h>

namespace faiss_ext {

/** A hash in front of any binary index, as a binary index. It takes vectors as
 * well as codes.
 *
 * Functions that take codes, as in the base class, pass them to the storage.
 * Their counterparts for vectors, dense or sparse, encode the vectors first. d
 * is the number of bits; hash->d_in is the dimension of the vectors. Distances
 * are Hamming distances in bits; hash->kernel_estimate turns them into kernel
 * values.
 *
 * Vectors are checked before anything is changed. If the storage does not
 * support an operation, the storage's own exception is thrown; for example,
 * faiss::IndexBinaryHash has no reconstruct.
 */
struct IndexBinaryKernelHash : faiss::IndexBinary, HashAndStorage {
    /// @param storage  an index of 8 * hash->code_size() bits
    IndexBinaryKernelHash(KernelHash* hash, faiss::IndexBinary* storage);
    IndexBinaryKernelHash() = default;

    /// Trains the storage.
    void train(idx_t n, const uint8_t* codes) override;

    /// Trains the hash and the storage, unless they are trained already.
    void train(idx_t n, const float* x);
#ifndef SWIG
    void train(const SparseVectors& x);
#endif

    void add(idx_t n, const uint8_t* codes) override;
    void add(idx_t n, const float* x);
#ifndef SWIG
    void add(const SparseVectors& x);
#endif

    void add_with_ids(idx_t n, const uint8_t* codes, const idx_t* xids)
            override;
    void add_with_ids(idx_t n, const float* x, const idx_t* xids);
#ifndef SWIG
    void add_with_ids(const SparseVectors& x, const idx_t* xids);
#endif

    /// params are passed to the storage.
    void search(
            idx_t n,
            const uint8_t* codes,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
#ifndef SWIG
    void search(
            const SparseVectors& x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const;
#endif

    void range_search(
            idx_t n,
            const uint8_t* codes,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;
    void range_search(
            idx_t n,
            const float* x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const;
#ifndef SWIG
    void range_search(
            const SparseVectors& x,
            int radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const;
#endif

    void reset() override;
    size_t remove_ids(const faiss::IDSelector& sel) override;
    void reconstruct(idx_t key, uint8_t* recons) const override;
    void reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons) const override;
    void merge_from(faiss::IndexBinary& other, idx_t add_id = 0) override;
    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override;
};

} // namespace faiss_ext
