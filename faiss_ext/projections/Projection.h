// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/** A linear map, y = A x, drawn at random or given, and stored in whatever form
 * makes it fast.
 *
 * The result for one vector does not depend on the others in its batch, nor on
 * the number of threads. Vectors may have any finite components. Vectors with
 * components above 2^64, whose sums might overflow, are scaled by a power of
 * two and back.
 */
struct Projection : HasFields {
    using Registered = Projection;

    int d_in = 0;  ///< input dimension
    int d_out = 0; ///< output dimension

    /** Applies the map on the calling thread. Throws if it is empty.
     *
     * @param x   size n * d_in
     * @param y   size n * d_out
     */
    void apply(size_t n, const float* x, float* y) const;

    /** Like apply, for sparse vectors whose columns ascend and occur once
     * (CanonicalVectors). Results are the same as for dense ones, bit for bit.
     *
     * @param x   vectors of dimension d_in
     * @param y   size x.n * d_out
     */
    void apply_sparse(const SparseVectors& x, float* y) const;

    /// The matrix A row by row, size d_out * d_in.
    virtual std::vector<float> matrix() const = 0;

    /// Returns a copy. By default it uses the copy constructor of the class,
    /// which must be registered.
    virtual std::unique_ptr<Projection> clone() const;

    /// Makes this projection equal to another one of the same class.
    virtual void assign(const Projection& other);

    /// Shows d_in and d_out; subclasses then show their own fields.
    void fields(FieldVisitor& v) const override;

   protected:
    /// Does apply() for vectors whose components are at most 2^64.
    virtual void multiply(size_t n, const float* x, float* y) const = 0;

    /// Does apply_sparse() for vectors whose components are at most 2^64. By
    /// default it makes a dense copy of one vector at a time.
    virtual void multiply_sparse(const SparseVectors& x, float* y) const;
};

template <>
ClassTable<Projection>& class_table();

/// Registers a class of projections under a name, so that hashes that hold one
/// can be written to files. P must have a default constructor, be copyable and
/// assignable, and show its data in P::fields().
template <class P>
void register_projection(const std::string& name) {
    class_table<Projection>().add(class_entry<Projection, P>(name));
}

} // namespace faiss_ext
