// SPDX-License-Identifier: MIT
// Maps in factory strings: `NAME2(...)`.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/maps/FeatureMap.h>

#include "core/string_token.h"

namespace faiss_ext {

/// What may stand where a map is expected.
std::vector<std::string> map_forms();

/// Whether a part begins with the name of a map.
bool is_map(const Token& part);

/// Throws an error that marks the place.
std::unique_ptr<FeatureMap> make_map(int d, const Token& part);

} // namespace faiss_ext
