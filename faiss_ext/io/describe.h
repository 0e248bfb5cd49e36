// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/// Describes the parameters of a kernel, map, hash or index, given its name in
/// strings: `describe("AHK")`. Throws if the name is unknown.
std::vector<FieldInfo> describe(const std::string& name);

/// The names that describe() accepts: of kernels, maps, hashes, indexes, binary
/// indexes and graphs.
std::vector<std::string> described_names();

/// The hint that follows the error about a name unknown to describe(), such as
/// `; did you mean gaussian?`. It is empty if no known name is similar.
std::string described_name_hint(const std::string& name);

/** The name of the instruction set that the inner loops use, in Highway's
 * words, such as AVX2.
 *
 * It is the best one that both the processor and the library have, or the value
 * of the environment variable FAISS_EXT_SIMD if it is set.
 */
std::string instruction_set();

} // namespace faiss_ext
