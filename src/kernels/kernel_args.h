// Arguments that several kernels share.

#pragma once

#include <faiss_ext/core/Spec.h>

namespace faiss_ext {

constexpr double min_gamma = 1e-200, max_gamma = 1e200;

/// gamma=NUMBER, or gamma=auto, or nothing: 0, which has train choose it.
inline double get_gamma(Spec& spec) {
    if (spec.get("gamma") == "auto") {
        return 0;
    }
    return spec.get_double("gamma", 0.0, min_gamma, max_gamma, {"auto"});
}

} // namespace faiss_ext
