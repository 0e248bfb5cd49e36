// SPDX-License-Identifier: MIT
// Parallel loops over blocks, with exceptions and interrupts.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#include <omp.h>

#include <faiss/impl/AuxIndexStructures.h>

#include <faiss_ext/core/compat.h>

#include "core/coarse_time.h"
#include "core/errors.h"
#include "core/progress.h"

namespace faiss_ext {

/// Throws if the user requested an interrupt.
inline void check_interrupt_now() {
    if (faiss::InterruptCallback::is_interrupted()) {
        throw InterruptedError();
    }
}

/// Like check_interrupt_now, but checks at most ten times a second, because in
/// Python the check needs the interpreter lock.
inline void check_interrupt() {
    thread_local int64_t next_time = 0;
    const int64_t now = coarse_milliseconds();
    if (now >= next_time) {
        next_time = now + 100;
        check_interrupt_now();
    }
}

/// Checks for interrupts only every few steps, for steps that are shorter than
/// the check.
class Steps {
    uint32_t count = 0;

   public:
    void next() {
        if (++count % 4096 == 0) {
            check_interrupt();
        }
    }
};

/** Makes a child process that is forked later use one thread. OpenMP's threads
 * do not survive a fork, and libgomp would wait for them forever.
 */
void single_thread_after_fork();

/** Calls fn(begin, end) for consecutive blocks of [0, n), on all threads.
 *
 * The first exception of a block, or an interrupt (Ctrl-C in Python), ends the
 * loop and is rethrown on the calling thread. Progress is reported (progress.h)
 * unless the task is null.
 */
template <class F>
void parallel_blocks(const char* task, idx_t n, idx_t block, F&& fn) {
    const idx_t nblocks = (n + block - 1) / block;
    if (nblocks <= 1) { // a parallel region takes longer than a small block
        check_interrupt();
        if (nblocks == 1) {
            fn(idx_t(0), n);
        }
        return;
    }
    single_thread_after_fork();
    Progress progress(task, n);
    std::atomic<idx_t> num_done{0};
    std::exception_ptr error;
    std::atomic<bool> stop{false};
#pragma omp parallel for schedule(dynamic)
    for (idx_t b = 0; b < nblocks; b++) {
        if (stop) {
            continue; // OpenMP loops cannot break
        }
        try {
            if (omp_get_thread_num() == 0) {
                check_interrupt();
                progress.at(num_done);
            }
            const idx_t end = std::min(n, (b + 1) * block);
            fn(b * block, end);
            if (task) {
                num_done += end - b * block;
            }
        } catch (...) {
#pragma omp critical(faiss_ext_parallel_blocks)
            if (!error) {
                error = std::current_exception();
            }
            stop = true;
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
    progress.at(n);
}

/// parallel_blocks without progress reports.
template <class F>
void parallel_blocks(idx_t n, idx_t block, F&& fn) {
    parallel_blocks(nullptr, n, block, std::forward<F>(fn));
}

} // namespace faiss_ext
