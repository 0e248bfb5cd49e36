// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <random>

#include <faiss_ext/kernels/BandwidthKernel.h>

namespace faiss_ext {

/** A kernel K(x - y) that falls with a norm of x - y, K(0) = 1.
 *
 * With r = scale * |x - y|, where the norm and the scale's dependence on the
 * bandwidth gamma are the subclass's, K is the function profile(r). By
 * Bochner's theorem K is the Fourier transform of a probability density, from
 * which sample_frequency draws.
 *
 * Errors, with s = r^2 for the Gaussian kernel, r for the Laplacian one and
 * sqrt(2 nu) r for Matern kernels: values are accurate to 2e-6 where s <= 1 and
 * to 2e-6 s relative to K beyond (down to the smallest normal floats),
 * distances to 1e-5 relative, however close the vectors are, down to an L2
 * distance of 1e-20 sqrt(d). A bandwidth at which K tells smaller ones apart is
 * refused (max_squared_gamma).
 */
struct ShiftInvariantKernel : BandwidthKernel {
    enum class Norm { L1, L2 };

    /** Parameters of the choice of gamma in train(), by the protocol of
     * Raginsky and Lazebnik 2009, section 3: the radius R is the mean distance
     * from a vector to its neighbor-th nearest neighbour, and gamma is such
     * that distances are counted in units of R. Here are the rank of the
     * neighbour, the number of queries sampled from the training set, that of
     * the vectors among which their neighbours are looked for (0: all), and the
     * seed of the samples. Where there are fewer vectors than `neighbor`, the
     * farthest counts.
     */
    int neighbor = 50;
    idx_t sample_queries = 1000;
    idx_t sample_points = 0;
    int64_t sample_seed = 1234;

    ShiftInvariantKernel() = default;

    /// @param gamma  bandwidth > 0, or 0 to have train() set it
    explicit ShiftInvariantKernel(double gamma);

    void fields(FieldVisitor& v) const override;

    /// the norm that K depends on
    virtual Norm norm() const = 0;

    /// gamma such that K(x - y) = profile(|x - y| / radius)
    virtual double gamma_of_radius(double radius) const = 0;

    /// r / |x - y|, in the present bandwidth
    virtual double inverse_length() const = 0;

    /// inverse_length() / 2 pi, by which hashes multiply their frequencies;
    /// throws where these would leave the range of float.
    double turns() const;

    /// K as a function of r >= 0: decreasing from 1 to 0
    virtual double profile(double r) const = 0;

    /// The r >= 0 where profile(r) = k, for k in (0, 1]; infinity for k = 0. By
    /// bisection, unless overridden.
    virtual double inverse_profile(double k) const;

    /// 1 - K as a function of r. By default 1 - profile(r); subclasses do it
    /// without cancellation.
    virtual double one_minus_profile(double r) const;

    /** L_K = sqrt(E |omega|^2), omega from the spectral density of K at the
     * present bandwidth, in d >= 1 dimensions; infinite where omega has no
     * second moment. It is a Lipschitz constant of the kernel's feature map,
     * sqrt(2 (1 - K(x - y))) <= L_K |x - y|_2 (L_K / sqrt(d) is the least one),
     * and what the bits in theorem 2.6 of Raginsky and Lazebnik 2009 are
     * proportional to (bits_for). Throws if the bandwidth is not set.
     */
    double lipschitz_constant(size_t d) const;

    /// E omega_k^2 of a coordinate of sample_frequency's omega; may be infinite
    virtual double frequency_variance() const = 0;

    /** Draws omega from the spectral density of K at gamma =
     * gamma_of_radius(1), so that E cos(omega . delta) = profile(|delta|).
     *
     * @param omega   output, size d
     */
    virtual void sample_frequency(std::mt19937_64& rng, size_t d, float* omega)
            const = 0;

    /// |x - y|, squared if the norm is L2
    void score_block(
            faiss::MetricType metric,
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const override;
    void values_of_scores(faiss::MetricType metric, size_t n, float* scores)
            const override;
    /// The largest gamma, times d, that a kernel with the norm L2 takes:
    /// squared distances have absolute errors of up to d times the smallest
    /// float, 1.4e-45, which up to there change K by less than 2e-6 (but for
    /// Matern kernels of nu < 1/2, steeper at 0).
    static constexpr double max_squared_gamma = 1e33;

    /// The largest inverse_length() times a vector's norm that check_phases
    /// takes.
    static constexpr double max_radius = 1e6;

    /** Throws unless all components are finite and, where the bandwidth is set,
     * vectors are near enough to the origin for the phases of random
     * frequencies, whose errors as floats are then a hundredth of a turn,
     * about.
     */
    void check_phases(idx_t n, const float* x, size_t d, const char* where)
            const;

    /// Throws unless all components are finite, squared L2 norms at most
    /// FLT_MAX / 8, or L1 norms FLT_MAX / 4, so that no distance overflows, and
    /// gamma is at most max_squared_gamma / d where distances are squared.
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;

   protected:
    /** Replaces norms (squared, if it is L2) by K, or by 2 (1 - K).
     *
     * By default from profile() and one_minus_profile(); subclasses have
     * vector instructions for it.
     *
     * @param v   size n
     */
    virtual void kernel_of_norms(size_t n, float* v, bool distance) const;
    double choose_gamma(idx_t n, const float* x, size_t d) const override;
    bool nearest_are_equal(double chosen) const override;
};

} // namespace faiss_ext
