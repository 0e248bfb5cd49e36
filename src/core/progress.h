// SPDX-License-Identifier: MIT
// What tells a ProgressScope how far a call is.

#pragma once

#include <memory>

#include <faiss_ext/core/progress.h>

namespace faiss_ext {

/** A task of a long call. Tells the scope of its thread, if there is one.
 *
 * Inside another task of the same thread it is silent: the outer one says how
 * far the call is.
 */
class Progress {
   public:
    /// @param task  lives as long as this; null: silent
    Progress(const char* task, size_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// On the thread that made it; `done` of the last call is the total.
    void at(size_t done);

   private:
    std::shared_ptr<ProgressScope::State> scope; ///< null if silent
    const char* task;
    size_t total;
    bool is_shown = false;
};

} // namespace faiss_ext
