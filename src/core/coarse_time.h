// SPDX-License-Identifier: MIT
// A clock that is quick to read.

#pragma once

#include <cstdint>
#include <ctime>

namespace faiss_ext {

/// Milliseconds since some point in the past. The clock advances every few
/// milliseconds only, and is read several times as fast as a precise one.
inline int64_t coarse_milliseconds() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

} // namespace faiss_ext
