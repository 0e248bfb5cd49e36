// SPDX-License-Identifier: MIT
#include "simd/instruction_set.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <strings.h>

#include <hwy/targets.h>

namespace faiss_ext::simd {

bool limit_instruction_set() {
    const char* wanted = std::getenv("FAISS_EXT_SIMD");
    if (!wanted || !*wanted) {
        return false;
    }
    int64_t better = 0;
    std::string names;
    for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const std::string name = hwy::TargetName(target);
        if (strcasecmp(name.c_str(), wanted) == 0) {
            hwy::DisableTargets(better);
            return true;
        }
        better |= target;
        names += (names.empty() ? "" : ", ") + name;
    }
    std::fprintf(
            stderr,
            "faiss_ext: the environment variable FAISS_EXT_SIMD is '%.40s', expected one of %s; it has no effect\n",
            wanted,
            names.c_str());
    return false;
}

} // namespace faiss_ext::simd
