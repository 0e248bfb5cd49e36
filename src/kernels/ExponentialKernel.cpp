// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/ExponentialKernel.h>

#include <cmath>

namespace faiss_ext {

ExponentialKernel::ExponentialKernel(const Kernel& kernel, double scale)
        : WrappedKernel(kernel), scale(scale) {
    init();
}

void ExponentialKernel::fields(FieldVisitor& v) const {
    WrappedKernel::fields(v);
    v.number("scale", scale, 1e-6, 1e6, "s in exp(s (k - 1))");
}

void ExponentialKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    kernel->block(n, x, m, y, d, out);
    const float s = float(scale);
    for (size_t i = 0; i < n * m; i++) {
        out[i] = std::exp(s * (out[i] - 1));
    }
}

void ExponentialKernel::self_values(
        size_t n,
        const float* x,
        size_t d,
        float* out) const {
    kernel->self_values(n, x, d, out);
    const float s = float(scale);
    for (size_t i = 0; i < n; i++) {
        out[i] = std::exp(s * (out[i] - 1));
    }
}

void ExponentialKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    kernel->check_input(n, x, d, where);
    if (is_trained) {
        check_self_values(n, x, d, where);
    }
}

bool ExponentialKernel::has_unit_vectors() const {
    return kernel->has_unit_vectors();
}

bool ExponentialKernel::is_normalized() const {
    return kernel->is_normalized();
}

bool ExponentialKernel::ignores_zeros() const {
    return kernel->ignores_zeros();
}

ComponentNorm ExponentialKernel::norm_of_unshared() const {
    return kernel->norm_of_unshared();
}

} // namespace faiss_ext
