// SPDX-License-Identifier: MIT
// Reports the progress of a call to a ProgressScope.

#pragma once

#include <memory>

#include <faiss_ext/core/progress.h>

namespace faiss_ext {

/** A task of a long call. It reports to the scope of its thread, if there is
 * one.
 *
 * A task inside another task of the same thread is silent; the outer one
 * reports the progress.
 */
class Progress {
   public:
    /// @param task  must outlive this object; null: silent
    Progress(const char* task, size_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Reports progress; call it on the thread that made the object. The last
    /// call passes the total.
    void at(size_t done);

   private:
    std::shared_ptr<ProgressScope::State> scope; ///< null if silent
    const char* task;
    size_t total;
    bool is_shown = false;
};

} // namespace faiss_ext
