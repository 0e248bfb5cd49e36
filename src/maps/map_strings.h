// SPDX-License-Identifier: MIT
// Maps in factory strings: `NAME2(...)`.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/maps/FeatureMap.h>

#include "core/string_token.h"

namespace faiss_ext {

/// Returns the accepted forms of a map.
std::vector<std::string> map_forms();

/// Returns whether a token begins with the name of a map.
bool is_map(const Token& part);

/// Makes a map; an error marks its place in the string.
std::unique_ptr<FeatureMap> make_map(int d, const Token& part);

} // namespace faiss_ext
