#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <faiss_ext/kernels/kernel_registry.h>

#include "core/errors.h"
#include "core/random_streams.h"
#include "hashes/angle.h"
#include "hashes/hamming_series.h"
#include "projections/draw.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

/// A kernel value, which rounding may have put a little outside of [0, 1].
double checked_unit(double u) {
    check_kernel_value(u, 0);
    return std::clamp(u, 0.0, 1.0);
}

} // namespace

ShiftInvariantHash::ShiftInvariantHash(
        int d,
        int nbits,
        const ShiftInvariantKernel& kernel,
        int64_t seed,
        const ProjectionChoice& proj)
        : ProjectionHash(d, nbits),
          kernel(copy_as(kernel)),
          seed(seed),
          proj(proj) {
    init();
}

void ShiftInvariantHash::fields(FieldVisitor& v) {
    v.part("kernel", kernel, "a shift-invariant kernel");
    v.integer("seed", seed, 0, INT64_MAX, "of the projection");
    proj.fields(v, d_in, frequency_kinds(kernel.get()));
    drawn_fields(v);
}

void ShiftInvariantHash::drawn_fields(FieldVisitor& v) {
    const size_t n = is_trained ? nbits : 0;
    learned_fields(v, n);
    v.array("offset", offset, n);
}

void ShiftInvariantHash::init() {
    check_fields(*this);
    proj.set_shape(d_in);
    is_trained = kernel->is_trained;
    if (is_trained) {
        draw();
    }
}

void ShiftInvariantHash::restore() {
    check_projection(is_trained);
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel->is_trained == is_trained,
            "the kernel's bandwidth and the hash do not fit");
}

void ShiftInvariantHash::draw() {
    projection = draw_frequencies(proj, *kernel, d_in, nbits, seed);
    std::mt19937_64 rng = row_rng(seed, 0, stream_offsets);
    std::uniform_real_distribution<double> uniform;
    offset.resize(nbits);
    threshold.resize(nbits);
    for (int i = 0; i < nbits; i++) {
        offset[i] = float(uniform(rng));
        threshold[i] = float(std::acos(1 - 2 * uniform(rng)) / (2 * pi));
    }
}

void ShiftInvariantHash::learn(idx_t n, const float* x) {
    kernel->verbose = verbose;
    kernel->train(n, x, d_in);
    draw();
}

void ShiftInvariantHash::finish(size_t n, float* margins) const {
    simd::fold_phases(n, nbits, offset.data(), threshold.data(), margins);
}

double ShiftInvariantHash::mean_cosine(double r) const {
    return kernel->profile(r);
}

double ShiftInvariantHash::expected_at(double r) const {
    return expected_distance([&](double m) { return mean_cosine(m * r); });
}

double ShiftInvariantHash::expected_hamming(double kernel_value) const {
    const double u = checked_unit(kernel_value);
    return nbits * expected_at(kernel->inverse_profile(u));
}

double ShiftInvariantHash::kernel_estimate(double hamming) const {
    const double h = normalized_hamming(hamming);
    if (h >= 4 / (pi * pi)) {
        return 0;
    }
    if (h == 0) {
        return 1;
    }
    return kernel->profile(
            inverse_distance(h, [&](double r) { return expected_at(r); }));
}

double ShiftInvariantHash::lower_bound(double u) {
    u = checked_unit(u);
    return 4 / (pi * pi) * (1 - u);
}

double ShiftInvariantHash::upper_bound(double u) {
    u = checked_unit(u);
    return std::min(0.5 * std::sqrt(1 - u), 4 / (pi * pi) * (1 - 2 * u / 3));
}

} // namespace faiss_ext
