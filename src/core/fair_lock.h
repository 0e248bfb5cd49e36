// SPDX-License-Identifier: MIT
// A lock for objects that threads read and change at the same time.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace faiss_ext {

/** Any number of threads read, or one makes a change. Nobody starves:
 * - A thread that wants to read waits for at most one change, and for the
 *   readers that are inside before that change.
 * - A thread that wants to make a change waits only for readers that came
 *   before it, and for other changes.
 *
 * std::shared_mutex gives no such promise: with glibc, changes wait as long as
 * one reader follows another.
 *
 * While a long read is inside, other readers do not wait for the changes that
 * wait for it. Long reads must be rare, since changes wait for all readers that
 * come in meanwhile.
 */
class FairLock {
   public:
    void lock_shared() {
        std::unique_lock<std::mutex> hold(mutex);
        if (!is_changing && (changes_waiting == 0 || long_reads > 0)) {
            readers++;
            return;
        }
        readers_waiting++;
        const uint64_t last = admissions;
        may_read.wait(hold, [&] { return admissions != last; });
    }

    void unlock_shared() {
        const std::lock_guard<std::mutex> hold(mutex);
        leave();
    }

    void lock_shared_for_long() {
        lock_shared();
        const std::lock_guard<std::mutex> hold(mutex);
        long_reads++;
        admit();
    }

    void unlock_shared_for_long() {
        const std::lock_guard<std::mutex> hold(mutex);
        long_reads--;
        leave();
    }

    void lock() {
        std::unique_lock<std::mutex> hold(mutex);
        changes_waiting++;
        may_change.wait(hold, [&] { return !is_changing && readers == 0; });
        changes_waiting--;
        is_changing = true;
    }

    void unlock() {
        const std::lock_guard<std::mutex> hold(mutex);
        is_changing = false;
        admit();
        if (readers == 0) {
            may_change.notify_one();
        }
    }

   private:
    std::mutex mutex; ///< of the members
    std::condition_variable may_read, may_change;
    int readers = 0;    ///< inside
    int long_reads = 0; ///< those of them that are long
    bool is_changing = false;
    int readers_waiting = 0, changes_waiting = 0;
    uint64_t admissions = 0;

    /// Lets all waiting readers in.
    void admit() {
        if (readers_waiting > 0) {
            readers += readers_waiting;
            readers_waiting = 0;
            admissions++;
            may_read.notify_all();
        }
    }

    void leave() {
        if (--readers == 0) {
            may_change.notify_one();
        }
    }
};

} // namespace faiss_ext
