// SPDX-License-Identifier: MIT
// The processor time of a thread.

#pragma once

#include <ctime>

namespace faiss_ext {

/// The processor time of the calling thread, in seconds. Unlike the time of
/// day, it does not depend on other programs.
inline double thread_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

} // namespace faiss_ext
