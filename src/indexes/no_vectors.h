// SPDX-License-Identifier: MIT
// The error of indexes that keep only codes, when asked for vectors.

#pragma once

#include <string>

#include "core/errors.h"

namespace faiss_ext {

[[noreturn]] inline void throw_no_vectors(const char* index) {
    throw UnsupportedError(
            std::string(index) +
            ": vectors cannot be reconstructed from their codes");
}

} // namespace faiss_ext
