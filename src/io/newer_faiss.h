// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace faiss_ext {

/** Returns the requirement of a string that needs a newer FAISS, such as
 * "RaBitQ needs FAISS 1.11.0 or newer; this is FAISS 1.7.3". Returns an empty
 * string if none is known.
 */
std::string needs_newer_faiss(const std::string& factory_string);

} // namespace faiss_ext
