// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/ShiftInvariantKernel.h>

#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/bandwidth.h>

#include "core/bisection.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "core/parallel.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

namespace {

/// Up to this L1 norm, distances are in the range of float.
constexpr double max_l1_norm = FLT_MAX / 4;

double l1_norm(const float* x, size_t d) {
    return std::accumulate(x, x + d, 0.0, [](double sum, float v) {
        return sum + std::abs(v);
    });
}

double l2_norm(const float* x, size_t d) {
    return std::sqrt(std::accumulate(x, x + d, 0.0, [](double sum, float v) {
        return sum + double(v) * v;
    }));
}

} // namespace

ShiftInvariantKernel::ShiftInvariantKernel(double gamma)
        : BandwidthKernel(gamma) {}

void ShiftInvariantKernel::fields(FieldVisitor& v) const {
    BandwidthKernel::fields(v);
    // once the bandwidth is set, the way to choose it has no effect
    const bool waits = auto_gamma && (gamma == 0 || shows_choices(v));
    if (!waits && !v.wants_all()) {
        return;
    }
    v.integer(
            "neighbor",
            neighbor,
            1,
            1000000,
            "rank of the neighbours whose mean distance gives gamma=auto");
    v.integer(
            "sample_queries",
            sample_queries,
            1,
            INT64_MAX,
            "number of sampled queries");
    v.integer(
            "sample_points",
            sample_points,
            0,
            INT64_MAX,
            "number of vectors to search; 0: all");
    v.integer("sample_seed", sample_seed, 0, INT64_MAX, "seed of that sample");
}

double ShiftInvariantKernel::choose_gamma(const VectorBatch& x) const {
    return gamma_of_radius(mean_neighbor_distance(
            norm() == Norm::L1,
            x,
            neighbor,
            sample_queries,
            sample_points,
            sample_seed));
}

bool ShiftInvariantKernel::nearest_are_equal(double chosen) const {
    return chosen > max_gamma;
}

double ShiftInvariantKernel::inverse_profile(double k) const {
    if (k <= 0) {
        return std::numeric_limits<double>::infinity();
    }
    if (k >= 1) {
        return 0;
    }
    // near 1 the kernel is flat, but 1 - K is not
    const auto is_above = [&](double r) {
        return k > 0.5 ? one_minus_profile(r) <= 1 - k : profile(r) >= k;
    };
    return bisect(is_above);
}

double ShiftInvariantKernel::one_minus_profile(double r) const {
    return 1 - profile(r);
}

double ShiftInvariantKernel::lipschitz_constant(size_t d) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_trained,
            "lipschitz_constant: %s has no bandwidth yet; call train, or give gamma in the string",
            description().c_str());
    FAISS_EXT_THROW_IF_NOT_MSG(
            d > 0, "lipschitz_constant: 0 dimensions, expected at least 1");
    return inverse_length() * std::sqrt(double(d) * frequency_variance());
}

std::optional<double> ShiftInvariantKernel::sample_scale(
        std::mt19937_64&) const {
    return std::nullopt;
}

void ShiftInvariantKernel::kernel_of_norms(size_t n, float* v, bool distance)
        const {
    const double s = inverse_length();
    const bool squared = norm() == Norm::L2;
    for (size_t i = 0; i < n; i++) {
        const double r = s * (squared ? std::sqrt(double(v[i])) : v[i]);
        v[i] = float(distance ? 2 * one_minus_profile(r) : profile(r));
    }
}

void ShiftInvariantKernel::score_block(
        faiss::MetricType,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    const auto op =
            norm() == Norm::L1 ? simd::PairOp::l1 : simd::PairOp::squared_l2;
    simd::pairwise(op, n, x, m, y, d, out, m);
}

void ShiftInvariantKernel::values_of_scores(
        faiss::MetricType metric,
        size_t n,
        float* scores) const {
    kernel_of_norms(n, scores, metric == faiss::METRIC_L2);
}

void ShiftInvariantKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    if (norm() == Norm::L2) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                gamma * double(d) <= max_squared_gamma,
                "%s: gamma of %s is too large for float: expected at most %g in %zu dimensions; scale the vectors up",
                where,
                description().c_str(),
                max_squared_gamma / double(d),
                d);
        check_norms(n, x, d, where);
        return;
    }
    // if no component exceeds this, the norm is small enough
    const auto safe = float(max_l1_norm / (double(d) + 1));
    check_rows_exceeding(safe, n, x, d, where, [&](idx_t i, const float* row) {
        const double length = l1_norm(row, d);
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                length <= max_l1_norm,
                i,
                format_message("%s: ", where),
                format_message(
                        " is too large: its L1 norm is %g, expected at most %g; scale the vectors down",
                        length,
                        max_l1_norm));
    });
}

void ShiftInvariantKernel::check_phases(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    if (!is_trained) {
        check_finite(n, x, d, where);
        return;
    }
    const double scale = inverse_length();
    const bool is_l1 = norm() == Norm::L1;
    // if no component exceeds this, the norm is small enough
    const double safe =
            max_radius / scale / (is_l1 ? double(d) + 1 : std::sqrt(d + 1.0));
    const auto bound = float(std::min(safe, 1e38));
    check_rows_exceeding(bound, n, x, d, where, [&](idx_t i, const float* row) {
        const double radius =
                scale * (is_l1 ? l1_norm(row, d) : l2_norm(row, d));
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                radius <= max_radius,
                i,
                format_message("%s: ", where),
                format_message(
                        " is too far from the origin: its length is %g times the length scale of %s, expected at most %g; centre the vectors, or take a smaller gamma",
                        radius,
                        description().c_str(),
                        max_radius));
    });
}

double ShiftInvariantKernel::turns() const {
    const double turns = inverse_length() / (2 * std::numbers::pi);
    FAISS_EXT_THROW_IF_NOT_FMT(
            turns <= 1e30,
            "the bandwidth gamma of %s is too large: random frequencies overflow; scale the vectors up",
            description().c_str());
    return turns;
}

std::optional<SharedSum> ShiftInvariantKernel::shared_sum(
        faiss::MetricType) const {
    static const IntersectionKernel intersection;
    static const LinearKernel linear;
    return norm() == Norm::L1 ? sum_of_distance(intersection, true)
                              : sum_of_distance(linear, false);
}

} // namespace faiss_ext
