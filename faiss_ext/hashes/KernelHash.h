#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <faiss/VectorTransform.h>

#include <faiss_ext/core/compat.h>

namespace faiss {
struct IOReader;
struct IOWriter;
} // namespace faiss

namespace faiss_ext {

/** Binary codes whose Hamming distance tells a kernel's value.
 *
 * A scheme maps a vector to nbits real margins (apply, as any
 * faiss::VectorTransform); the code has a 1 where the margin is >= 0 (encode).
 * Component j is bit j mod 8 of byte j / 8, as in faiss::fvecs2bitvecs.
 *
 * Sub-classes implement margins(), the theory, and their fields' reading and
 * writing; register_hash (hash_registry.h) makes them known by name. Codes do
 * not depend on the number of threads or on how the vectors are split into
 * batches. Between instruction sets, margins differ by rounding, so that bits
 * whose margin is that close to 0 may differ. All const functions may be called
 * from several threads at once.
 *
 * Every function that takes vectors throws a faiss::FaissException if one of
 * them is NaN or infinite, or if the hash is not trained; x is the only thing
 * read and nothing is changed then.
 */
struct KernelHash : faiss::VectorTransform {
    int nbits; ///< bits of a code = d_out, a positive multiple of 8
    bool verbose = false;

    /**
     * @param d      input dimension, positive
     * @param nbits  a positive multiple of 8
     */
    KernelHash(int d, int nbits);

    /// to be filled by read_fields
    KernelHash() : nbits(0) {}

    /// bytes of a code = nbits / 8
    size_t code_size() const {
        return nbits / 8;
    }

    /** Learns what the scheme takes from data: see learn() of the scheme. Does
     * nothing if the hash is trained. What fails, or is interrupted, leaves the
     * hash as it was; the class must be registered for that.
     *
     * @param x  size n * d_in
     */
    void train(idx_t n, const float* x) override;

    /** The codes of n vectors, on all threads, in memory of at most 4 MB a
     * thread (or the margins of one vector, if they take more), whatever n is.
     *
     * @param x      size n * d_in
     * @param codes  output, size n * code_size()
     */
    void encode(idx_t n, const float* x, uint8_t* codes) const;

    /** The margins of n vectors.
     *
     * @param x    size n * d_in
     * @param xt   output, size n * nbits
     */
    void apply_noalloc(idx_t n, const float* x, float* xt) const override;

    /** Expected Hamming distance, in bits (0 to nbits), of the codes of two
     * vectors with kernel value `kernel_value`, over the random choices of the
     * scheme. A decreasing function.
     */
    virtual double expected_hamming(double kernel_value) const = 0;

    /** Inverse of expected_hamming: the kernel value at which `hamming` bits
     * (from 0 to nbits) are expected to differ. Distances beyond the range of
     * expected_hamming give the nearest kernel value in range.
     */
    virtual double kernel_estimate(double hamming) const = 0;

    /// Throws unless the two hashes give the same codes.
    void check_identical(const faiss::VectorTransform& other) const override;

    /// A copy, of the same class (which must be registered).
    std::unique_ptr<KernelHash> clone() const;

    /// Makes this hash equal to another one of the same class (which must be
    /// registered). Pointers to its kernel stay valid.
    void assign(const KernelHash& other);

    /** Margins of a few vectors, on the calling thread; called on checked input
     * and when trained.
     *
     * @param x        size n * d_in
     * @param margins  output, size n * nbits
     */
    virtual void margins(size_t n, const float* x, float* margins) const = 0;

    /// Throws if the scheme is not defined on one of the vectors. By default
    /// all must be finite. `where` names the caller for the message.
    virtual void check_input(idx_t n, const float* x, const char* where) const;

    /// Write and read what distinguishes this hash from a default one of its
    /// class, without d_in, nbits and is_trained.
    virtual void write_fields(faiss::IOWriter* f) const = 0;
    virtual void read_fields(faiss::IOReader* f) = 0;

   protected:
    /// Training, on checked vectors, of a hash that is not trained.
    virtual void learn(idx_t n, const float* x);

    /// check_input, and throws if the hash is not trained.
    void check_ready(idx_t n, const float* x, const char* where) const;

    /// hamming / nbits; throws unless it is from 0 to 1
    double normalized_hamming(double hamming) const;
};

/** Makes a hash for vectors of dimension d from a string such as
 * `SIK512(gaussian,gamma=0.02)`.
 *
 * Throws a faiss::FaissException that marks the place of an error.
 */
std::unique_ptr<KernelHash> kernel_hash_factory(
        int d,
        const std::string& description);

} // namespace faiss_ext
