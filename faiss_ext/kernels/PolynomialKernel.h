#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

struct Spec;

/// k(x, y) = (<x, y> + c)^degree, c >= 0. String: `poly(degree=3,c=1)`, the
/// default.
struct PolynomialKernel : Kernel {
    int degree; ///< from 1 to 100
    double c;

    explicit PolynomialKernel(int degree = 3, double c = 1);
    explicit PolynomialKernel(Spec& spec);

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    std::string description() const override;
};

} // namespace faiss_ext
