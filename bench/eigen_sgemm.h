// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace faiss_ext::bench {

/// c = a b' by Eigen with all instructions of this machine: a is n x d, b is m
/// x d, c is n x m, row by row.
void eigen_sgemm(
        size_t n,
        size_t m,
        size_t d,
        const float* a,
        const float* b,
        float* c);

} // namespace faiss_ext::bench
