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

} // namespace faiss_ext
