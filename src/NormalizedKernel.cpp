#include <faiss_ext/NormalizedKernel.h>

#include <cmath>
#include <vector>

#include <faiss_ext/LinearKernel.h>
#include <faiss_ext/registry.h>

namespace faiss_ext {

NormalizedKernel::NormalizedKernel(const Kernel& kernel)
        : kernel(kernel.clone()) {
    is_trained = kernel.is_trained;
}

NormalizedKernel::NormalizedKernel(Spec& spec) {
    Spec item = spec.get_item(0, kernel_names());
    kernel = make_kernel(item);
    is_trained = kernel->is_trained;
}

NormalizedKernel::NormalizedKernel(const NormalizedKernel& other)
        : Kernel(other), kernel(other.kernel->clone()) {}

void NormalizedKernel::train(idx_t n, const float* x, size_t d) {
    kernel->verbose = verbose;
    kernel->train(n, x, d);
    is_trained = kernel->is_trained;
}

void NormalizedKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    std::vector<float> scale(n + m);
    kernel->self_values(n, x, d, scale.data());
    kernel->self_values(m, y, d, scale.data() + n);
    for (float& v : scale) {
        v = v > 0 && std::isfinite(v) ? 1 / std::sqrt(v) : 0;
    }
    kernel->block(n, x, m, y, d, out);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            const double s = double(scale[i]) * scale[n + j];
            out[i * m + j] = s > 0 ? float(out[i * m + j] * s) : 0;
        }
    }
}

void NormalizedKernel::self_values(
        size_t n,
        const float* x,
        size_t d,
        float* out) const {
    kernel->self_values(n, x, d, out);
    for (size_t i = 0; i < n; i++) {
        out[i] = out[i] > 0 && std::isfinite(out[i]) ? 1 : 0;
    }
}

void NormalizedKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    kernel->check_input(n, x, d, where);
}

std::string NormalizedKernel::description() const {
    return "normalized(" + kernel->description() + ")";
}

CosineKernel::CosineKernel() : NormalizedKernel(LinearKernel()) {}

CosineKernel::CosineKernel(Spec&) : CosineKernel() {}

std::string CosineKernel::description() const {
    return "cosine";
}

} // namespace faiss_ext
