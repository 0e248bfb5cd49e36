// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/MyHash.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "hashes/angle.h"
#include "projections/random_projection.h"

namespace faiss_ext {

void MyHash::fields(FieldVisitor& v) const {
    v.number(
            "origin",
            origin,
            -1000,
            1000,
            "every component of the point that angles are measured from");
    v.integer("seed", seed, 0, INT64_MAX, "seed of the projection");
    learned_fields(v, nbits); // the projection and nbits thresholds
}

// d_in, nbits and the parameters are set
void MyHash::init() {
    check_fields(*this);
    projection = std::make_unique<DenseProjection>(
            random_projection<std::normal_distribution<double>>(
                    d_in, nbits, seed));
    // w . x >= w . point
    const std::vector<float> point(d_in, float(origin));
    threshold.resize(nbits);
    projection->apply(1, point.data(), threshold.data());
}

// all fields have been read from a file
void MyHash::restore() {
    check_projection(is_trained);
}

double MyHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, -1);
    return nbits * normalized_angle(kernel_value);
}

double MyHash::kernel_estimate(double hamming) const {
    return std::cos(std::numbers::pi * normalized_hamming(hamming));
}

} // namespace faiss_ext
