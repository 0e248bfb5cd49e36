// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** MYH: what it is for; the formula, with the paper's equation numbers; an
 * example of five lines; the source.
 */
struct MyHash : ProjectionHash {
    double origin = 0;
    int64_t seed = 1234;

    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
};

} // namespace faiss_ext
