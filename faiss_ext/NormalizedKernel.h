#pragma once

#include <faiss_ext/Kernel.h>

namespace faiss_ext {

struct Spec;

/** k(x, y) / sqrt(k(x, x) k(y, y)) of another kernel k; 0 where k(x, x) or
 * k(y, y) is 0 or beyond the range of float. String: `normalized(chi2)`.
 */
struct NormalizedKernel : Kernel {
    std::unique_ptr<Kernel> kernel;

    /// @param kernel  is copied
    explicit NormalizedKernel(const Kernel& kernel);
    explicit NormalizedKernel(Spec& spec);
    NormalizedKernel(const NormalizedKernel& other);

    void train(idx_t n, const float* x, size_t d) override;
    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    std::string description() const override;
};

/// The cosine of the angle between x and y. String: `cosine`.
struct CosineKernel : NormalizedKernel {
    CosineKernel();
    explicit CosineKernel(Spec& spec);
    std::string description() const override;
};

} // namespace faiss_ext
