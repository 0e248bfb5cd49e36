// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/JaccardKernel.h>

#include <algorithm>

#include "kernels/overlap.h"

namespace faiss_ext {

using simd::PairOp;

void JaccardKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    // max(a, b) = a + b - min(a, b)
    const auto value = [](float shared, float sum) {
        return sum > 0 ? shared / (sum - shared) : 1.0f;
    };
    overlap_block(PairOp::intersection, n, x, m, y, d, out, value);
}

void JaccardKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    // 2 max(a, b) = a + b + |a - b|
    const auto distance = [](float apart, float sum) {
        return sum > 0 ? std::min(2.0f, 4 * (apart / (sum + apart))) : 0.0f;
    };
    overlap_block(PairOp::l1, n, x, m, y, d, out, distance);
}

void JaccardKernel::self_values(size_t n, const float*, size_t, float* out)
        const {
    std::fill_n(out, n, 1.0f);
}

void JaccardKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_sums(n, x, d, where);
}

std::optional<SharedSum> JaccardKernel::shared_sum(
        faiss::MetricType metric) const {
    // k = s / (x + y - s) for the sum s and vectors that sum up to x and y
    return sum_of_overlap(metric, [](double k) { return k / (1 + k); });
}

} // namespace faiss_ext
