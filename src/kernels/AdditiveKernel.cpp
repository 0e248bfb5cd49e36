// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/AdditiveKernel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/check.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

using simd::PairOp;
using std::numbers::ln2;
using std::numbers::pi;

/// Terms of k(x, y), and of k(x, x) + k(y, y) - 2 k(x, y) computed without
/// cancellation.
struct AdditiveLoops {
    PairOp value, distance;
};

namespace {

constexpr AdditiveLoops chi2 = {PairOp::chi2, PairOp::chi2_distance};
constexpr AdditiveLoops intersection = {PairOp::intersection, PairOp::l1};
constexpr AdditiveLoops jensen_shannon = {
        PairOp::jensen_shannon,
        PairOp::jensen_shannon_distance};
constexpr AdditiveLoops hellinger = {
        PairOp::hellinger,
        PairOp::hellinger_distance};

/// Computes k(a, b) of two components from the signature.
double additive_term(const AdditiveKernel& kernel, double a, double b) {
    constexpr double least = 1e-37;
    return a < least || b < least
            ? 0
            : std::sqrt(a * b) * kernel.signature(std::log(b / a));
}

template <class Term>
void sum_terms(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        Term&& term) {
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            double sum = 0;
            for (size_t k = 0; k < d; k++) {
                sum += term(x[i * d + k], y[j * d + k]);
            }
            out[i * m + j] = float(sum);
        }
    }
}

} // namespace

void AdditiveKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    if (loops) {
        simd::pairwise(loops->value, n, x, m, y, d, out, m);
    } else {
        sum_terms(n, x, m, y, d, out, [&](double a, double b) {
            return additive_term(*this, a, b);
        });
    }
}

void AdditiveKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    if (loops) {
        simd::pairwise(loops->distance, n, x, m, y, d, out, m);
    } else {
        sum_terms(n, x, m, y, d, out, [&](double a, double b) {
            return std::max(0.0, a + b - 2 * additive_term(*this, a, b));
        });
    }
}

void AdditiveKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
    check_sums(n, x, d, where);
    check_self_values(n, x, d, where);
}

void AdditiveKernel::self_values(size_t n, const float* x, size_t d, float* out)
        const {
    for (size_t i = 0; i < n; i++) {
        // min(x, x) = x
        const float* row = x + i * d;
        simd::pairwise(PairOp::intersection, 1, row, 1, row, d, out + i, 1);
    }
}

std::optional<SharedSum> AdditiveKernel::shared_sum(
        faiss::MetricType metric) const {
    return sum_of_kernel(*this, metric, true);
}

Chi2Kernel::Chi2Kernel() : AdditiveKernel(chi2) {}

double Chi2Kernel::signature(double lambda) const {
    return 1 / std::cosh(lambda / 2);
}

double Chi2Kernel::spectrum(double omega) const {
    return 1 / std::cosh(pi * omega);
}

double Chi2Kernel::default_period(int order, Window window) const {
    return window == Window::uniform ? 5.86 * std::sqrt(order) + 3.65
                                     : 8.80 * std::sqrt(order + 4.44) - 12.6;
}

IntersectionKernel::IntersectionKernel() : AdditiveKernel(intersection) {}

double IntersectionKernel::signature(double lambda) const {
    return std::exp(-std::abs(lambda) / 2);
}

double IntersectionKernel::spectrum(double omega) const {
    return 2 / pi / (1 + 4 * omega * omega);
}

double IntersectionKernel::default_period(int order, Window window) const {
    return window == Window::uniform ? 2.38 * std::log(order + 0.8) + 5.6
                                     : 2.00 * std::log(order + 0.99) + 3.52;
}

JensenShannonKernel::JensenShannonKernel() : AdditiveKernel(jensen_shannon) {}

double JensenShannonKernel::signature(double lambda) const {
    const double half = std::abs(lambda) / 2;
    const double a = std::exp(-half); // the smaller component
    // this tends to a
    const double first = a < 1e-8 ? a : std::log1p(a * a) / a;
    return 0.5 / ln2 * (first + a * (std::log1p(a * a) + 2 * half));
}

double JensenShannonKernel::spectrum(double omega) const {
    return 1 / ln2 / std::cosh(pi * omega) / (1 + 4 * omega * omega);
}

double JensenShannonKernel::default_period(int order, Window window) const {
    return window == Window::uniform ? 6.64 * std::sqrt(order) + 7.24
                                     : 9.63 * std::sqrt(order + 1.0) - 2.93;
}

HellingerKernel::HellingerKernel() : AdditiveKernel(hellinger) {}

double HellingerKernel::signature(double) const {
    return 1;
}

double HellingerKernel::spectrum(double omega) const {
    return omega == 0 ? std::numeric_limits<double>::infinity() : 0;
}

double HellingerKernel::default_period(int, Window) const {
    return 0;
}

} // namespace faiss_ext
