// SPDX-License-Identifier: MIT
// Hashes in factory strings: `NAME512(...)`.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/hashes/KernelHash.h>

#include "core/string_token.h"

namespace faiss_ext {

/// What may stand where a hash is expected.
std::vector<std::string> hash_forms();

/// Whether a part begins with the name of a hash.
bool is_hash(const Token& part);

/// Throws an error that marks the place.
std::unique_ptr<KernelHash> make_hash(int d, const Token& part);

} // namespace faiss_ext
