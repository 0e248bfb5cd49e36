// SPDX-License-Identifier: MIT
// Checks of packed bits.

#pragma once

#include <cstdint>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// Throws if one of n codes has ones beyond its first d bits. `where` names the
/// caller.
void check_bits(idx_t n, int d, const uint8_t* codes, const char* where);

} // namespace faiss_ext
