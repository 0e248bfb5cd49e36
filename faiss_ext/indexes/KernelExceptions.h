// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

namespace faiss_ext {

/** Collects exceptions of a kernel, and queries that it refuses, inside FAISS's
 * own loops, which do not let exceptions out.
 *
 * These loops are faiss::IndexHNSW and IndexRefine over IndexFlatKernel or
 * IndexKernelHash. The pair that failed counts as farthest. In calls that a
 * KernelExceptionGuard watches, so do all pairs that are compared after it.
 * Each of these indexes has one such object.
 */
struct KernelExceptions {
    KernelExceptions();
    KernelExceptions(const KernelExceptions&); ///< starts with a new state
    /// keeps its own state
    KernelExceptions& operator=(const KernelExceptions&);
    ~KernelExceptions();

    void record(std::exception_ptr exception);

    /// Whether an exception occurred in a watched call.
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
 * The guard finds IndexFlatKernel and IndexKernelHash inside IndexIDMap,
 * IndexPreTransform, IndexRefine, IndexHNSW, IndexShards and IndexReplicas. The
 * constructor throws if an index and its parts differ in the number of vectors,
 * or if members do not match, such as a k_factor below 1 or a graph of another
 * size.
 *
 * The classes of this library guard their own calls. In Python there is no
 * guard for FAISS's classes. After an exception in add, a faiss::IndexHNSW has
 * useless links.
 */
struct KernelExceptionGuard {
    explicit KernelExceptionGuard(const faiss::Index* index);
    ~KernelExceptionGuard();
    KernelExceptionGuard(const KernelExceptionGuard&) = delete;
    KernelExceptionGuard& operator=(const KernelExceptionGuard&) = delete;

    /// Ends the watch, and throws the last exception since the guard was made,
    /// if there was one.
    void rethrow();

   private:
    std::exception_ptr end();

    std::vector<KernelExceptions*> watched;
    /// counts of exceptions when the guard was made
    std::vector<size_t> counts;
};

} // namespace faiss_ext
