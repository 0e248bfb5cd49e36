// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/NormalizedKernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <faiss_ext/kernels/LinearKernel.h>

#include "core/check.h"
#include "kernels/shared_sums.h"
#include "simd/elementwise.h"

namespace faiss_ext {

namespace {

/// Divides k(x, y) by sqrt(k(x, x) k(y, y)); gives 0 if one of these is 0. The
/// product of two inverse roots may exceed the range of float.
void normalize(
        size_t n,
        const float* x_self,
        size_t m,
        const float* y_self,
        float* block) {
    const auto inverse_root = [](float v) {
        return v > 0 ? 1 / std::sqrt(v) : 0;
    };
    std::vector<float> y_scale(m);
    std::transform(y_self, y_self + m, y_scale.begin(), inverse_root);
    for (size_t i = 0; i < n; i++) {
        const double x_scale = inverse_root(x_self[i]);
        for (size_t j = 0; j < m; j++) {
            const double s = x_scale * y_scale[j];
            block[i * m + j] = s > 0 ? float(block[i * m + j] * s) : 0;
        }
    }
}

} // namespace

void NormalizedKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    std::vector<float> self(n + m);
    kernel->self_values(n, x, d, self.data());
    kernel->self_values(m, y, d, self.data() + n);
    kernel->block(n, x, m, y, d, out);
    normalize(n, self.data(), m, self.data() + n, out);
}

void NormalizedKernel::self_values(
        size_t n,
        const float* x,
        size_t d,
        float* out) const {
    kernel->self_values(n, x, d, out);
    for (size_t i = 0; i < n; i++) {
        out[i] = out[i] > 0 ? 1 : 0;
    }
}

namespace {

/// Vectors and their squared lengths. A vector is scaled by a power of two if
/// its squared length would lose digits or overflow.
struct ScaledVectors {
    const float* x;
    std::vector<float> scaled;          ///< empty if none is scaled
    std::vector<float> squared_lengths; ///< of the vectors at x

    ScaledVectors(size_t n, const float* x, size_t d)
            : x(x), squared_lengths(n) {
        const LinearKernel linear;
        linear.self_values(n, x, d, squared_lengths.data());
        for (size_t i = 0; i < n; i++) {
            float& squared = squared_lengths[i];
            if (squared >= 0x1p-60f && squared <= 0x1p60f) {
                continue;
            }
            const float largest = simd::max_abs(d, x + i * d);
            if (largest == 0) {
                continue;
            }
            if (scaled.empty()) {
                scaled.assign(x, x + n * d);
                this->x = scaled.data();
            }
            float* row = &scaled[i * d];
            for (size_t k = 0; k < d; k++) {
                row[k] = std::ldexp(row[k], -std::ilogb(largest));
            }
            linear.self_values(1, row, d, &squared);
        }
    }
};

} // namespace

void CosineKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    const ScaledVectors a(n, x, d), b(m, y, d);
    LinearKernel().block(n, a.x, m, b.x, d, out);
    normalize(n, a.squared_lengths.data(), m, b.squared_lengths.data(), out);
}

void CosineKernel::self_values(size_t n, const float* x, size_t d, float* out)
        const {
    for (size_t i = 0; i < n; i++) {
        out[i] = simd::max_abs(d, x + i * d) > 0 ? 1 : 0;
    }
}

void CosineKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_finite(n, x, d, where);
}

bool NormalizedKernel::has_unit_vectors() const {
    return kernel->has_unit_vectors();
}

bool NormalizedKernel::ignores_zeros() const {
    return kernel->ignores_zeros();
}

ComponentNorm NormalizedKernel::norm_of_unshared() const {
    return kernel->norm_of_unshared();
}

std::optional<SharedSum> NormalizedKernel::shared_sum(
        faiss::MetricType metric) const {
    const auto sum = kernel->shared_sum(faiss::METRIC_INNER_PRODUCT);
    if (!sum || !sum->is_kernel) {
        return std::nullopt;
    }
    return sum_of_normalized(*sum->terms, metric, sum->is_of_histograms);
}

std::optional<SharedSum> CosineKernel::shared_sum(
        faiss::MetricType metric) const {
    static const LinearKernel terms;
    return sum_of_normalized(terms, metric, false);
}

} // namespace faiss_ext
