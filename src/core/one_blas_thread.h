// SPDX-License-Identifier: MIT
#pragma once

#include <omp.h>

namespace faiss_ext {

/// Restricts a BLAS built with OpenMP to one thread. The last digits would
/// depend on how it divides sums among threads.
struct OneBlasThread {
    const int before = omp_get_max_threads();
    OneBlasThread() {
        omp_set_num_threads(1);
    }
    ~OneBlasThread() {
        omp_set_num_threads(before);
    }
};

} // namespace faiss_ext
