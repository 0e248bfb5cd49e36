// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/bits_for.h>

#include <cinttypes>
#include <cmath>

#include "core/errors.h"

namespace faiss_ext {

int64_t bits_for(int64_t n, double delta, double epsilon) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 1 && delta > 0 && delta < 1 && epsilon > 0 && epsilon < 1,
            "bits_for: n = %" PRId64
            ", delta = %g, epsilon = %g; expected at least 1 vector, and delta and epsilon between 0 and 1",
            n,
            delta,
            epsilon);
    const double bits =
            (2 * std::log(double(n)) - std::log(epsilon)) / (2 * delta * delta);
    const double rounded = 8 * std::ceil(bits / 8), most = 0x1p31 - 8;
    FAISS_EXT_THROW_IF_NOT_FMT(
            rounded <= most,
            "bits_for: %g bits are needed, but codes have at most %g; choose a larger delta or epsilon",
            rounded,
            most);
    return int64_t(rounded);
}

} // namespace faiss_ext
