// SPDX-License-Identifier: MIT
// A lock for objects that threads read and change at the same time.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

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
        uint64_t last;
        {
            const std::lock_guard<std::mutex> hold(mutex);
            if (!is_changing && (changes_waiting == 0 || long_reads > 0)) {
                readers++;
                return;
            }
            readers_waiting++;
            last = admissions;
        }
        const auto is_admitted = [&] { return admissions != last; };
        if (!comes_soon(is_admitted)) {
            std::unique_lock<std::mutex> hold(mutex);
            may_read.wait(hold, is_admitted);
        }
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
        const auto is_free = [&] { return !is_changing && readers == 0; };
        std::unique_lock<std::mutex> hold(mutex);
        changes_waiting++;
        if (!is_free()) {
            hold.unlock();
            comes_soon(is_free);
            hold.lock();
        }
        may_change.wait(hold, is_free);
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
    // The members change under the mutex. Atomic ones are read without it.
    std::mutex mutex;
    std::condition_variable may_read, may_change;
    std::atomic<int> readers{0}; ///< inside
    int long_reads = 0;          ///< long ones among them
    std::atomic<bool> is_changing{false};
    int readers_waiting = 0, changes_waiting = 0;
    std::atomic<uint64_t> admissions{0};

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

    /// Asks for a short time whether a condition holds. Most steps are shorter
    /// than it takes to wake a thread up.
    template <class Condition>
    static bool comes_soon(Condition&& condition) {
        using Clock = std::chrono::steady_clock;
        const auto end = Clock::now() + std::chrono::microseconds(100);
        while (!condition()) {
            if (Clock::now() > end) {
                return false;
            }
            std::this_thread::yield();
        }
        return true;
    }
};

} // namespace faiss_ext
