// SPDX-License-Identifier: MIT
// Strings of the kernels without a parameter, of which tests make their lists.

#pragma once

#include <string>
#include <vector>

namespace faiss_ext_test {

/// Kernels of vectors with components >= 0.
inline const std::vector<std::string> histogram_kernels =
        {"chi2", "dice", "hellinger", "intersection", "jaccard", "js"};

/// All kernels without a parameter.
inline const std::vector<std::string> plain_kernels = {
        "chi2",
        "cosine",
        "dice",
        "hellinger",
        "intersection",
        "jaccard",
        "js",
        "linear"};

} // namespace faiss_ext_test
