// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace faiss_ext {

/// Progress callback: `done` of `total` steps of a task, such as "graph" or
/// "k-means", are done. An exception aborts the call.
using ProgressFunction =
        std::function<void(const char* task, size_t done, size_t total)>;

/** Reports the progress of long calls of this thread to a function, as long as
 * the scope lives.
 *
 *     ProgressScope scope([](const char* task, size_t done, size_t total) {
 *         printf("%s: %zu of %zu\n", task, done, total);
 *     });
 *     index->train(n, x);
 *     index->add(n, x);
 *
 * Training, adding, encoding, mapping and the building of graphs and lists
 * report their progress. A call may have several tasks, one after the other,
 * and `done` ascends within a task.
 *
 * The function is called on the thread that made the scope. At least `interval`
 * passes between two reports of a task. A task that was reported once is also
 * reported at its end. An exception of the function aborts the call, as an
 * interrupt does.
 *
 * Calls of other threads are not reported. If a thread has several scopes, only
 * the newest one gets reports. Scopes may end in any order, on any thread, and
 * in the function itself. When a scope ends, a call of the function that
 * another thread has begun may still be running.
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
