// SPDX-License-Identifier: MIT
#include "core/parallel.h"

#include <pthread.h>

namespace faiss_ext {

void single_thread_after_fork() {
    static const int registered =
            pthread_atfork(nullptr, nullptr, [] { omp_set_num_threads(1); });
    (void)registered;
}

} // namespace faiss_ext
