#include <faiss_ext/ShiftInvariantKernel.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include <faiss/impl/FaissAssert.h>

#include <faiss_ext/bandwidth.h>

#include "check.h"
#include "number_format.h"
#include "simd/pairwise.h"

namespace faiss_ext {

ShiftInvariantKernel::ShiftInvariantKernel(double gamma)
        : gamma(gamma), auto_gamma(gamma == 0) {
    FAISS_THROW_IF_NOT_FMT(
            gamma >= 0 && std::isfinite(gamma),
            "the bandwidth gamma is %g, expected a positive number, or 0 to have train choose it",
            gamma);
    is_trained = !auto_gamma;
}

void ShiftInvariantKernel::train(idx_t n, const float* x, size_t d) {
    if (!auto_gamma) {
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
    FAISS_THROW_IF_NOT_MSG(
            radius > 0,
            "cannot choose the bandwidth gamma: the training vectors are all the same; give gamma in the string");
    gamma = gamma_of_radius(radius);
    is_trained = true;
    if (verbose) {
        printf("ShiftInvariantKernel::train: radius %g, gamma %g\n",
               radius,
               gamma);
    }
}

double ShiftInvariantKernel::inverse_profile(double k) const {
    if (k == 0) {
        return std::numeric_limits<double>::infinity();
    }
    double low = 0, high = 1;
    while (profile(high) > k) {
        low = high;
        high *= 2;
    }
    while (true) {
        const double middle = (low + high) / 2;
        if (middle <= low || middle >= high) {
            return low;
        }
        (profile(middle) >= k ? low : high) = middle;
    }
}

double ShiftInvariantKernel::one_minus_profile(double r) const {
    return 1 - profile(r);
}

void ShiftInvariantKernel::scaled_distances(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    if (norm() == Norm::L1) {
        simd::pairwise(simd::PairOp::l1, n, x, m, y, d, out, m);
    } else {
        simd::pairwise(simd::PairOp::squared_l2, n, x, m, y, d, out, m);
        for (size_t i = 0; i < n * m; i++) {
            out[i] = std::sqrt(out[i]);
        }
    }
    const double s = scale();
    for (size_t i = 0; i < n * m; i++) {
        out[i] = float(s * out[i]);
    }
}

void ShiftInvariantKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    scaled_distances(n, x, m, y, d, out);
    for (size_t i = 0; i < n * m; i++) {
        out[i] = float(profile(out[i]));
    }
}

void ShiftInvariantKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    scaled_distances(n, x, m, y, d, out);
    for (size_t i = 0; i < n * m; i++) {
        out[i] = float(2 * one_minus_profile(out[i]));
    }
}

void ShiftInvariantKernel::self_values(
        size_t n,
        const float*,
        size_t,
        float* out) const {
    std::fill_n(out, n, 1.0f);
}

std::string ShiftInvariantKernel::describe_gamma() const {
    return gamma > 0 ? "gamma=" + shortest(gamma) : "gamma=auto";
}

} // namespace faiss_ext
