// SPDX-License-Identifier: MIT
// The matrix product of whatever BLAS is linked, to compare with.

#pragma once

#include "bench_common.h"

extern "C" int sgemm_(
        const char* transa,
        const char* transb,
        const int* m,
        const int* n,
        const int* k,
        const float* alpha,
        const float* a,
        const int* lda,
        const float* b,
        const int* ldb,
        const float* beta,
        float* c,
        const int* ldc);

namespace faiss_ext::bench {

constexpr idx_t batch = 1000; ///< vectors

/// Of a batch of vectors of range(0) dimensions and range(1) others.
inline void blas_sgemm(benchmark::State& state) {
    const int d = int(state.range(0)), m = int(state.range(1)), n = batch;
    const auto x = random_normals(n, d, 1), y = random_normals(m, d, 2);
    std::vector<float> out(batch * m);
    const float one = 1, zero = 0;
    for (auto _ : state) {
        sgemm_("T",
               "N",
               &m,
               &n,
               &d,
               &one,
               y.data(),
               &d,
               x.data(),
               &d,
               &zero,
               out.data(),
               &m);
    }
    set_flops(state, 2.0 * n * m * d);
}

} // namespace faiss_ext::bench
