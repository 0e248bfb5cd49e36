// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

struct AdditiveLoops;

/** Additive homogeneous kernels: k(x, y) = sum_i k(x_i, y_i) on vectors with
 * components >= 0, such as histograms, bags of words and spectra.
 *
 * A negative component is an error, and so is one above 1e37, or a vector whose
 * components add up to less than 1e-30 times their number, but not to 0: of a
 * component, what is below 1e-37 is lost. k(x, x) = sum_i x_i for all of them,
 * so that they are normalised on L1-normalised vectors. Values are accurate to
 * 1e-4 relative for any dimension, typically to 1e-6.
 *
 * They are homogeneous, k(c x, c y) = c k(x, y), so that one function of the
 * log-ratio tells all: k(x, y) = sqrt(x y) K(log y / x). Its Fourier transform
 * is what explicit feature maps are made of (HomogeneousKernelMap; Vedaldi and
 * Zisserman, PAMI 2012, section 3 and table 1). A kernel of your own needs the
 * three functions below and no more; its values are then computed from
 * signature(), one component at a time.
 */
struct AdditiveKernel : Kernel {
    enum class Window { uniform, rectangular };

    /// K(lambda) = k(exp(lambda / 2), exp(-lambda / 2)) for one component
    virtual double signature(double lambda) const = 0;

    /// 1 / (2 pi) times the integral of exp(-i omega lambda) K(lambda)
    virtual double spectrum(double omega) const = 0;

    /// A period Lambda at which to sample the spectrum, `order` samples besides
    /// that at 0; 0 if the spectrum is a single line at 0, as for Hellinger's.
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

   protected:
    AdditiveKernel() = default;

    /// with vector instructions, which this library's own kernels have
    explicit AdditiveKernel(const AdditiveLoops& loops) : loops(&loops) {}

   private:
    const AdditiveLoops* loops = nullptr;
};

/** k(x, y) = 2 x y / (x + y), 0 where both are 0. String: `chi2`.
 *
 * Its METRIC_L2 is the chi-square distance sum (x - y)^2 / (x + y).
 */
struct Chi2Kernel : AdditiveKernel {
    Chi2Kernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

/** k(x, y) = min(x, y). String: `intersection`.
 *
 * Its METRIC_L2 is the L1 distance.
 */
struct IntersectionKernel : AdditiveKernel {
    IntersectionKernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

/** k(x, y) = x/2 log2((x + y) / x) + y/2 log2((x + y) / y), 0 where one is 0.
 * String: `js`.
 */
struct JensenShannonKernel : AdditiveKernel {
    JensenShannonKernel();
    double signature(double lambda) const override;
    double spectrum(double omega) const override;
    double default_period(int order, Window window) const override;
};

/** k(x, y) = sqrt(x y), the Bhattacharyya coefficient. String: `hellinger`.
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
