// SPDX-License-Identifier: MIT
// Steps of threads that share an IndexConcurrent.

#pragma once

#include <faiss_ext/indexes/index_tree.h>

#include "core/fair_lock.h"

namespace faiss_ext {

/** Holds the lock of an IndexConcurrent; does nothing for other indexes or for
 * null.
 *
 * A step inside another one of the same thread and index does nothing, so a
 * function may make steps and call others that do. A change inside a reading
 * step would wait for itself; the constructor throws.
 */
class IndexStep {
   public:
    enum class Kind { read, long_read, change };

    IndexStep(const AnyIndex& index, Kind kind);
    ~IndexStep();
    IndexStep(const IndexStep&) = delete;
    IndexStep& operator=(const IndexStep&) = delete;

   private:
    FairLock* lock = nullptr; ///< null: held by an outer step, or not needed
    Kind kind;
    const IndexStep* outer = nullptr;

    /// The innermost step of this thread that holds a lock.
    static thread_local const IndexStep* innermost;
};

/// A step in which the index does not change. Other reading steps run at the
/// same time.
struct ReadingStep : IndexStep {
    explicit ReadingStep(const AnyIndex& index)
            : IndexStep(index, Kind::read) {}
};

/// A reading step that may take seconds. Other readers do not wait for it, only
/// changes do.
struct LongReadingStep : IndexStep {
    explicit LongReadingStep(const AnyIndex& index)
            : IndexStep(index, Kind::long_read) {}
};

/// A step in which no other step runs.
struct ChangingStep : IndexStep {
    explicit ChangingStep(const AnyIndex& index)
            : IndexStep(index, Kind::change) {}
};

} // namespace faiss_ext
