// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace faiss_ext {

/** The hint that follows an error about an unknown name: `did you mean
 * gaussian?`. It knows names of other libraries and misspelt ones. Empty if
 * `name` is like none of those accepted, of which only the first word counts:
 * `gamma` of `gamma=`.
 */
std::string name_hint(
        const std::string& name,
        const std::vector<std::string>& accepted);

} // namespace faiss_ext
