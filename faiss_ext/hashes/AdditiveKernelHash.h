// SPDX-License-Identifier: MIT
#pragma once

#include <faiss_ext/hashes/ProjectionHash.h>
#include <faiss_ext/maps/HomogeneousKernelMap.h>

namespace faiss_ext {

/** AHK: binary codes for histograms under the chi2, intersection,
 * Jensen-Shannon or Hellinger kernel. It uses no landmarks, and by default
 * needs no training.
 *
 * The scheme is called BE-AHK, binary embedding with additive homogeneous
 * kernels, in the paper. A bit of x is 1 if
 *
 *     w . Psi(x) >= 0,  w ~ N(0, I).
 *
 * Psi is the explicit map of the kernel (HomogeneousKernelMap). It is computed
 * block by block and never stored for all vectors. |Psi(x)| is the same for all
 * L1-normalised x, so two of them differ in a bit with probability
 *
 *     P = acos(Psi(x) . Psi(y) / |Psi|^2) / pi, nearly acos(k(x, y)) / pi.
 *
 * If the w are independent, as they are with proj=dense (the paper's form) and
 * proj=generated, then P(|Ham / nbits - P| > e) <= 2 exp(-2 nbits e^2) for one
 * pair.
 *
 *     auto hash = kernel_hash_factory(d, "AHK512(chi2)");
 *     std::vector<uint8_t> codes(n * hash->code_size());
 *     hash->encode(n, histograms, codes.data());
 *     double k = hash->kernel_estimate(100); // if 100 bits differ
 *
 * Strings: `AHK1024(chi2)`, `AHK512(intersection,order=3,center=1)`,
 * `AHK256(chi2,rot=itq)`.
 *
 * For histograms that are not L1-normalised, k means k(x, y) / sqrt(sum x sum
 * y). It is below 1 for x and 2 x; norm=l1 removes the scale. A row of zeros
 * has all bits 1, or, with center=1, each bit is 1 if w . mu <= 0.
 *
 * proj=structured, the default for features of up to 2^17 dimensions, takes the
 * w from random rotations (StructuredProjection). Codes are computed faster,
 * need no matrix, and find as much or more, as measured (docs/ahk.md). See
 * bits_for for the proven bounds.
 *
 * proj=generated, the default beyond, is for sparse vectors: encode_sparse maps
 * and projects only the components that are not 0, and nothing has the size of
 * the dimension (GeneratedProjection). `AHK512(chi2)` of 10 million dimensions
 * is made at once, and takes less than 1 kB in files.
 *
 * The map's order is 1 by default. For codes of up to some 500 bits this finds
 * as much as the paper's orders (3 for chi2 and 10 for intersection), or more.
 * With thousands of bits the error of the map shows, and higher orders find
 * more, much more for intersection (docs/ahk.md).
 *
 * Beyond the paper:
 *
 * - center=1 learns the mean map mu in train, from at most 65,536 vectors. The
 *   bit is then w . Psi(x) >= w . mu: bits are balanced, and small angles are
 *   spread over more of them. P is then the angle as seen from mu.
 * - rot=pca and rot=itq learn the hyperplanes from data
 *   (CenteredHash::Rotation). The same number of bits finds more if queries are
 *   distributed like the training vectors.
 *
 * Source: S. Kim and S. Choi, Binary embedding with additive homogeneous
 * kernels, AAAI 2017.
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

    /** Expected Hamming distance in bits, by the paper's approximation: nbits
     * acos((k - m) / (1 - m)) / pi with m = mean_value.
     *
     * It ignores the error of the map. With center=1 it also ignores that the
     * distances of a pair from mu vary. With rot=pca and rot=itq it is only a
     * rough approximation: the projections lose the part of a difference
     * outside the principal directions, and a learnt rotation is not random.
     *
     * @param kernel_value  from 0 to 1, with negative=sign from -1
     */
    double expected_hamming(double kernel_value) const override;
    double kernel_estimate(double hamming) const override;

    /** Bounds of the expected Hamming distance: nbits acos((u +- delta) /
     * |Psi|^2) / pi.
     *
     * They hold for L1-normalised histograms of kernel value u from 0 to 1;
     * delta is the distortion() of the map. Theorem 1 of the paper bounds the
     * same distance from outside by polynomials, for u >= delta. With center=1,
     * rot=pca, rot=itq or a degree other than 1 the bounds are 0 and nbits.
     */
    std::pair<double, double> hamming_bounds(
            double kernel_value) const override;
    std::string caution() const override;

    /** The normalised kernel value of two vectors: k(x, y) / sqrt(k(x, x) k(y,
     * y)), where k is the kernel of the map's degree.
     *
     * The vectors are first normalised and signed as the map does it. The value
     * is 0 if one of them is 0.
     */
    double kernel_value(const float* x, const float* y) const override;

    /// 0, or -1 with negative=sign
    double least_kernel_value() const override;

    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;
    void set_dimensions(int d, int nbits) override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;

   protected:
    int num_features() const override;
    const float* features(size_t n, const float* x, float* space)
            const override;
    size_t features_space() const override;
    std::optional<SparseVectors> sparse_features(
            const SparseVectors& x,
            SparseRows& space) const override;
    std::pair<double, double> kernel_bounds(double least, double most)
            const override;
};

} // namespace faiss_ext
