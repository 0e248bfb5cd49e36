// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/CombinedKernel.h>

#include <algorithm>

namespace faiss_ext {

void CombinedKernel::init() {
    check_fields(*this);
    is_trained =
            std::all_of(kernels.begin(), kernels.end(), [](const auto& kernel) {
                return kernel->is_trained;
            });
}

template <class Train>
void CombinedKernel::train_all(Train&& train) {
    auto trained = kernels;
    for (auto& kernel : trained) {
        kernel->verbose = verbose;
        train(*kernel);
    }
    kernels = trained;
    init();
}

void CombinedKernel::train(idx_t n, const float* x, size_t d) {
    train_all([&](Kernel& kernel) { kernel.train(n, x, d); });
}

void CombinedKernel::train_sparse(const SparseVectors& x) {
    train_all([&](Kernel& kernel) { kernel.train_sparse(x); });
}

void CombinedKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    combine(n * m, out, [&](const Kernel& kernel, float* values) {
        kernel.block(n, x, m, y, d, values);
    });
}

void CombinedKernel::self_values(size_t n, const float* x, size_t d, float* out)
        const {
    combine(n, out, [&](const Kernel& kernel, float* values) {
        kernel.self_values(n, x, d, values);
    });
}

void CombinedKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    for (const auto& kernel : kernels) {
        kernel->check_input(n, x, d, where);
    }
}

bool CombinedKernel::ignores_zeros() const {
    return std::all_of(kernels.begin(), kernels.end(), [](const auto& kernel) {
        return kernel->ignores_zeros();
    });
}

ComponentNorm CombinedKernel::norm_of_unshared() const {
    const ComponentNorm first = kernels.empty()
            ? ComponentNorm::none
            : kernels.front()->norm_of_unshared();
    const bool is_same = std::all_of(
            kernels.begin(), kernels.end(), [&](const auto& kernel) {
                return kernel->norm_of_unshared() == first;
            });
    return is_same ? first : ComponentNorm::none;
}

bool CombinedKernel::has_unit_vectors() const {
    return std::all_of(kernels.begin(), kernels.end(), [](const auto& kernel) {
        return kernel->has_unit_vectors();
    });
}

bool CombinedKernel::is_normalized() const {
    return std::all_of(kernels.begin(), kernels.end(), [](const auto& kernel) {
        return kernel->is_normalized();
    });
}

} // namespace faiss_ext
