// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

struct AdditiveLoops;

/** Base class of additive homogeneous kernels, k(x, y) = sum_i k(x_i, y_i). For
 * vectors with components >= 0, such as histograms, bags of words and spectra.
 *
 * k(x, x) = sum_i x_i for all of these kernels, so they are normalised on
 * L1-normalised vectors. Values are accurate to 1e-4 relative for any
 * dimension, typically to 1e-6.
 *
 * These inputs are errors:
 *
 * - a negative component
 * - a component above 1e37
 * - a vector whose components add up to less than 1e-30 times their number, but
 *   not to 0: the part of a component below 1e-37 is lost
 *
 * The kernels are homogeneous, k(c x, c y) = c k(x, y), so that a function of
 * the log-ratio determines them: k(x, y) = sqrt(x y) K(log y / x). Explicit
 * feature maps are made from its Fourier transform (HomogeneousKernelMap;
 * Vedaldi and Zisserman, PAMI 2012, section 3 and table 1).
 *
 * A kernel of your own needs only the three functions below. Its values are
 * then computed from signature(), one component at a time.
 */
struct AdditiveKernel : Kernel {
    enum class Window { uniform, rectangular };

    /// The signature K(lambda) = k(exp(lambda / 2), exp(-lambda / 2)) for one
    /// component.
    virtual double signature(double lambda) const = 0;

    /// The spectrum: 1 / (2 pi) times the integral of exp(-i omega lambda)
    /// K(lambda).
    virtual double spectrum(double omega) const = 0;

    /// The default period Lambda to sample the spectrum with, for `order`
    /// samples besides the sample at 0. It is 0 if the spectrum is a single
    /// line at 0, as for Hellinger's kernel.
    virtual double default_period(int order, Window window) const = 0;

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
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void self_values(size_t n, const float* x, size_t d, float* out)
            const override;
    bool ignores_zeros() const override {
        return true;
    }
    ComponentNorm norm_of_unshared() const override {
        return ComponentNorm::l1;
    }
    std::optional<SharedSum> shared_sum(
            faiss::MetricType metric) const override;

   protected:
    AdditiveKernel() = default;

    /// A kernel with vector instructions, as this library's own kernels have.
    explicit AdditiveKernel(const AdditiveLoops& loops) : loops(&loops) {}

   private:
    const AdditiveLoops* loops = nullptr;
};

/** The chi2 kernel, k(x, y) = 2 x y / (x + y), and 0 if both are 0. String:
 * `chi2`.
 *
 * Its METRIC_L2 is the chi-square distance sum (x - y)^2 / (x + y).
 */
struct Chi2Kernel : AdditiveKernel {
    Chi2Kernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

/** The histogram intersection kernel, k(x, y) = min(x, y). String:
 * `intersection`.
 *
 * Its METRIC_L2 is the L1 distance.
 */
struct IntersectionKernel : AdditiveKernel {
    IntersectionKernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

/// The Jensen-Shannon kernel, k(x, y) = x/2 log2((x + y) / x) + y/2 log2((x +
/// y) / y), and 0 if one is 0. String: `js`.
struct JensenShannonKernel : AdditiveKernel {
    JensenShannonKernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

/** Hellinger's kernel, k(x, y) = sqrt(x y), the Bhattacharyya coefficient.
 * String: `hellinger`.
 *
 * Its METRIC_L2 is sum (sqrt(x) - sqrt(y))^2, twice the squared Hellinger
 * distance.
 */
struct HellingerKernel : AdditiveKernel {
    HellingerKernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

} // namespace faiss_ext
