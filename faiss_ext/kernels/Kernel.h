// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/kernels/SharedSum.h>

namespace faiss_ext {

/** A positive semi-definite kernel k(x, y) on float vectors of any dimension.
 *
 * A kernel is the inner product of a feature space: k(x, y) = <phi(x), phi(y)>.
 * FAISS's two metrics apply there: METRIC_INNER_PRODUCT is k(x, y), and
 * METRIC_L2 is |phi(x) - phi(y)|^2 = k(x, x) + k(y, y) - 2 k(x, y).
 *
 * Subclasses implement block() and show their parameters in fields(). They
 * override the other functions if they can do better. All const functions may
 * be called from several threads at once.
 *
 * The value of a pair does not depend on the block it is computed in, nor on
 * the number of threads. Between instruction sets values differ by rounding
 * (see the subclasses).
 */
struct Kernel : HasFields {
    using Registered = Kernel;

    /// False until train() has set all parameters.
    bool is_trained = true;
    bool verbose = false;

    /// Shows the parameters. By default there are none.
    void fields(FieldVisitor& v) const override;

    /// Checks the parameters.
    void init() override;

    /// Checks the parameters, as init() does, because files contain them.
    void restore() override;

    /** Chooses the parameters that were left out, from the data. Has no effect
     * by default, or on a trained kernel.
     *
     * @param x   training vectors, size n * d
     */
    virtual void train(idx_t n, const float* x, size_t d);

    /** Like train, with sparse vectors.
     *
     * By default it makes dense copies of at most 65,536 vectors, drawn at
     * random, in at most 1 GB. The kernels of this library learn from up to
     * 65,536 vectors without dense copies; parameters are the same as for
     * dense vectors, up to rounding.
     */
    virtual void train_sparse(const SparseVectors& x);

    /** Computes a block of the kernel matrix, on the calling thread, without
     * checks.
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

    /** Computes the block of |phi(x_i) - phi(y_j)|^2.
     *
     * By default it is computed from block() and self_values(). Kernels that
     * can avoid the cancellation between close vectors override it.
     */
    virtual void distance_block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const;

    /** Computes the block of scores, which order pairs as the metric does:
     * smaller is nearer. values_of_scores turns them into the metric.
     *
     * By default scores are distances, or negated kernel values. Kernels that
     * fall with a distance between x and y use this distance as the score for
     * both metrics. Pairs then stay in order even if kernel values are so small
     * that distances round to the same float, or kernel values to 0.
     */
    virtual void score_block(
            faiss::MetricType metric,
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            size_t d,
            float* out) const;

    /// Turns scores into distances or kernel values, in place; size n.
    virtual void values_of_scores(
            faiss::MetricType metric,
            size_t n,
            float* scores) const;

    /// Computes out[i] = k(x_i, x_i), on the calling thread. x has size n * d.
    virtual void self_values(size_t n, const float* x, size_t d, float* out)
            const;

    /** Whether k(x, y) stays the same, up to rounding, if components that are 0
     * in both vectors are left out, and if the others change their order.
     * Sparse vectors need such a kernel. By default false.
     */
    virtual bool ignores_zeros() const;

    /** The norm by which components count that are 0 in the other vector. If
     * they are replaced by one component, their norm, then k(x, y) and the
     * distance stay the same, up to rounding. Sparse search compares vectors in
     * this way. By default none.
     */
    virtual ComponentNorm norm_of_unshared() const;

    /// Whether k(x, x) = 1 for every x, so that a squared distance determines
    /// the kernel value. By default false.
    virtual bool has_unit_vectors() const;

    /// The same, except for vectors of zeros, for which k(x, x) may be smaller.
    /// By default as has_unit_vectors.
    virtual bool is_normalized() const;

    /// An upper bound of the kernel from the components that two vectors share.
    /// Sparse search uses it to skip vectors. By default there is none, and all
    /// vectors are compared.
    virtual std::optional<SharedSum> shared_sum(faiss::MetricType metric) const;

    /** Throws a faiss::FaissException if the kernel is not defined on one of
     * the vectors (size n * d), or if k(x, x) of one exceeds max_self_value.
     *
     * By default all components must be finite. Kernels with bounded values
     * leave out the second check. `where` names the caller in the message.
     */
    virtual void check_input(
            idx_t n,
            const float* x,
            size_t d,
            const char* where) const;

    /// Does check_input for sparse vectors. If norm_of_unshared is l2, lengths
    /// must be within the range of float.
    void check_sparse_input(const CanonicalVectors& x, const char* where) const;

    /// If k(x, x) and k(y, y) are at most this, k(x, y) and the squared
    /// distance in feature space are within the range of float
    /// (Cauchy-Schwarz).
    static constexpr float max_self_value =
            std::numeric_limits<float>::max() / 4;

    /// If k(x, x) is below this, k(x, x) and k(x, y) have lost digits.
    static constexpr float least_self_value = 1e-36f;

    /// k(x, y) of two vectors of dimension d.
    float operator()(const float* x, const float* y, size_t d) const;

    /** Computes the kernel matrix, on all threads. It checks its input, and
     * Ctrl-C interrupts it.
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

    /// Like gram, for sparse vectors of one dimension. Their dense forms have
    /// the same values up to rounding. Throws if the kernel does not have
    /// ignores_zeros().
    void gram(const SparseVectors& x, const SparseVectors& y, float* out) const;

    /// The string from which kernel_factory makes the same kernel. If the class
    /// is not registered, it is only a name to show.
    virtual std::string description() const;

    /// Returns a copy. By default it uses the copy constructor of the class,
    /// which must be registered.
    virtual std::unique_ptr<Kernel> clone() const;

    /// Makes this kernel equal to another one of the same class. By default it
    /// uses the assignment operator of the class, which must be registered.
    virtual void assign(const Kernel& other);

   protected:
    /// Throws if k(x, x) of a vector exceeds max_self_value, or if it is below
    /// `least` and the components are not all 0.
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
 * If the bandwidth is left out, or with `gamma=auto`, Kernel::train sets it.
 * Throws a faiss::FaissException that marks the place of an error.
 */
std::unique_ptr<Kernel> kernel_factory(const std::string& description);

} // namespace faiss_ext
