// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <faiss/VectorTransform.h>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/** A faiss::VectorTransform with fields: the base class of explicit feature
 * maps and hashes.
 *
 * Subclasses implement map() and fields(), and learn() if they learn from data.
 * Results do not depend on the number of threads, nor on how the vectors are
 * split into batches. All const functions may be called from several threads at
 * once.
 *
 * Every function that takes vectors throws a faiss::FaissException if the
 * transform is not defined on one of them, or is not trained. On error nothing
 * is modified.
 */
struct Transform : faiss::VectorTransform, HasFields {
    bool verbose = false;

    using VectorTransform::VectorTransform;
    Transform() = default;

    /** Learns the parameters that the class takes from data; see its learn().
     * Calling train on a trained object has no effect.
     *
     * If training fails or is interrupted, the object stays as it was; for this
     * the class must be registered.
     *
     * @param x  size n * d_in
     */
    void train(idx_t n, const float* x) override;

    /// @param x   size n * d_in
    /// @param xt  output, size n * d_out
    void apply_noalloc(idx_t n, const float* x, float* xt) const override;

    /// Like train, with sparse vectors. Unless the class has learn_sparse, it
    /// makes dense copies of at most 65,536 vectors, drawn at random, in at
    /// most 1 GB.
    void train_sparse(const SparseVectors& x);

    /// Like apply_noalloc, with sparse vectors. Results are the same as for
    /// dense ones, bit for bit.
    void apply_sparse(const SparseVectors& x, float* xt) const;

    /// Throws UnsupportedError.
    void reverse_transform(idx_t n, const float* xt, float* x) const override;

    /// Throws unless the two transforms give the same results.
    void check_identical(const faiss::VectorTransform& other) const override;

    /// Transforms a few vectors, on the calling thread, without checks.
    virtual void map(size_t n, const float* x, float* xt) const = 0;

    /** Like map, for sparse vectors in canonical form (CanonicalVectors).
     *
     * By default it makes a dense copy of one vector at a time.
     */
    virtual void map_sparse(const SparseVectors& x, float* xt) const;

    /// The best number of vectors, out of n, for a thread to transform at a
    /// time.
    virtual idx_t rows_per_block(idx_t n) const = 0;

    /// Throws if the transform is not defined on one of the vectors. `where`
    /// names the caller in the message.
    void check_input(idx_t n, const float* x, const char* where) const;

    /// Throws if sparse vectors have another dimension than d_in, or if the
    /// transform is not defined on one of them.
    void check_sparse_input(const CanonicalVectors& x, const char* where) const;

    /** Does check_input for vectors of d components: all of them, or those of a
     * sparse vector that are not 0.
     *
     * By default all must be finite.
     */
    virtual void check_vectors(
            idx_t n,
            const float* x,
            size_t d,
            const char* where) const;

    /// Sets d_in and d_out, if they are known before the parameters.
    virtual void set_dimensions(int d_in, int d_out);

    /// The string that makes the object, before training: `SIK512(gaussian)`. A
    /// CallbackKernel is shown as `callback`, which no factory accepts.
    virtual std::string description() const = 0;

    /// These call clone() and assign() of the subclass.
    virtual std::unique_ptr<Transform> copy_transform() const = 0;
    virtual void assign_transform(const Transform& other) = 0;

   protected:
    /// Trains on checked vectors. Called only if the object is not trained.
    virtual void learn(idx_t n, const float* x);

    /// Like learn, for sparse vectors in canonical form. Returns false, as by
    /// default, if it did nothing, and dense copies are needed.
    virtual bool learn_sparse(const SparseVectors& x);

    /// Does check_vectors for the components of sparse vectors in canonical
    /// form.
    void check_components(const SparseVectors& x, const char* where) const;

    /// Calls check_input, and throws if the object is not trained.
    void check_ready(idx_t n, const float* x, const char* where) const;
    void check_ready(const CanonicalVectors& x, const char* where) const;

    /// rows_per_block() for vectors that are multiplied by a matrix. It gives
    /// work to every thread, and the `floats` numbers of each vector stay in a
    /// cache of `size` floats.
    static idx_t rows_to_multiply(idx_t n, size_t floats, size_t size);

   private:
    /// Calls learn(). If it fails, the object stays as it was.
    template <class F>
    void train_by(F&& learn);
};

} // namespace faiss_ext
