// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace faiss_ext {

/** What a string asks for that this FAISS is too old for, such as "RaBitQ needs
 * FAISS 1.11.0 or newer; this is FAISS 1.7.3". Empty if there is nothing known.
 */
std::string needs_newer_faiss(const std::string& factory_string);

} // namespace faiss_ext
