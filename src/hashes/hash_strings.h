// SPDX-License-Identifier: MIT
// Hashes in factory strings: `NAME512(...)`.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/hashes/KernelHash.h>

#include "core/string_token.h"

namespace faiss_ext {

/// Returns the accepted forms of a hash.
std::vector<std::string> hash_forms();

/// Returns whether a token begins with the name of a hash.
bool is_hash(const Token& part);

/// Makes a hash; an error marks its place in the string.
std::unique_ptr<KernelHash> make_hash(int d, const Token& part);

} // namespace faiss_ext
