// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** RHBE: binary codes for the angle between vectors by random hyperplanes. The
 * kernel is the cosine.
 *
 * Random hyperplane-based binary embedding is also called signed random
 * projections (SRP) or SimHash. A bit of x is 1 if
 *
 *     w . x >= 0,  w ~ N(0, I).
 *
 * Two vectors at an angle theta differ in a bit with probability theta / pi.
 * With proj=dense the w are independent, as in the paper, and also with
 * proj=generated, the default for more than 2^17 dimensions
 * (GeneratedProjection). With proj=structured, the default for fewer, they come
 * from random rotations (StructuredProjection).
 *
 *     auto hash = kernel_hash_factory(d, "RHBE256");
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *     double cosine = hash->kernel_estimate(64); // if 64 bits differ
 *
 * Strings: `RHBE256`, `RHBE256(center=1,seed=3)`, `RHBE64(rot=itq)`,
 * `RHBE4096(proj=bilinear,shape=28x28,m=5)`.
 *
 * center=1 learns the mean of the training vectors. The bit is then w . x >= w
 * . mean, theta is the angle as seen from the mean, and the kernel is the
 * cosine of that angle.
 *
 * rot=pca and rot=itq learn the hyperplanes from data (CenteredHash::Rotation);
 * rot=itq makes the codes of iterative quantisation (ITQ). The kernel is then
 * approximately the cosine as seen from the mean.
 *
 * proj=bilinear is for many dimensions and many bits (BilinearProjection). It
 * reads x as a matrix X, and the bit is w' X v >= 0 (Kim and Choi, CVPR 2015,
 * equation 6; Gong et al., CVPR 2013). w=dense,shuffle=0 is the paper's form.
 * The expected distance is then the mean over w of the angle between X' w and
 * Y' w. It is close to theta / pi if X and Y have many singular values of
 * similar size.
 *
 * With proj=bilinear, expected_hamming and expected_hamming_of_pair still
 * return theta / pi, the value of independent rows. Measured in the paper's
 * form:
 *
 * - 28 x 28 matrices of rank 1, 2 and 4 differ in 44, 19 and 12 % more bits
 *   than that at theta = 0.3, and in 7, 5 and 2 % fewer at theta = 1.
 * - Of pairs of scikit-learn's digits (8 x 8), nine in ten differ in 9 to 32 %
 *   more bits.
 *
 * In the default form all of these were within 5 %.
 *
 * Source: M. Charikar, Similarity estimation techniques from rounding
 * algorithms, STOC 2002.
 */
struct HyperplaneHash : CenteredHash {
    HyperplaneHash(
            int d,
            int nbits,
            bool center = false,
            int64_t seed = 1234,
            const ProjectionChoice& proj = {},
            Rotation rot = Rotation::random);
    HyperplaneHash() = default;

    /**
     * @param projection  its outputs are the bits; the theory assumes that the
     *                    rows of a DenseProjection are drawn from N(0, I)
     */
    HyperplaneHash(ClonePtr<Projection> projection, bool center, int64_t seed);

    /// Expected Hamming distance in bits: nbits acos(kernel_value) / pi for a
    /// cosine from -1 to 1.
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    /// Both bounds are expected_hamming, which is exact, unless rot is learnt
    /// or the projection is bilinear.
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;
    std::string caution() const override;

    /// The cosine of two vectors; 0 if one of them is 0. Throws with center=1,
    /// rot=pca and rot=itq.
    double kernel_value(const float* x, const float* y) const override;

    void fields(FieldVisitor& v) const override;

   protected:
    std::vector<ProjectionChoice::Kind> projection_kinds() const override;
    /// Throws unless components are finite and, as seen from a mean, at most
    /// 1e37 in magnitude.
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    std::optional<SparseVectors> sparse_features(
            const SparseVectors& x,
            SparseRows& space) const override;
};

} // namespace faiss_ext
