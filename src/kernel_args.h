// Arguments that several kernels share.

#pragma once

#include <faiss_ext/Spec.h>

namespace faiss_ext {

/// gamma=NUMBER, or gamma=auto, or nothing: 0, which has train choose it.
inline double get_gamma(Spec& spec) {
    if (spec.get("gamma") == "auto") {
        return 0;
    }
    return spec.get_double("gamma", 0.0, 1e-30, 1e30);
}

} // namespace faiss_ext
