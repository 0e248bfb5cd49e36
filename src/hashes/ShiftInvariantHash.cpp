// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <faiss_ext/kernels/kernel_registry.h>

#include "core/errors.h"
#include "hashes/angle.h"
#include "hashes/hamming_series.h"
#include "hashes/phase_bits.h"
#include "projections/draw.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

/// Checks a kernel value, which may be outside [0, 1] by rounding.
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

void ShiftInvariantHash::fields(FieldVisitor& v) const {
    v.part("kernel", kernel, "a shift-invariant kernel");
    v.integer("seed", seed, 0, INT64_MAX, "seed of the projection");
    proj.fields(v, d_in, d_in, frequency_kinds(kernel.get()));
    drawn_fields(v);
}

void ShiftInvariantHash::drawn_fields(FieldVisitor& v) const {
    const size_t n = is_trained ? nbits : 0;
    learned_fields(v, n);
    v.array("offset", offset, n);
}

void ShiftInvariantHash::init() {
    check_fields(*this);
    proj.set_kind(d_in, frequency_kinds(kernel.get()));
    proj.set_shape(d_in);
    is_trained = kernel->is_trained;
    if (is_trained) {
        draw();
    }
}

void ShiftInvariantHash::restore() {
    proj.set_kind(d_in, frequency_kinds(kernel.get()));
    check_projection(is_trained);
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel->is_trained == is_trained,
            "the kernel and the hash are inconsistent: either both or neither must be trained");
}

void ShiftInvariantHash::draw() {
    projection = draw_frequencies(proj, *kernel, d_in, nbits, seed);
    draw_phase_bits(nbits, seed, offset, threshold);
}

void ShiftInvariantHash::learn(idx_t n, const float* x) {
    kernel->verbose = verbose;
    kernel->train(n, x, d_in);
    kernel->check_phases(n, x, d_in, "train");
    draw();
}

bool ShiftInvariantHash::learn_sparse(const SparseVectors& x) {
    kernel->verbose = verbose;
    kernel->train_sparse(x);
    check_components(x, "train");
    draw();
    return true;
}

std::optional<SparseVectors> ShiftInvariantHash::sparse_features(
        const SparseVectors& x,
        SparseRows&) const {
    return x;
}

void ShiftInvariantHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(kernel, "%s: the hash has no kernel", where);
    kernel->check_phases(n, x, d, where);
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

double ShiftInvariantHash::least_kernel_value() const {
    return 0;
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

std::pair<double, double> ShiftInvariantHash::hamming_bounds(
        double kernel_value) const {
    const double u = checked_unit(kernel_value), most = 4 / (pi * pi);
    return {nbits * most * (1 - u),
            nbits * std::min(0.5 * std::sqrt(1 - u), most * (1 - 2 * u / 3))};
}

double ShiftInvariantHash::kernel_value(const float* x, const float* y) const {
    check_pair(x, y, "kernel_value");
    return (*kernel)(x, y, d_in);
}

double ShiftInvariantHash::expected_hamming_of_pair(
        const float* x,
        const float* y) const {
    check_pair(x, y, "expected_hamming_of_pair");
    double sum = 0;
    const bool is_l1 = kernel->norm() == ShiftInvariantKernel::Norm::L1;
    for (int i = 0; i < d_in; i++) {
        const double difference = std::abs(double(x[i]) - y[i]);
        sum += is_l1 ? difference : difference * difference;
    }
    const double length = is_l1 ? sum : std::sqrt(sum);
    return length == 0 ? 0
                       : nbits * expected_at(kernel->inverse_length() * length);
}

bool ShiftInvariantHash::has_independent_bits() const {
    return proj.is_independent();
}

void ShiftInvariantHash::query_weights(size_t n, float* weights) const {
    // K_m and its derivative with respect to K, at K = 1/2
    const double r = kernel->inverse_profile(0.5), h = 1e-4 * r;
    const auto slope = [&](int m) {
        return mean_cosine(m * (r + h)) - mean_cosine(m * (r - h));
    };
    std::vector<double> values, slopes;
    for (int m = 1; m <= most_terms; m++) {
        values.push_back(mean_cosine(m * r));
        slopes.push_back(slope(m) / slope(1));
        if (values.back() < negligible_term &&
            slopes.back() < negligible_term) {
            break;
        }
    }
    weigh_phase_bits(n, threshold, values, slopes, weights);
}

double ShiftInvariantHash::asymmetric_kernel_estimate(double) const {
    FAISS_EXT_THROW_MSG(
            "asymmetric_kernel_estimate: not available for SIK and BSIK, whose asymmetric distances have no known expectation; use kernel_estimate with Hamming distances");
}

} // namespace faiss_ext
