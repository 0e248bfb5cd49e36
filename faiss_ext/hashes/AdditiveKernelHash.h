// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/maps/HomogeneousKernelMap.h>

namespace faiss_ext {

/** AHK: binary embedding with additive homogeneous kernels (the paper's
 * BE-AHK). For histograms under the chi2, intersection, Jensen-Shannon or
 * Hellinger kernel; it has no landmarks, and by default needs no training.
 *
 * A bit of x is 1 where
 *
 *     w . Psi(x) >= 0,  w ~ N(0, I),
 *
 * Psi the explicit map of the kernel (HomogeneousKernelMap), which is computed
 * block by block and never stored for all vectors. |Psi(x)| is the same for all
 * L1-normalised x, so that two of them differ in a bit with probability
 *
 *     P = acos(Psi(x) . Psi(y) / |Psi|^2) / pi, nearly acos(k(x, y)) / pi.
 *
 * For one pair, P(|Ham / nbits - P| > e) <= 2 exp(-2 nbits e^2) where the w are
 * independent, as they are with proj=dense, the paper's form.
 *
 *     auto hash = kernel_hash_factory(d, "AHK512(chi2)");
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, histograms, codes.data());
 *     double k = hash->kernel_estimate(100); // where 100 bits differ
 *
 * Source: S. Kim and S. Choi, Binary embedding with additive homogeneous
 * kernels, AAAI 2017.
 *
 * For histograms of other masses k is k(x, y) / sqrt(sum x sum y), which is
 * below 1 for x and 2 x; norm=l1 takes the scale out. A row of zeros has all
 * bits 1, or, with center=1, those of w . mu <= 0.
 *
 * proj=structured, the default, takes the w from random rotations
 * (StructuredProjection): codes are faster and without a matrix, and find as
 * much or more, as measured (docs/ahk.md); see bits_for for what is proven.
 *
 * The map's order is 1 by default: codes of up to some 500 bits find as much
 * with it as with the paper's orders, 3 for chi2 and 10 for intersection, or
 * more. With thousands of bits the map's own error shows, and higher orders
 * find more, much more for intersection (docs/ahk.md).
 *
 * center=1 (beyond the paper) learns the mean map mu in train, from at most
 * 65,536 vectors, and the bit is w . Psi(x) >= w . mu: bits are balanced, and
 * small angles are spread over more of them. P is then the angle as seen from
 * mu.
 *
 * rot=pca and rot=itq (beyond the paper) learn from data what the hyperplanes
 * are: see CenteredHash::Rotation. As many bits find more where queries come
 * from where the training vectors do.
 *
 * Strings: `AHK1024(chi2)`, `AHK512(intersection,order=3,center=1)`,
 * `AHK256(chi2,rot=itq)`.
 */
struct AdditiveKernelHash : CenteredHash {
    HomogeneousKernelMap map;

    /// @param map  is copied
    AdditiveKernelHash(
            const HomogeneousKernelMap& map,
            int nbits,
            bool center = false,
            int64_t seed = 1234,
            const ProjectionChoice& proj = {},
            Rotation rot = Rotation::random);
    AdditiveKernelHash() = default;

    /** nbits acos((k - m) / (1 - m)) / pi, m = mean_value: the paper's
     * approximation, which leaves out the error of the map; with center=1 it
     * leaves out as well that a pair's distances from mu vary. With rot=pca
     * and rot=itq it is a rule of thumb: what principal directions leave out
     * makes differences smaller, and a rotation that is learnt is not random.
     *
     * @param kernel_value  from 0 to 1, from -1 with negative=sign
     */
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    /** nbits acos((u +- delta) / |Psi|^2) / pi, delta the distortion() of the
     * map, for L1-normalised histograms of kernel value u from 0 to 1. (Theorem
     * 1 of the paper bounds the same from outside by polynomials, for u >=
     * delta.) 0 and nbits with center=1, rot=pca, rot=itq or a degree that is
     * not 1.
     */
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;

    /// k(x, y) / sqrt(k(x, x) k(y, y)), k the kernel of the map's degree, of
    /// vectors normalised and signed as the map does; 0 where one is 0
    double kernel_value(const float* x, const float* y) const override;

    /// 0, or -1 with negative=sign
    double least_kernel_value() const override;

    void check_input(idx_t n, const float* x, const char* where) const override;
    void set_dimensions(int d, int nbits) override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    int num_features() const override;
    const float* features(size_t n, const float* x, float* space)
            const override;
    size_t features_space() const override;
    std::pair<double, double> kernel_bounds(double least, double most)
            const override;
};

} // namespace faiss_ext
