// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** RHBE: random hyperplane-based binary embedding, also called signed random
 * projections (SRP) or SimHash. For the angle between vectors as they are; its
 * kernel is the cosine.
 *
 * A bit of x is 1 where
 *
 *     w . x >= 0,  w ~ N(0, I).
 *
 * Two vectors at an angle theta differ in a bit with probability theta / pi.
 * With proj=dense the w are independent, as in the paper; with proj=structured,
 * the default, they are from random rotations (StructuredProjection).
 *
 *     auto hash = kernel_hash_factory(d, "RHBE256");
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, x, codes.data());
 *     double cosine = hash->kernel_estimate(64); // where 64 bits differ
 *
 * Source: M. Charikar, Similarity estimation techniques from rounding
 * algorithms, STOC 2002.
 *
 * center=1 learns the mean of the training vectors and the bit is w . x >= w .
 * mean: theta is then the angle as seen from the mean, and the kernel the
 * cosine of that angle.
 *
 * rot=pca and rot=itq learn the hyperplanes from data (CenteredHash::Rotation):
 * the latter are the codes of iterative quantisation (ITQ). The kernel is then
 * about the cosine as seen from the mean.
 *
 * proj=bilinear reads x as a matrix X, and the bit is w' X v >= 0 (Kim and
 * Choi, CVPR 2015, equation 6; Gong et al., CVPR 2013), for many dimensions and
 * many bits; see BilinearProjection. The expected distance is then not theta /
 * pi but the mean over w of the angle between X' w and Y' w, close to it where
 * X and Y have many singular values of a size. w=dense,shuffle=0 is the paper's
 * form. expected_hamming and expected_hamming_of_pair return theta / pi all the
 * same, the value of independent rows. Measured in the paper's form: 28 x 28
 * matrices of rank 1, 2 and 4 differ in 44, 19 and 12 % more bits than that at
 * theta = 0.3, and in 7, 5 and 2 % fewer at theta = 1; nine pairs in ten of
 * scikit-learn's digits (8 x 8) in 9 to 32 % more. In the default form all of
 * these were within 5 %.
 *
 * Strings: `RHBE256`, `RHBE256(center=1,seed=3)`, `RHBE64(rot=itq)`,
 * `RHBE4096(proj=bilinear,shape=28x28,m=5)`.
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

    /// @param projection  its outputs are the bits; the theory takes a
    /// DenseProjection for rows drawn from N(0, I)
    HyperplaneHash(ClonePtr<Projection> projection, bool center, int64_t seed);

    /// nbits acos(kernel_value) / pi, kernel_value a cosine from -1 to 1
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    /// Both are expected_hamming, which is exact, unless rot is learnt or the
    /// projection bilinear.
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    /// The cosine, 0 where a vector is 0. Throws with center=1, rot=pca
    /// and rot=itq.
    double kernel_value(const float* x, const float* y) const override;

    void fields(FieldVisitor& v) const override;

   protected:
    /// Components must be finite, and seen from a mean at most 1e37 in
    /// magnitude.
    void check_input(idx_t n, const float* x, const char* where) const override;
};

} // namespace faiss_ext
