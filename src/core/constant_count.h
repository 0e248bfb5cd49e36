// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>

namespace faiss_ext {

/// Calls f(std::integral_constant<size_t, count>()), for counts of 1 to Most.
/// f is compiled for each of them.
template <size_t Most, class F>
void with_constant_count(size_t count, const F& f) {
    if constexpr (Most > 0) {
        if (count == Most) {
            f(std::integral_constant<size_t, Most>());
        } else {
            with_constant_count<Most - 1>(count, f);
        }
    }
}

} // namespace faiss_ext
