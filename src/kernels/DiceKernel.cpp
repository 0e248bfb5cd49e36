// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/DiceKernel.h>

#include <algorithm>

#include "kernels/overlap.h"

namespace faiss_ext {

using simd::PairOp;

void DiceKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    const auto value = [](float shared, float sum) {
        return sum > 0 ? 2 * (shared / sum) : 1.0f;
    };
    overlap_block(PairOp::intersection, n, x, m, y, d, out, value);
}

void DiceKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    // 2 min(a, b) = a + b - |a - b|
    const auto distance = [](float apart, float sum) {
        return sum > 0 ? std::min(2.0f, 2 * (apart / sum)) : 0.0f;
    };
    overlap_block(PairOp::l1, n, x, m, y, d, out, distance);
}

} // namespace faiss_ext
