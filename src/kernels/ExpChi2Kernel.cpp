#include <faiss_ext/kernels/ExpChi2Kernel.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/errors.h"
#include "core/number_format.h"
#include "core/sample.h"
#include "kernels/exponential.h"
#include "kernels/kernel_args.h"
#include "simd/pairwise.h"

namespace faiss_ext {

ExpChi2Kernel::ExpChi2Kernel(double gamma)
        : gamma(gamma), auto_gamma(gamma == 0) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            gamma >= 0 && std::isfinite(gamma),
            "gamma is %g, expected a positive number, or 0 to have train choose it",
            gamma);
    is_trained = !auto_gamma;
}

ExpChi2Kernel::ExpChi2Kernel(Spec& spec) : ExpChi2Kernel(get_gamma(spec)) {}

void ExpChi2Kernel::train(idx_t n, const float* x, size_t d) {
    if (is_trained) {
        return;
    }
    check_input(n, x, d, "ExpChi2Kernel::train");
    FAISS_EXT_THROW_IF_NOT_MSG(
            n >= 2, "ExpChi2Kernel::train needs at least 2 vectors");
    const std::vector<float> rows =
            gather_rows(sample_ids(n, 1000, 1234), x, d);
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
    double sum = 0;
    for (float v : distances) {
        sum += v;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            sum > 0,
            "cannot choose gamma: the training vectors are all the same; give gamma in the string");
    const double mean = sum / (double(m) * double(m - 1));
    FAISS_EXT_THROW_IF_NOT_FMT(
            std::isfinite(mean),
            "cannot choose gamma: the mean distance is %g, too large for float; give gamma in the string",
            mean);
    gamma = mean;
    is_trained = true;
}

void ExpChi2Kernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::chi2_distance, n, x, m, y, d, out, m);
    exponential_kernel(1 / gamma, n * m, out, false);
}

void ExpChi2Kernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::chi2_distance, n, x, m, y, d, out, m);
    exponential_kernel(1 / gamma, n * m, out, true);
}

void ExpChi2Kernel::self_values(size_t n, const float*, size_t, float* out)
        const {
    std::fill_n(out, n, 1.0f);
}

void ExpChi2Kernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
}

std::string ExpChi2Kernel::description() const {
    return "expchi2(" +
            (gamma > 0 ? "gamma=" + shortest(gamma) : "gamma=auto") + ")";
}

} // namespace faiss_ext
