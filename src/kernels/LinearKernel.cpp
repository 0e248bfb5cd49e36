// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/LinearKernel.h>

#include "core/check.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

void LinearKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::dot, n, x, m, y, d, out, m);
}

void LinearKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::squared_l2, n, x, m, y, d, out, m);
}

void LinearKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_finite(n, x, d, where);
    check_self_values(n, x, d, where, least_self_value);
}

std::optional<SharedSum> LinearKernel::shared_sum(
        faiss::MetricType metric) const {
    return sum_of_kernel(*this, metric, false);
}

} // namespace faiss_ext
