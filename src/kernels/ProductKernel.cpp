// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/ProductKernel.h>

#include <algorithm>
#include <vector>

#include "core/scratch.h"

namespace faiss_ext {

void ProductKernel::add(const Kernel& kernel) {
    ProductKernel longer = *this;
    longer.kernels.emplace_back(kernel.clone());
    longer.init();
    *this = std::move(longer);
}

void ProductKernel::fields(FieldVisitor& v) const {
    v.parts("kernels", kernels, nullptr, 1, 1, "the kernels to multiply");
}

// The product of some factors may exceed the range of float.
void ProductKernel::combine(size_t size, float* out, const Values& values)
        const {
    const Scratch factor(size);
    std::vector<double> product(size, 1.0);
    for (const auto& kernel : kernels) {
        values(*kernel, factor.get());
        for (size_t i = 0; i < size; i++) {
            product[i] *= factor[i];
        }
    }
    std::copy(product.begin(), product.end(), out);
}

// Let a_x = a(x, x) and A = a_x + a_y - 2 a(x, y), and the same for b. The
// distance of the product a b is
//   a_x b_x + a_y b_y - 2 a(x, y) b(x, y)
//     = (a_x - a_y) (b_x - b_y) / 2 + A (b_x + b_y) / 2 + B (a_x + a_y) / 2
//       - A B / 2,
// in which all terms are small if x and y are close. More factors follow one by
// one.
void ProductKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    std::vector<double> self(n + m, 1.0), distance(n * m, 0.0);
    std::vector<float> b_self(n + m), b_distance(n * m);
    for (const auto& kernel : kernels) {
        kernel->self_values(n, x, d, b_self.data());
        kernel->self_values(m, y, d, b_self.data() + n);
        kernel->distance_block(n, x, m, y, d, b_distance.data());
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                const double ax = self[i], ay = self[n + j];
                const double bx = b_self[i], by = b_self[n + j];
                double& A = distance[i * m + j];
                const double B = b_distance[i * m + j];
                A = ((ax - ay) * (bx - by) + A * (bx + by) + B * (ax + ay) -
                     A * B) /
                        2;
            }
        }
        for (size_t i = 0; i < n + m; i++) {
            self[i] *= b_self[i];
        }
    }
    std::transform(distance.begin(), distance.end(), out, [](double v) {
        return v < 0 ? 0 : float(v);
    });
}

void ProductKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    CombinedKernel::check_input(n, x, d, where);
    if (is_trained && !is_normalized()) {
        check_self_values(n, x, d, where, least_self_value);
    }
}

} // namespace faiss_ext
