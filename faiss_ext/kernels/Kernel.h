// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/** A positive semi-definite kernel k(x, y) on float vectors of any dimension.
 *
 * A kernel is the inner product of a feature space: k(x, y) = <phi(x), phi(y)>.
 * FAISS's two metrics are read there: METRIC_INNER_PRODUCT is k(x, y),
 * METRIC_L2 is |phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y).
 *
 * Subclasses implement block(), show their parameters in fields(), and override
 * the other functions where they can do better. All const functions may be
 * called from several threads at once.
 *
 * The value of a pair does not depend on the block it is computed in, nor on
 * the number of threads. Between instruction sets values differ by rounding
 * (see the subclasses).
 */
struct Kernel : HasFields {
    using Registered = Kernel;

    /// false while a parameter waits for train()
    bool is_trained = true;
    bool verbose = false;

    /// Parameters; none by default.
    void fields(FieldVisitor& v) const override;

    /// Checks the parameters.
    void init() override;

    /// As init(): files hold the parameters.
    void restore() override;

    /** Sets parameters that were left to the data. Does nothing by default, and
     * if the kernel is trained.
     *
     * @param x   training vectors, size n * d
     */
    virtual void train(idx_t n, const float* x, size_t d);

    /** A block of the kernel matrix, on the calling thread, without checks.
     *
     * @param x    size n * d
     * @param y    size m * d
     * @param out  k(x_i, y_j), size n * m
     */
    virtual void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const = 0;

    /** The same block of |phi(x_i) - phi(y_j)|^2.
     *
     * By default computed from block() and self_values(); kernels that can
     * avoid the cancellation between close vectors override it.
     */
    virtual void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const;

    /** The same block of scores, which order pairs as the metric does: smaller
     * is nearer. values_of_scores makes the metric of them.
     *
     * By default distances, or negated kernel values. Kernels that fall with a
     * distance between x and y take that for both metrics: pairs stay in order
     * where kernel values vanish beside 1, so that distances are the same
     * float, or below the smallest float.
     */
    virtual void score_block(
            faiss::MetricType metric,
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const;

    /// Replaces scores by distances or kernel values; size n.
    virtual void values_of_scores(
            faiss::MetricType metric,
            size_t n,
            float* scores) const;

    /// out[i] = k(x_i, x_i), on the calling thread. x: size n * d
    virtual void self_values(size_t n, const float* x, size_t d, float* out)
            const;

    /** Throws a faiss::FaissException if the kernel is not defined on one of
     * the vectors (size n * d), or if k(x, x) of one is beyond max_self_value.
     *
     * By default all components must be finite. Kernels whose values are
     * bounded leave the second check out. `where` names the caller for the
     * message.
     */
    virtual void check_input(
            idx_t n,
            const float* x,
            size_t d,
            const char* where) const;

    /// Where k(x, x) and k(y, y) are within it, k(x, y) and the squared
    /// distance in feature space are within the range of float
    /// (Cauchy-Schwarz).
    static constexpr float max_self_value =
            std::numeric_limits<float>::max() / 4;

    /// Below it k(x, x), and with it k(x, y), has lost digits.
    static constexpr float least_self_value = 1e-36f;

    /// k(x, y) of two vectors of dimension d
    float operator()(const float* x, const float* y, size_t d) const;

    /** The kernel matrix, on all threads; input is checked, Ctrl-C works.
     *
     * @param x    size n * d
     * @param y    size m * d
     * @param out  size n * m
     */
    void gram(
            idx_t n,
            const float* x,
            idx_t m,
            const float* y,
            size_t d,
            float* out) const;

    /// The string from which kernel_factory makes the same kernel again; for
    /// one whose class is not registered, a name to show.
    virtual std::string description() const;

    /// A copy. By default by the copy constructor of the class, which must be
    /// registered.
    virtual std::unique_ptr<Kernel> clone() const;

    /// Makes this kernel equal to another one of the same class. By default by
    /// the assignment operator of the class, which must be registered.
    virtual void assign(const Kernel& other);

   protected:
    /// Throws if k(x, x) of a vector is beyond max_self_value, or below `least`
    /// though its components are not all 0.
    void check_self_values(
            idx_t n,
            const float* x,
            size_t d,
            const char* where,
            float least = 0) const;
};

template <>
ClassTable<Kernel>& class_table();

/** Makes a kernel from a string such as `gaussian(gamma=0.5)`, `laplacian`,
 * `matern(nu=1.5)` or `linear`.
 *
 * A bandwidth that is left out, or `gamma=auto`, is set by Kernel::train.
 * Throws a faiss::FaissException that marks the place of an error.
 */
std::unique_ptr<Kernel> kernel_factory(const std::string& description);

} // namespace faiss_ext
