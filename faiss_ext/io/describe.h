// SPDX-License-Identifier: MIT
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

/// The hint that follows the error about a name that describe() does not know,
/// such as `; did you mean gaussian?`; empty if it is like none.
std::string described_name_hint(const std::string& name);

/** Name of the instruction set that the inner loops use, as Highway calls it:
 * AVX2, say. It is the best one that the processor and the library have, or
 * that of the environment variable FAISS_EXT_SIMD if it is set.
 */
std::string instruction_set();

} // namespace faiss_ext
