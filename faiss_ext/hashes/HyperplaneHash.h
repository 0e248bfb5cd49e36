#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>

namespace faiss_ext {

/** RHBE: random hyperplane-based binary embedding, on the vectors as they are;
 * also called signed random projections or SimHash (Charikar, STOC 2002).
 *
 * Bit: w . x >= 0, w ~ N(0, I). Two vectors at an angle theta differ in a bit
 * with probability theta / pi; the kernel is the cosine. With proj=structured,
 * the default, the w are from random rotations (StructuredProjection), with
 * proj=dense independent, as in the paper.
 *
 * center=1 learns the mean of the training vectors and the bit is w . x >= w .
 * mean: theta is then the angle as seen from the mean, and the kernel the
 * cosine of that angle.
 *
 * proj=bilinear reads x as a matrix X, and the bit is w' X v >= 0 (Kim and
 * Choi, CVPR 2015, equation 6; Gong et al., CVPR 2013), for many dimensions and
 * many bits; see BilinearProjection. The expected distance is then not theta /
 * pi but the mean over w of the angle between X' w and Y' w, close to it where
 * X and Y have many singular values of a size.
 *
 * String: `RHBE256`, `RHBE256(center=1,seed=3)`,
 * `RHBE4096(proj=bilinear,shape=28x28,m=5)`, with shuffle=1 and w=structured
 * as for BSIK (w=dense,shuffle=0 is the paper's form).
 */
struct HyperplaneHash : CenteredHash {
    HyperplaneHash(
            int d,
            int nbits,
            bool center = false,
            int64_t seed = 1234,
            const ProjectionChoice& proj = {});
    HyperplaneHash() = default;

    /// @param projection  its outputs are the bits
    HyperplaneHash(ClonePtr<Projection> projection, bool center, int64_t seed);

    /// nbits acos(kernel_value) / pi, kernel_value a cosine from -1 to 1
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    void fields(FieldVisitor& v) override;
};

} // namespace faiss_ext
