// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace faiss_ext {

/// Is told that `done` of `total` steps of a task, such as "graph" or
/// "k-means", are done. What it throws ends the call.
using ProgressFunction =
        std::function<void(const char* task, size_t done, size_t total)>;

/** Has a function told how far long calls of this thread are, for as long as
 * the scope lives.
 *
 *     ProgressScope scope([](const char* task, size_t done, size_t total) {
 *         printf("%s: %zu of %zu\n", task, done, total);
 *     });
 *     index->train(n, x);
 *     index->add(n, x);
 *
 * Training, adding, encoding, mapping and the building of graphs and lists tell
 * it; a call may have several tasks, one after the other. `done` ascends within
 * a task. The function is called on the thread that made the scope, a task that
 * was shown once is told its end, and in between at least `interval` lies
 * between two calls. An exception of the function ends the call as an interrupt
 * does. Calls of other threads are not told. Of several scopes of a thread the
 * one that was made last is told. They may end in any order, on any thread, and
 * in the function itself; a call that another thread has begun by then may
 * still be under way.
 */
class ProgressScope {
   public:
    explicit ProgressScope(
            ProgressFunction function,
            std::chrono::milliseconds interval =
                    std::chrono::milliseconds(100));
    ~ProgressScope();
    ProgressScope(const ProgressScope&) = delete;
    ProgressScope& operator=(const ProgressScope&) = delete;

   private:
    friend class Progress;
    struct State;
    std::shared_ptr<State> state;
};

} // namespace faiss_ext
