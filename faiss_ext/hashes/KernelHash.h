// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <faiss_ext/core/Transform.h>

namespace faiss_ext {

/** Binary codes whose Hamming distance estimates a kernel's value.
 *
 * A scheme maps a vector to nbits real margins (apply, as any
 * faiss::VectorTransform); the code has a 1 where the margin is >= 0 (encode).
 * Component j is bit j mod 8 of byte j / 8, as in faiss::fvecs2bitvecs.
 *
 * Subclasses implement margins(), the theory, and fields(); register_hash makes
 * them known by name. Most derive from ProjectionHash, which leaves only the
 * theory to them. Codes do not depend on the number of threads or on how the
 * vectors are split into batches. Between instruction sets, margins differ by
 * rounding, so that bits whose margin is that close to 0 may differ.
 */
struct KernelHash : Transform {
    using Registered = KernelHash;

    int nbits = 0; ///< bits of a code = d_out, a positive multiple of 8

    /**
     * @param d      input dimension, positive
     * @param nbits  a positive multiple of 8
     */
    KernelHash(int d, int nbits);

    /// to be filled by a string or a file
    KernelHash() = default;

    /// bytes of a code = nbits / 8
    size_t code_size() const {
        return nbits / 8;
    }

    /** The codes of n vectors, on all threads, in memory of at most 4 MB a
     * thread (or the margins of one vector, if they take more), whatever n is.
     *
     * @param x      size n * d_in
     * @param codes  output, size n * code_size()
     */
    void encode(idx_t n, const float* x, uint8_t* codes) const;

    /** Expected Hamming distance, in bits (0 to nbits), of the codes of two
     * vectors with kernel value `kernel_value`, over the random choices of the
     * scheme. A decreasing function. Throws if the value is not one of the
     * kernel, or if there is no theory of the scheme (SpectralHash).
     */
    virtual double expected_hamming(double kernel_value) const = 0;

    /** Inverse of expected_hamming: the kernel value at which `hamming` bits
     * (from 0 to nbits) are expected to differ. Distances beyond the range of
     * expected_hamming give the nearest kernel value in range.
     */
    virtual double kernel_estimate(double hamming) const = 0;

    /** Lower and upper bound, in bits, of the expected Hamming distance of any
     * two vectors with kernel value `kernel_value`: those that the source of
     * the scheme proves, or sharper ones. 0 and nbits where none are known:
     * KLSH, SCR, and what is learnt from data or bilinear in AHK and RHBE.
     *
     * Like expected_hamming they take directions to be Gaussian, as they are
     * with proj=dense. How far a distance may be from its expectation: bits_for
     * (faiss_ext/hashes/bits_for.h). Throws where expected_hamming does.
     */
    virtual std::pair<double, double> hamming_bounds(double kernel_value) const;

    /** Between which the kernel value of two vectors lies whose codes differ in
     * `hamming` bits, except with probability `failure` over the draw of the
     * hash: by Hoeffding's inequality their expected distance is within
     * sqrt(nbits log(2 / failure) / 2) of it, and hamming_bounds has the kernel
     * values of that. Where no kernel value fits, as with less probability than
     * that, it is kernel_estimate twice.
     *
     * That is for two vectors chosen beforehand: for the nearest of n ones,
     * divide `failure` by n. Throws unless bits are independent and bounds are
     * known: SIK, AHK and RHBE with proj=dense, AHK and RHBE with rot=random
     * and center=0, and CWS.
     */
    std::pair<double, double> kernel_interval(double hamming, double failure)
            const;

    /// The smallest kernel value that expected_hamming takes: -1, unless a
    /// class overrides it. The largest is 1.
    virtual double least_kernel_value() const;

    /** The value of the scheme's kernel for two vectors (size d_in each): what
     * expected_hamming takes and kernel_estimate estimates. Throws where two
     * vectors do not tell it: SpectralHash, precomputed kernel values, and
     * cosines as seen from the mean of the training vectors.
     */
    virtual double kernel_value(const float* x, const float* y) const;

    /** Expected Hamming distance, in bits, of the codes of two vectors, as
     * exactly as it is known: by default expected_hamming of their kernel
     * value. Throws where that or kernel_value does.
     */
    virtual double expected_hamming_of_pair(const float* x, const float* y)
            const;

    /** The largest covariance of two bits of the codes of two vectors, over the
     * random choices: of the events that x and y differ in the one and in the
     * other. 0 where bits are independent: SIK, AHK and RHBE with proj=dense
     * and rot=random, SCR, and KLSH (given what was learnt from data, in all of
     * them; rank=auto and scale=auto are chosen by the draws themselves). BSIK
     * has that of two bits that share a w or a v. Throws where none is known:
     * bits of structured projections and learnt rotations are dependent.
     */
    virtual double covariance_of_pair(const float* x, const float* y) const;

    /** Turns the margins of queries into the weights of their asymmetric
     * scores (IndexAsymmetricHash), in place: what a bit of a code adds to the
     * score where it is 1, and takes off where it is 0. The larger the score,
     * the larger the kernel value. By default the margins themselves.
     *
     * @param weights  margins of n vectors, size n * nbits
     */
    virtual void query_weights(size_t n, float* weights) const;

    /** The kernel value at which an asymmetric distance (IndexAsymmetricHash),
     * from 0 to nbits, is expected. By default that of hyperplanes: where w
     * is Gaussian, E w . q sign(w . x) = sqrt(2 / pi) q . x / |x|, so that 1 -
     * 2 distance / nbits estimates the cosine.
     */
    virtual double asymmetric_kernel_estimate(double distance) const;

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

    void map(size_t n, const float* x, float* xt) const final;

    void set_dimensions(int d, int nbits) override;

    std::string description() const override;

   protected:
    /// Whether bits are independent over the random choices.
    virtual bool has_independent_bits() const {
        return false;
    }

    /** The lowest kernel value whose lower bound (hamming_bounds) is at most
     * `most`, and the highest one whose upper bound is at least `least`.
     */
    virtual std::pair<double, double> kernel_bounds(double least, double most)
            const;

    /// Throws unless the hash is trained and both vectors are valid input.
    void check_pair(const float* x, const float* y, const char* where) const;

    /// hamming / nbits; throws unless it is from 0 to 1
    double normalized_hamming(double hamming) const;

    idx_t rows_per_block(idx_t n) const override;
    std::unique_ptr<Transform> copy_transform() const override;
    void assign_transform(const Transform& other) override;
};

template <>
ClassTable<KernelHash>& class_table();

/** Makes a hash for vectors of dimension d from a string such as
 * `SIK512(gaussian,gamma=0.02)`.
 *
 * Throws a faiss::FaissException that marks the place of an error.
 */
std::unique_ptr<KernelHash> kernel_hash_factory(
        int d,
        const std::string& description);

} // namespace faiss_ext
