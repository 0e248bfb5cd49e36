// SPDX-License-Identifier: MIT
// Kernels of histograms that depend on sum_i min(x_i, y_i) and on the sums of
// the two vectors.

#pragma once

#include <algorithm>
#include <limits>

#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/Kernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

/// Sums the components of n vectors, as their intersection with infinity.
inline void sums_of_components(size_t n, const float* x, size_t d, float* out) {
    const Scratch infinite(d);
    std::fill_n(infinite.get(), d, std::numeric_limits<float>::infinity());
    simd::pairwise(
            simd::PairOp::intersection, 1, infinite.get(), n, x, d, out, n);
}

/// Computes f(value, sum of x_i + sum of y_j) for all pairs, from the values of
/// PairOp::intersection, the sums of the smaller components, or PairOp::l1.
template <class F>
void overlap_block(
        simd::PairOp op,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out,
        F&& f) {
    simd::pairwise(op, n, x, m, y, d, out, m);
    const Scratch of_x(n), of_y(m);
    sums_of_components(n, x, d, of_x.get());
    sums_of_components(m, y, d, of_y.get());
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            out[i * m + j] = f(out[i * m + j], of_x[i] + of_y[j]);
        }
    }
}

/// Throws unless the vectors are histograms whose sums are at most
/// max_self_value.
inline void check_sums(idx_t n, const float* x, size_t d, const char* where) {
    check_histograms(n, x, d, where);
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        const Scratch sum(end - begin);
        sums_of_components(end - begin, x + begin * d, d, sum.get());
        for (idx_t i = begin; i < end; i++) {
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    sum.get()[i - begin] <= Kernel::max_self_value,
                    i,
                    format_message("%s: the components of ", where),
                    format_message(
                            " sum up to %g, expected at most %g; scale the vectors down",
                            sum.get()[i - begin],
                            Kernel::max_self_value));
        }
    });
}

/// For kernels with k(x, x) = 1 whose value is at least k if the sum of the
/// smaller components is at least share(k) times the sum of both vectors.
template <class Share>
SharedSum sum_of_overlap(faiss::MetricType metric, Share&& share) {
    static const IntersectionKernel terms;
    SharedSum sum;
    sum.terms = &terms;
    sum.is_of_histograms = true;
    sum.is_at_most_weight = true;
    sum.least = [metric, share](double score, double weight) {
        const double k = normalized_value(metric, score);
        return k > 0 ? SharedSum::Least{share(k) * weight, share(k)} : any_sum;
    };
    return sum;
}

} // namespace faiss_ext
