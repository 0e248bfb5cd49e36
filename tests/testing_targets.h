// Running a test under each instruction set.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hwy/targets.h>

#include "simd/pairwise.h"

namespace testing_targets {

/// Has the library use one instruction set until the end of the scope.
struct Target {
    explicit Target(int64_t target) {
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit(); // choose again at the next call
    }
    ~Target() {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().DeInit();
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
};

/// The instruction sets that this processor has and the library was compiled
/// for: with another one in force, target_name would differ.
inline std::vector<int64_t> targets() {
    std::vector<int64_t> found;
    for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const Target guard(target);
        if (std::string(faiss_ext::simd::target_name()) ==
            hwy::TargetName(target)) {
            found.push_back(target);
        }
    }
    return found;
}

} // namespace testing_targets
