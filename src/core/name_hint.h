// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace faiss_ext {

/** Returns a hint for an error about an unknown name, such as `did you mean
 * gaussian?`. It covers misspelt names and names of other libraries. Returns an
 * empty string if no accepted name is similar. Of each accepted text only the
 * first word is compared: `gamma` of `gamma=`, and `Refine` of `,Refine(...)`.
 * A number in the name is not compared if the accepted text has one: `HNSW<M>`.
 */
std::string name_hint(
        const std::string& name,
        const std::vector<std::string>& accepted);

} // namespace faiss_ext
