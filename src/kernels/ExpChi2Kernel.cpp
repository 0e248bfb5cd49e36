// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/ExpChi2Kernel.h>

#include <algorithm>

#include <faiss_ext/kernels/AdditiveKernel.h>

#include "core/check.h"
#include "core/sample.h"
#include "kernels/exponential.h"
#include "kernels/shared_sums.h"
#include "kernels/sparse_blocks.h"
#include "simd/pairwise.h"

namespace faiss_ext {

ExpChi2Kernel::ExpChi2Kernel(double gamma) : BandwidthKernel(gamma) {}

double ExpChi2Kernel::choose_gamma(const VectorBatch& x) const {
    const VectorSample sample = gather_rows(sample_ids(x.n, 1000, 1234), x);
    const size_t m = sample.n;
    std::vector<float> distances(m * m);
    score_block_of(
            *this,
            faiss::METRIC_L2,
            sample.get(),
            sample.get(),
            distances.data());
    double sum = 0;
    for (float v : distances) {
        sum += v;
    }
    return sum / (double(m) * double(m - 1));
}

void ExpChi2Kernel::score_block(
        faiss::MetricType,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::chi2_distance, n, x, m, y, d, out, m);
}

void ExpChi2Kernel::values_of_scores(
        faiss::MetricType metric,
        size_t n,
        float* scores) const {
    exponential_kernel(1 / gamma, n, scores, metric == faiss::METRIC_L2);
}

void ExpChi2Kernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
    check_sums(n, x, d, where);
}

std::optional<SharedSum> ExpChi2Kernel::shared_sum(faiss::MetricType) const {
    static const Chi2Kernel chi2;
    return sum_of_distance(chi2, true);
}

} // namespace faiss_ext
