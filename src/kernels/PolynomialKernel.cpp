// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/PolynomialKernel.h>

#include <cmath>

#include <faiss_ext/kernels/LinearKernel.h>

#include "core/check.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

PolynomialKernel::PolynomialKernel(int degree, double c)
        : degree(degree), c(c) {
    init();
}

void PolynomialKernel::fields(FieldVisitor& v) const {
    v.integer("degree", degree, 1, 100, "power of <x, y> + c");
    v.number("c", c, 0, 1e30, "added to <x, y>");
}

void PolynomialKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::dot, n, x, m, y, d, out, m);
    for (size_t i = 0; i < n * m; i++) {
        out[i] = float(std::pow(out[i] + c, degree));
    }
}

void PolynomialKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_finite(n, x, d, where);
    check_self_values(n, x, d, where, c == 0 ? least_self_value : 0);
}

std::optional<SharedSum> PolynomialKernel::shared_sum(
        faiss::MetricType metric) const {
    if (metric == faiss::METRIC_L2) {
        return std::nullopt; // the sum is no linear function of k(y, y)
    }
    static const LinearKernel terms;
    SharedSum sum;
    sum.terms = &terms;
    sum.is_of_histograms = true; // negative sums have large even powers
    sum.least = [this](double score, double) {
        if (score >= 0) {
            return any_sum;
        }
        // different sums have the same score if c is much larger than they are
        constexpr double rounding = 1e-6;
        const double base = std::pow(-score, 1.0 / degree);
        return SharedSum::Least{base * (1 - rounding) - c, 0};
    };
    return sum;
}

} // namespace faiss_ext
