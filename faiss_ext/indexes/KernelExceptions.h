// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

namespace faiss_ext {

/** Exceptions of a kernel, and queries that it refuses, inside FAISS's own
 * loops (faiss::IndexHNSW and IndexRefine over IndexFlatKernel or
 * IndexKernelHash), which do not let exceptions out: there the pair counts as
 * farthest, as do all pairs that are looked at after it in calls that a
 * KernelExceptionGuard watches. Each of these indexes has one.
 */
struct KernelExceptions {
    KernelExceptions();
    KernelExceptions(const KernelExceptions&);            ///< a new one
    KernelExceptions& operator=(const KernelExceptions&); ///< keeps its own
    ~KernelExceptions();

    void record(std::exception_ptr exception);

    /// Whether there was one in a call that is watched.
    bool has_failed() const;

   private:
    friend struct KernelExceptionGuard;
    struct State;
    std::unique_ptr<State> state;
};

/** Rethrows exceptions of kernels to the caller of one of FAISS's own indexes:
 *
 *     KernelExceptionGuard guard(index);
 *     index->search(...);
 *     guard.rethrow();
 *
 * The index is searched for IndexFlatKernel and IndexKernelHash through
 * IndexIDMap, IndexPreTransform, IndexRefine, IndexHNSW, IndexShards and
 * IndexReplicas. The constructor throws if an IndexRefine has a k_factor below
 * 1, or if an index and its parts have not the same number of vectors. The
 * Python package guards every call; IndexHNSWKernel guards its own. After an
 * exception in add, a faiss::IndexHNSW has links that are of no use.
 */
struct KernelExceptionGuard {
    explicit KernelExceptionGuard(const faiss::Index* index);
    /// Binary indexes have no kernels to watch; they are checked only.
    explicit KernelExceptionGuard(const faiss::IndexBinary* index);
    ~KernelExceptionGuard();
    KernelExceptionGuard(const KernelExceptionGuard&) = delete;
    KernelExceptionGuard& operator=(const KernelExceptionGuard&) = delete;

    /// Ends the watch, and throws the last exception since the guard was made,
    /// if there was one.
    void rethrow();

   private:
    std::exception_ptr end();

    std::vector<KernelExceptions*> watched;
    std::vector<size_t> counts; ///< when the guard was made
};

} // namespace faiss_ext
