// SPDX-License-Identifier: MIT
// Formats numbers for the strings that describe objects.

#pragma once

#include <charconv>
#include <string>

namespace faiss_ext {

/// Returns the shortest decimal that reads back as the same number.
inline std::string shortest(double v) {
    char buffer[32];
    return std::string(
            buffer, std::to_chars(buffer, buffer + sizeof(buffer), v).ptr);
}

} // namespace faiss_ext
