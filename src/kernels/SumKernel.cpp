// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/SumKernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

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

namespace {

/// Computes the weighted sum of `size` values of each kernel.
template <class Values>
void weighted_sum(
        const SumKernel& sum,
        size_t size,
        float* out,
        Values&& values) {
    std::vector<float> term(size);
    std::fill_n(out, size, 0.0f);
    for (size_t k = 0; k < sum.kernels.size(); k++) {
        values(*sum.kernels[k], term.data());
        const double weight = sum.weights[k];
        for (size_t i = 0; i < size; i++) {
            out[i] = float(out[i] + weight * term[i]);
        }
    }
}

} // namespace

void SumKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    weighted_sum(*this, n * m, out, [&](const Kernel& kernel, float* term) {
        kernel.block(n, x, m, y, d, term);
    });
}

void SumKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    weighted_sum(*this, n * m, out, [&](const Kernel& kernel, float* term) {
        kernel.distance_block(n, x, m, y, d, term);
    });
}

void SumKernel::self_values(size_t n, const float* x, size_t d, float* out)
        const {
    weighted_sum(*this, n, out, [&](const Kernel& kernel, float* term) {
        kernel.self_values(n, x, d, term);
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
