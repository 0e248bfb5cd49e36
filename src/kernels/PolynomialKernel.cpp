#include <faiss_ext/kernels/PolynomialKernel.h>

#include <cmath>

#include <faiss_ext/core/Spec.h>

#include "core/errors.h"
#include "core/number_format.h"
#include "simd/pairwise.h"

namespace faiss_ext {

PolynomialKernel::PolynomialKernel(int degree, double c)
        : degree(degree), c(c) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            degree >= 1 && degree <= 100 && c >= 0 && std::isfinite(c),
            "degree is %d and c is %g, expected a degree from 1 to 100 and a number >= 0",
            degree,
            c);
}

PolynomialKernel::PolynomialKernel(Spec& spec)
        : PolynomialKernel(
                  int(spec.get_int("degree", 3, 1, 100)),
                  spec.get_double("c", 1.0, 0, 1e30)) {}

void PolynomialKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(simd::PairOp::dot, n, x, m, y, d, out, m);
    for (size_t i = 0; i < n * m; i++) {
        out[i] = float(std::pow(out[i] + c, degree));
    }
}

std::string PolynomialKernel::description() const {
    return "poly(degree=" + std::to_string(degree) + ",c=" + shortest(c) + ")";
}

} // namespace faiss_ext
