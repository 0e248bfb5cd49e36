// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/** A linear map, y = A x, drawn at random or given, stored in whatever form
 * makes it fast.
 *
 * The value for one vector does not depend on the others in its batch, nor on
 * the number of threads. Vectors may have any finite components: those with
 * components above 2^64, whose sums might overflow on the way, are scaled by a
 * power of two and back.
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

    /// The matrix A row by row, size d_out * d_in.
    virtual std::vector<float> matrix() const = 0;

    /// A copy. By default by the copy constructor of the class, which must be
    /// registered.
    virtual std::unique_ptr<Projection> clone() const;

    /// Makes this projection equal to another one of the same class.
    virtual void assign(const Projection& other);

    /// Shows d_in and d_out; subclasses go on with theirs.
    void fields(FieldVisitor& v) const override;

   protected:
    /// apply() on vectors whose components are up to 2^64.
    virtual void multiply(size_t n, const float* x, float* y) const = 0;
};

template <>
ClassTable<Projection>& class_table();

/// Makes a class of projections known by a name, so that hashes that hold one
/// can be written to files. P has a default constructor, can be copied and
/// assigned, and shows what it holds in P::fields().
template <class P>
void register_projection(const std::string& name) {
    class_table<Projection>().add(class_entry<Projection, P>(name));
}

} // namespace faiss_ext
