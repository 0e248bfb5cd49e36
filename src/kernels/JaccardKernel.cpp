// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/JaccardKernel.h>

#include <algorithm>
#include <cinttypes>
#include <limits>

#include <faiss_ext/kernels/AdditiveKernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

using simd::PairOp;

namespace {

/// Sums the components of n vectors, as their intersection with infinity.
void sums(size_t n, const float* x, size_t d, float* out) {
    const Scratch infinite(d);
    std::fill_n(infinite.get(), d, std::numeric_limits<float>::infinity());
    simd::pairwise(PairOp::intersection, 1, infinite.get(), n, x, d, out, n);
}

/// Computes out[i * m + j] = f(out[i * m + j], sum of x_i + sum of y_j).
template <class F>
void combine(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        F&& f) {
    const Scratch of_x(n), of_y(m);
    sums(n, x, d, of_x.get());
    sums(m, y, d, of_y.get());
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            out[i * m + j] = f(out[i * m + j], of_x[i] + of_y[j]);
        }
    }
}

} // namespace

void JaccardKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::intersection, n, x, m, y, d, out, m);
    // max(a, b) = a + b - min(a, b)
    combine(n, x, m, y, d, out, [](float shared, float sum) {
        return sum > 0 ? shared / (sum - shared) : 1.0f;
    });
}

void JaccardKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::l1, n, x, m, y, d, out, m);
    // 2 max(a, b) = a + b + |a - b|
    combine(n, x, m, y, d, out, [](float apart, float sum) {
        return sum > 0 ? std::min(2.0f, 4 * (apart / (sum + apart))) : 0.0f;
    });
}

void JaccardKernel::self_values(size_t n, const float*, size_t, float* out)
        const {
    std::fill_n(out, n, 1.0f);
}

void JaccardKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        const Scratch sum(end - begin);
        sums(end - begin, x + begin * d, d, sum.get());
        for (idx_t i = begin; i < end; i++) {
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    sum.get()[i - begin] <= max_self_value,
                    i,
                    format_message("%s: the components of ", where),
                    format_message(
                            " sum up to %g, expected at most %g; scale the vectors down",
                            sum.get()[i - begin],
                            max_self_value));
        }
    });
}

std::optional<SharedSum> JaccardKernel::shared_sum(
        faiss::MetricType metric) const {
    static const IntersectionKernel terms;
    SharedSum sum;
    sum.terms = &terms;
    sum.is_of_histograms = true;
    sum.is_at_most_weight = true;
    // k = s / (x + y - s) for the sum s and vectors that sum up to x and y
    sum.least = [metric](double score, double weight) {
        const double k = normalized_value(metric, score);
        const double slope = k / (1 + k);
        return k > 0 ? SharedSum::Least{slope * weight, slope} : any_sum;
    };
    return sum;
}

} // namespace faiss_ext
