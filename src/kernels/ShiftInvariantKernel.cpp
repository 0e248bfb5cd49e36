#include <faiss_ext/kernels/ShiftInvariantKernel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>

#include <faiss_ext/kernels/bandwidth.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/number_format.h"
#include "kernels/kernel_args.h"
#include "simd/pairwise.h"

namespace faiss_ext {

namespace {

bool are_all_the_same(idx_t n, const float* x, size_t d) {
    for (idx_t i = 1; i < n; i++) {
        if (!std::equal(x, x + d, x + i * d)) {
            return false;
        }
    }
    return true;
}

} // namespace

ShiftInvariantKernel::ShiftInvariantKernel(double gamma)
        : gamma(gamma), auto_gamma(gamma == 0) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            gamma == 0 || (gamma >= min_gamma && gamma <= max_gamma),
            "the bandwidth gamma is %g, expected a number from %g to %g, or 0 to have train choose it",
            gamma,
            min_gamma,
            max_gamma);
    is_trained = !auto_gamma;
}

void ShiftInvariantKernel::train(idx_t n, const float* x, size_t d) {
    if (is_trained) {
        return;
    }
    check_input(n, x, d, "ShiftInvariantKernel::train");
    const double radius = mean_neighbor_distance(
            norm() == Norm::L1,
            n,
            x,
            d,
            neighbor,
            sample_queries,
            sample_points,
            sample_seed);
    const double chosen = gamma_of_radius(radius);
    FAISS_EXT_THROW_IF_NOT_FMT(
            chosen >= min_gamma && chosen <= max_gamma,
            "cannot choose the bandwidth gamma: the mean distance of neighbours is %g (%s); give gamma in the string",
            radius,
            are_all_the_same(n, x, d) ? "the training vectors are all the same"
                                      : "too small or too large for float");
    gamma = chosen;
    is_trained = true;
    if (verbose) {
        printf("ShiftInvariantKernel::train: radius %g, gamma %g\n",
               radius,
               gamma);
    }
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
    double low = 0, high = 1;
    while (is_above(high)) {
        low = high;
        high *= 2;
    }
    while (true) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) {
            return low;
        }
        (is_above(middle) ? low : high) = middle;
    }
}

double ShiftInvariantKernel::one_minus_profile(double r) const {
    return 1 - profile(r);
}

void ShiftInvariantKernel::kernel_of_norms(size_t n, float* v, bool distance)
        const {
    const double s = scale();
    const bool squared = norm() == Norm::L2;
    for (size_t i = 0; i < n; i++) {
        const double r = s * (squared ? std::sqrt(double(v[i])) : v[i]);
        v[i] = float(distance ? 2 * one_minus_profile(r) : profile(r));
    }
}

void ShiftInvariantKernel::block_of_norms(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        bool distance) const {
    const auto op =
            norm() == Norm::L1 ? simd::PairOp::l1 : simd::PairOp::squared_l2;
    simd::pairwise(op, n, x, m, y, d, out, m);
    kernel_of_norms(n * m, out, distance);
}

void ShiftInvariantKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    block_of_norms(n, x, m, y, d, out, false);
}

void ShiftInvariantKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    block_of_norms(n, x, m, y, d, out, true);
}

void ShiftInvariantKernel::self_values(
        size_t n,
        const float*,
        size_t,
        float* out) const {
    std::fill_n(out, n, 1.0f);
}

void ShiftInvariantKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_finite(n, x, d, where);
}

double ShiftInvariantKernel::turns() const {
    const double turns = scale() / (2 * std::numbers::pi);
    FAISS_EXT_THROW_IF_NOT_FMT(
            turns <= 1e30,
            "the bandwidth gamma of %s is too large for codes: frequencies leave the range of float",
            description().c_str());
    return turns;
}

std::string ShiftInvariantKernel::describe_gamma() const {
    return gamma > 0 ? "gamma=" + shortest(gamma) : "gamma=auto";
}

} // namespace faiss_ext
