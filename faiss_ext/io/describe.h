#pragma once

#include <string>
#include <vector>

#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/** The parameters of a kernel, map, hash or index by the name that it has in
 * strings: `describe("AHK")`. Throws if there is none of that name.
 */
std::vector<FieldInfo> describe(const std::string& name);

/// The names that describe() knows: those of kernels, maps, hashes, indexes and
/// binary indexes.
std::vector<std::string> described_names();

} // namespace faiss_ext
