// SPDX-License-Identifier: MIT
// Random samples of a training set.

#pragma once

#include <cstdint>
#include <vector>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Draws k of the numbers below n without replacement, in random order; all of
/// them if k >= n.
std::vector<idx_t> sample_ids(idx_t n, idx_t k, uint64_t seed);

/// Copies these rows of x; a row has d components.
std::vector<float> gather_rows(
        const std::vector<idx_t>& ids,
        const float* x,
        size_t d);

} // namespace faiss_ext
