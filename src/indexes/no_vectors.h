// SPDX-License-Identifier: MIT
// The error of indexes that keep only codes, when asked for vectors.

#pragma once

#include "core/errors.h"

namespace faiss_ext {

[[noreturn]] inline void throw_no_vectors(const char* index) {
    FAISS_EXT_THROW_FMT(
            "%s: vectors cannot be reconstructed from their codes", index);
}

} // namespace faiss_ext
