#pragma once

#include <faiss_ext/Kernel.h>

namespace faiss_ext {

struct Spec;

/** Additive homogeneous kernels: k(x, y) = sum_i k(x_i, y_i) on vectors with
 * components >= 0, such as histograms, bags of words and spectra.
 *
 * A negative component is an error. k(x, x) = sum_i x_i for all of them, so
 * that they are normalised on L1-normalised vectors. Values are accurate to
 * 1e-4 relative for any dimension, typically to 1e-6. Components below 1e-37
 * count as 0.
 */
struct AdditiveKernel : Kernel {
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
};

/** k(x, y) = 2 x y / (x + y), 0 where both are 0. String: `chi2`.
 *
 * Its METRIC_L2 is the chi-square distance sum (x - y)^2 / (x + y).
 */
struct Chi2Kernel : AdditiveKernel {
    Chi2Kernel() = default;
    explicit Chi2Kernel(Spec&) {}

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    std::string description() const override;
};

/** k(x, y) = min(x, y). String: `intersection`.
 *
 * Its METRIC_L2 is the L1 distance.
 */
struct IntersectionKernel : AdditiveKernel {
    IntersectionKernel() = default;
    explicit IntersectionKernel(Spec&) {}

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    std::string description() const override;
};

/** k(x, y) = x/2 log2((x + y) / x) + y/2 log2((x + y) / y), 0 where one is 0.
 * String: `js`.
 */
struct JensenShannonKernel : AdditiveKernel {
    JensenShannonKernel() = default;
    explicit JensenShannonKernel(Spec&) {}

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    std::string description() const override;
};

/** k(x, y) = sqrt(x y), the Bhattacharyya coefficient. String: `hellinger`.
 *
 * Its METRIC_L2 is sum (sqrt(x) - sqrt(y))^2, twice the squared Hellinger
 * distance.
 */
struct HellingerKernel : AdditiveKernel {
    HellingerKernel() = default;
    explicit HellingerKernel(Spec&) {}

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    std::string description() const override;
};

} // namespace faiss_ext
