// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <faiss_ext/core/Transform.h>

namespace faiss_ext {

/** A scheme that makes binary codes whose Hamming distance estimates a kernel's
 * value.
 *
 * It maps a vector to nbits real margins (apply, as any
 * faiss::VectorTransform). A bit of the code (encode) is 1 if its margin is >=
 * 0. Component j is bit j mod 8 of byte j / 8, as in faiss::fvecs2bitvecs. If
 * nbits is not a multiple of 8, the remaining bits of the last byte are 0, so
 * Hamming distances do not depend on them. Indexes store the codes as 8 *
 * code_size() bits.
 *
 * Subclasses implement margins(), the theory, and fields(); register_hash makes
 * them known by name. Most derive from ProjectionHash, which leaves only the
 * theory to them.
 *
 * Codes do not depend on the number of threads, nor on how the vectors are
 * split into batches. Between instruction sets margins differ by rounding, so
 * bits whose margin is that close to 0 may differ.
 */
struct KernelHash : Transform {
    using Registered = KernelHash;

    int nbits = 0; ///< bits of a code = d_out, positive

    /**
     * @param d      input dimension, positive
     * @param nbits  positive
     */
    KernelHash(int d, int nbits);

    /// An empty hash, to be filled from a string or a file.
    KernelHash() = default;

    /// Bytes of a code = ceil(nbits / 8).
    size_t code_size() const {
        return (size_t(nbits) + 7) / 8;
    }

    /** Computes the codes of n vectors, on all threads.
     *
     * Memory is at most 4 MB a thread, or the margins of one vector if they
     * take more. It does not grow with n.
     *
     * @param x      size n * d_in
     * @param codes  output, size n * code_size()
     */
    void encode(idx_t n, const float* x, uint8_t* codes) const;

    /// Like encode, with sparse vectors. Codes are the same as for dense ones,
    /// bit for bit.
    void encode_sparse(const SparseVectors& x, uint8_t* codes) const;

    /** Expected Hamming distance, in bits (0 to nbits), of the codes of two
     * vectors with kernel value `kernel_value`.
     *
     * The expectation is over the random choices of the scheme. The function is
     * decreasing. Throws if `kernel_value` is outside the kernel's range, if
     * the scheme has no theory (SpectralHash), or if the kernel value does not
     * determine the distance (FrequencyHash).
     */
    virtual double expected_hamming(double kernel_value) const = 0;

    /** The kernel value at which `hamming` bits (from 0 to nbits) are expected
     * to differ: the inverse of expected_hamming.
     *
     * Distances outside the range of expected_hamming give the nearest kernel
     * value in range.
     */
    virtual double kernel_estimate(double hamming) const = 0;

    /** Lower and upper bound, in bits, of the expected Hamming distance of any
     * two vectors with kernel value `kernel_value`.
     *
     * They are the bounds that the scheme's source proves, or sharper ones.
     * They are 0 and nbits if none are known: for KLSH, SCR, and learnt or
     * bilinear projections in AHK and RHBE.
     *
     * Like expected_hamming they assume Gaussian directions, as they are with
     * proj=dense, and nearly so with proj=generated (GeneratedProjection). For
     * the deviation of a distance from its expectation see bits_for
     * (faiss_ext/hashes/bits_for.h). Throws if `kernel_value` is outside the
     * kernel's range, or if the scheme has no theory.
     */
    virtual std::pair<double, double> hamming_bounds(double kernel_value) const;

    /** Confidence interval of the kernel value of two vectors whose codes
     * differ in `hamming` bits. It misses the value with probability at most
     * `failure` over the draw of the hash.
     *
     * By Hoeffding's inequality the expected distance is within sqrt(nbits
     * log(2 / failure) / 2) of `hamming`; hamming_bounds turns this range into
     * kernel values. If no kernel value fits, which has a probability below
     * `failure`, both ends are kernel_estimate(hamming).
     *
     * The interval is for two vectors chosen beforehand. For the nearest of n
     * vectors, divide `failure` by n.
     *
     * Throws unless bits are independent and bounds are known: SIK, AHK and
     * RHBE with proj=dense or proj=generated (AHK and RHBE also with rot=random
     * and center=0), CWS, and FrequencyHash.
     */
    std::pair<double, double> kernel_interval(double hamming, double failure)
            const;

    /// The smallest kernel value that expected_hamming takes: -1, unless a
    /// class overrides it. The largest is 1.
    virtual double least_kernel_value() const;

    /** The value of the scheme's kernel for two vectors (size d_in each), which
     * expected_hamming takes and kernel_estimate estimates.
     *
     * Throws if two vectors do not determine it: for SpectralHash, precomputed
     * kernel values, and cosines as seen from the mean of the training vectors.
     */
    virtual double kernel_value(const float* x, const float* y) const;

    /** Expected Hamming distance, in bits, of the codes of two vectors, as
     * exactly as it is known.
     *
     * By default it is expected_hamming of their kernel value. Throws if
     * expected_hamming or kernel_value does.
     */
    virtual double expected_hamming_of_pair(const float* x, const float* y)
            const;

    /** The largest covariance, over the random choices, of two events: that the
     * codes of two vectors differ in one bit, and that they differ in another.
     *
     * - It is 0 if bits are independent: SIK, AHK and RHBE with proj=dense or
     *   proj=generated and rot=random, SCR, and KLSH. This holds for given
     * learnt data. It does not hold for rank=auto and scale=auto, which depend
     * on the draws.
     * - For BSIK it is the covariance of two bits that share a w or a v.
     * - It throws if none is known: bits of structured projections and learnt
     *   rotations are dependent.
     */
    virtual double covariance_of_pair(const float* x, const float* y) const;

    /** Turns the margins of queries into the weights of their asymmetric scores
     * (IndexAsymmetricHash), in place.
     *
     * A bit of a code adds its weight to the score if it is 1, and subtracts it
     * if it is 0. The larger the score, the larger the kernel value. By default
     * the weights are the margins themselves.
     *
     * @param weights  margins of n vectors, size n * nbits
     */
    virtual void query_weights(size_t n, float* weights) const;

    /** The kernel value at which an asymmetric distance (IndexAsymmetricHash),
     * from 0 to nbits, is expected.
     *
     * The default is for hyperplanes: with Gaussian w, E w . q sign(w . x) =
     * sqrt(2 / pi) q . x / |x|, so 1 - 2 distance / nbits estimates the cosine.
     */
    virtual double asymmetric_kernel_estimate(double distance) const;

    /// How the theory may differ from the data, as a clause for people; empty
    /// if expected_hamming holds for any pair. By default empty.
    virtual std::string caution() const;

    /// Returns a copy of the same class, which must be registered.
    std::unique_ptr<KernelHash> clone() const;

    /// Makes this hash equal to another one of the same class, which must be
    /// registered. Pointers to its kernel stay valid.
    void assign(const KernelHash& other);

    /** Computes the margins of a few vectors, on the calling thread. Called
     * only on checked input and when trained.
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

    /// The lowest kernel value whose lower bound (hamming_bounds) is at most
    /// `most`, and the highest one whose upper bound is at least `least`.
    virtual std::pair<double, double> kernel_bounds(double least, double most)
            const;

    /// Throws unless the hash is trained and both vectors are valid input.
    void check_pair(const float* x, const float* y, const char* where) const;

    /// hamming / nbits. Throws unless it is from 0 to 1.
    double normalized_hamming(double hamming) const;

    idx_t rows_per_block(idx_t n) const override;
    std::unique_ptr<Transform> copy_transform() const override;
    void assign_transform(const Transform& other) override;

   private:
    /// Calls compute(begin, end, margins) for blocks of n vectors.
    template <class F>
    void encode_blocks(idx_t n, uint8_t* codes, F&& compute) const;
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
