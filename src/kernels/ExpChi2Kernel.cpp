// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/ExpChi2Kernel.h>

#include <numeric>
#include <vector>

#include <faiss_ext/kernels/AdditiveKernel.h>

#include "core/check.h"
#include "core/sample.h"
#include "kernels/SparseQuery.h"
#include "kernels/exponential.h"
#include "kernels/shared_sums.h"
#include "simd/pairwise.h"

namespace faiss_ext {

namespace {

/// Vectors whose mean distance is the bandwidth.
std::vector<idx_t> sample_of(idx_t n) {
    return sample_ids(n, 1000, 1234);
}

/// The mean of the distances of m vectors to the others, all of which are given
/// in a matrix.
double mean_of_pairs(size_t m, const std::vector<float>& distances) {
    const double sum = std::accumulate(distances.begin(), distances.end(), 0.0);
    return sum / (double(m) * double(m - 1));
}

} // namespace

ExpChi2Kernel::ExpChi2Kernel(double gamma) : BandwidthKernel(gamma) {}

double ExpChi2Kernel::choose_gamma(idx_t n, const float* x, size_t d) const {
    const std::vector<float> rows = gather_rows(sample_of(n), x, d);
    const size_t m = rows.size() / d;
    std::vector<float> distances(m * m);
    simd::pairwise(
            simd::PairOp::chi2_distance,
            m,
            rows.data(),
            m,
            rows.data(),
            d,
            distances.data(),
            m);
    return mean_of_pairs(m, distances);
}

double ExpChi2Kernel::choose_gamma_sparse(const SparseVectors& x) const {
    std::vector<SparseRow> rows;
    for (const idx_t i : sample_of(x.n)) {
        rows.push_back(SparseRow::of(x, i));
    }
    const size_t m = rows.size();
    std::vector<float> distances(m * m);
    for (size_t i = 0; i < m; i++) {
        SparseQuery(*this, rows[i])
                .scores(faiss::METRIC_L2, rows, &distances[i * m]);
    }
    return mean_of_pairs(m, distances);
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
