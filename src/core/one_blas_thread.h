// SPDX-License-Identifier: MIT
#pragma once

#include <omp.h>

namespace faiss_ext {

/// Has a BLAS that is built with OpenMP use one thread: how it divides its sums
/// among threads would show in the last digits.
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
