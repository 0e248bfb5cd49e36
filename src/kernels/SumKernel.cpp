// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/SumKernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/scratch.h"

namespace faiss_ext {

void SumKernel::add(const Kernel& kernel, double weight) {
    SumKernel longer = *this;
    longer.kernels.emplace_back(kernel.clone());
    longer.weights.push_back(weight);
    longer.init();
    *this = std::move(longer);
}

void SumKernel::fields(FieldVisitor& v) const {
    v.parts("kernels",
            kernels,
            &weights,
            min_weight,
            max_weight,
            "the kernels to add; 0.3*chi2 has the weight 0.3");
}

void SumKernel::combine(size_t size, float* out, const Values& values) const {
    const Scratch term(size);
    std::fill_n(out, size, 0.0f);
    for (size_t k = 0; k < kernels.size(); k++) {
        values(*kernels[k], term.get());
        for (size_t i = 0; i < size; i++) {
            out[i] = float(out[i] + weights[k] * term[i]);
        }
    }
}

void SumKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    combine(n * m, out, [&](const Kernel& kernel, float* values) {
        kernel.distance_block(n, x, m, y, d, values);
    });
}

void SumKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    CombinedKernel::check_input(n, x, d, where);
    if (is_trained && !CombinedKernel::is_normalized()) {
        check_self_values(n, x, d, where);
    }
}

bool SumKernel::weights_sum_to_1() const {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    return std::abs(sum - 1) < 1e-6;
}

bool SumKernel::has_unit_vectors() const {
    return CombinedKernel::has_unit_vectors() && weights_sum_to_1();
}

bool SumKernel::is_normalized() const {
    return CombinedKernel::is_normalized() && weights_sum_to_1();
}

} // namespace faiss_ext
