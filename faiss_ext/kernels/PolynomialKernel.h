// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

/// The polynomial kernel, k(x, y) = (<x, y> + c)^degree, c >= 0. String:
/// `poly(degree=3,c=1)`, which are the defaults.
struct PolynomialKernel : Kernel {
    int degree = 3;
    double c = 1;

    PolynomialKernel() = default;
    explicit PolynomialKernel(int degree, double c = 1);

    void fields(FieldVisitor& v) const override;

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    /// With c = 0, throws also if k(x, x) of a vector is below
    /// least_self_value, where values lose digits. Zeros are accepted.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool ignores_zeros() const override {
        return true;
    }
    ComponentNorm norm_of_unshared() const override {
        return ComponentNorm::l2;
    }
    std::optional<SharedSum> shared_sum(
            faiss::MetricType metric) const override;
};

} // namespace faiss_ext
