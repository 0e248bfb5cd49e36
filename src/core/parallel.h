// SPDX-License-Identifier: MIT
// Parallel loops over blocks, with exceptions and interrupts.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>

#include <omp.h>

#include <faiss/impl/AuxIndexStructures.h>

#include <faiss_ext/core/compat.h>

#include "core/errors.h"

namespace faiss_ext {

/// Throws if the user wants to interrupt. Asks at most ten times a second: in
/// Python the answer needs the interpreter lock.
inline void check_interrupt() {
    using Clock = std::chrono::steady_clock;
    thread_local Clock::time_point next_time;
    const auto now = Clock::now();
    if (now >= next_time) {
        next_time = now + std::chrono::milliseconds(100);
        FAISS_EXT_THROW_IF_NOT_MSG(
                !faiss::InterruptCallback::is_interrupted(),
                "computation interrupted");
    }
}

/** Has a child process that this one forks from now on use one thread: those of
 * OpenMP do not survive a fork, and libgomp would wait for them without end.
 */
void survive_forks();

/** Calls fn(begin, end) for consecutive blocks of [0, n), on all threads.
 *
 * The first exception thrown by a block ends the loop and is thrown again on
 * the calling thread; so is an interrupt (Ctrl-C in Python).
 */
template <class F>
void parallel_blocks(idx_t n, idx_t block, F&& fn) {
    const idx_t nblocks = (n + block - 1) / block;
    if (nblocks <= 1) { // a parallel region takes longer than a small block
        check_interrupt();
        if (nblocks == 1) {
            fn(idx_t(0), n);
        }
        return;
    }
    survive_forks();
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
            }
            fn(b * block, std::min(n, (b + 1) * block));
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
}

} // namespace faiss_ext
