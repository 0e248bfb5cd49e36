// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include <faiss_ext/kernels/BandwidthKernel.h>

namespace faiss_ext {

/** A kernel K(x - y) that falls from K(0) = 1 as a norm of x - y grows.
 *
 * K is the function profile(r) of r = scale * |x - y|. The subclass defines the
 * norm, and how the scale depends on the bandwidth gamma. By Bochner's theorem
 * K is the Fourier transform of a probability density, from which
 * sample_frequency draws.
 *
 * Accuracy: let s = r^2 for the Gaussian kernel, r for the Laplacian kernel and
 * sqrt(2 nu) r for Matern kernels.
 *
 * - Values are accurate to 2e-6 if s <= 1, and to 2e-6 s relative to K beyond
 *   (down to the smallest normal floats).
 * - Distances are accurate to 1e-5 relative, however close the vectors are,
 *   down to an L2 distance of 1e-20 sqrt(d). Bandwidths at which K
 *   distinguishes smaller distances are refused (max_squared_gamma).
 */
struct ShiftInvariantKernel : BandwidthKernel {
    enum class Norm { L1, L2 };

    /** Parameters for the choice of gamma in train(), by the protocol of
     * Raginsky and Lazebnik 2009, section 3.
     *
     * The radius R is the mean distance from a vector to its neighbor-th
     * nearest neighbour. gamma is chosen such that distances are measured in
     * units of R. The parameters are
     *
     * - neighbor: the rank of the neighbour; if there are fewer vectors, the
     *   farthest one counts
     * - sample_queries: the number of queries sampled from the training set
     * - sample_points: the number of vectors among which their neighbours are
     *   searched (0: all)
     * - sample_seed: the seed of the samples
     */
    int neighbor = 50;
    idx_t sample_queries = 1000;
    idx_t sample_points = 0;
    int64_t sample_seed = 1234;

    ShiftInvariantKernel() = default;

    /// @param gamma  bandwidth > 0, or 0 to let train() set it
    explicit ShiftInvariantKernel(double gamma);

    void fields(FieldVisitor& v) const override;

    /// The norm that K depends on.
    virtual Norm norm() const = 0;

    /// The gamma for which K(x - y) = profile(|x - y| / radius).
    virtual double gamma_of_radius(double radius) const = 0;

    /// r / |x - y| at the current bandwidth.
    virtual double inverse_length() const = 0;

    /// inverse_length() / 2 pi, by which hashes multiply their frequencies.
    /// Throws if the product would exceed the range of float.
    double turns() const;

    /// K as a function of r >= 0, decreasing from 1 to 0.
    virtual double profile(double r) const = 0;

    /// The r >= 0 at which profile(r) = k, for k in (0, 1]; infinity for k = 0.
    /// By bisection, unless overridden.
    virtual double inverse_profile(double k) const;

    /// 1 - K as a function of r. By default 1 - profile(r); subclasses compute
    /// it without cancellation.
    virtual double one_minus_profile(double r) const;

    /** A Lipschitz constant of the kernel's feature map: L_K = sqrt(E
     * |omega|^2), with omega from the spectral density of K at the current
     * bandwidth, in d >= 1 dimensions.
     *
     * It satisfies sqrt(2 (1 - K(x - y))) <= L_K |x - y|_2; the least such
     * constant is L_K / sqrt(d). It is infinite if omega has no second moment.
     * The number of bits in theorem 2.6 of Raginsky and Lazebnik 2009 is
     * proportional to it (bits_for). Throws if the bandwidth is not set.
     */
    double lipschitz_constant(size_t d) const;

    /// E omega_k^2 of one coordinate of sample_frequency's omega; may be
    /// infinite.
    virtual double frequency_variance() const = 0;

    /** Draws omega from the spectral density of K at gamma =
     * gamma_of_radius(1), so that E cos(omega . delta) = profile(|delta|).
     *
     * @param omega   output, size d
     */
    virtual void sample_frequency(std::mt19937_64& rng, size_t d, float* omega)
            const = 0;

    /** Draws the scale of a frequency whose components can then be drawn one by
     * one: omega = scale * z at gamma = gamma_of_radius(1). The components of z
     * are independent, normal if the norm is L2 and Cauchy if it is L1.
     *
     * By default none: the kernel does not tell such a form.
     * GeneratedProjection needs one.
     */
    virtual std::optional<double> sample_scale(std::mt19937_64& rng) const;

    /// The scores are |x - y|, squared if the norm is L2.
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
    /** The largest gamma times d that a kernel with the norm L2 accepts.
     * Squared distances have absolute errors of up to d times the smallest
     * float, 1.4e-45. Up to this gamma they change K by less than 2e-6, except
     * for Matern kernels of nu < 1/2, which are steeper at 0.
     */
    static constexpr double max_squared_gamma = 1e33;

    /// The largest inverse_length() times a vector's norm that check_phases
    /// accepts.
    static constexpr double max_radius = 1e6;

    /** Throws unless all components are finite and vectors are near enough to
     * the origin for the phases of random frequencies.
     *
     * The second check needs the bandwidth to be set. The errors of phases as
     * floats are then about a hundredth of a turn.
     */
    void check_phases(idx_t n, const float* x, size_t d, const char* where)
            const;

    /** Throws unless all components are finite, and no distance can overflow.
     *
     * Squared L2 norms may be at most FLT_MAX / 8, or L1 norms FLT_MAX / 4. If
     * distances are squared, gamma may be at most max_squared_gamma / d.
     */
    void check_input(idx_t n, const float* x, size_t d, const char* where)
            const override;
    bool has_unit_vectors() const override {
        return true;
    }
    bool ignores_zeros() const override {
        return true;
    }
    ComponentNorm norm_of_unshared() const override {
        return norm() == Norm::L1 ? ComponentNorm::l1 : ComponentNorm::l2;
    }
    std::optional<SharedSum> shared_sum(
            faiss::MetricType metric) const override;

   protected:
    /** Replaces norms (squared, if the norm is L2) by K, or by 2 (1 - K).
     *
     * By default it uses profile() and one_minus_profile(); subclasses have
     * vector instructions for it.
     *
     * @param v   size n
     */
    virtual void kernel_of_norms(size_t n, float* v, bool distance) const;
    double choose_gamma(const VectorBatch& x) const override;
    bool nearest_are_equal(double chosen) const override;
};

} // namespace faiss_ext
