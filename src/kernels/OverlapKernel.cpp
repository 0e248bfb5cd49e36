// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/OverlapKernel.h>

#include <algorithm>

#include <faiss_ext/kernels/AdditiveKernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "kernels/overlap.h"
#include "kernels/shared_sums.h"

namespace faiss_ext {

void OverlapKernel::self_values(size_t n, const float*, size_t, float* out)
        const {
    std::fill_n(out, n, 1.0f);
}

void OverlapKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        const Scratch sums(end - begin);
        sums_of_components(end - begin, x + begin * d, d, sums.get());
        for (idx_t i = begin; i < end; i++) {
            const float sum = sums.get()[i - begin];
            FAISS_EXT_THROW_VECTOR_IF_NOT(
                    sum <= max_self_value,
                    i,
                    format_message("%s: the components of ", where),
                    format_message(
                            " sum up to %g, expected at most %g; scale the vectors down",
                            sum,
                            max_self_value));
        }
    });
}

std::optional<SharedSum> OverlapKernel::shared_sum(
        faiss::MetricType metric) const {
    static const IntersectionKernel terms;
    SharedSum sum;
    sum.terms = &terms;
    sum.is_of_histograms = true;
    sum.is_at_most_weight = true;
    sum.least = [this, metric](double score, double weight) {
        const double k = normalized_value(metric, score);
        if (k <= 0) {
            return any_sum;
        }
        const double share = least_share(k);
        return SharedSum::Least{share * weight, share};
    };
    return sum;
}

} // namespace faiss_ext
