#include <faiss_ext/kernels/ExponentialKernel.h>

#include <cmath>

#include <faiss_ext/kernels/kernel_registry.h>

#include "core/errors.h"
#include "core/number_format.h"

namespace faiss_ext {

ExponentialKernel::ExponentialKernel(const Kernel& kernel, double scale)
        : kernel(kernel.clone()), scale(scale) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            scale > 0 && std::isfinite(scale),
            "the scale is %g, expected a positive number",
            scale);
    is_trained = kernel.is_trained;
}

ExponentialKernel::ExponentialKernel(Spec& spec) {
    scale = spec.get_double("scale", std::nullopt, 1e-6, 1e6);
    Spec item = spec.get_item(0, kernel_names());
    kernel = make_kernel(item);
    is_trained = kernel->is_trained;
}

void ExponentialKernel::train(idx_t n, const float* x, size_t d) {
    kernel->verbose = verbose;
    kernel->train(n, x, d);
    is_trained = kernel->is_trained;
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

std::string ExponentialKernel::description() const {
    return "exponential(" + kernel->description() +
            ",scale=" + shortest(scale) + ")";
}

} // namespace faiss_ext
