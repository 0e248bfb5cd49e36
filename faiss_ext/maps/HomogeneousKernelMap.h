// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/maps/FeatureMap.h>

namespace faiss_ext {

/** HKM: feature map for histograms under the chi2, intersection, Jensen-Shannon
 * or Hellinger kernel. Inner products of mapped vectors approximate the kernel,
 * so any FAISS index can search under it. Needs no training.
 *
 * It is the homogeneous kernel map, the explicit feature map of an additive
 * homogeneous kernel. With order m, period Lambda, L = 2 pi / Lambda, and the
 * kernel's spectrum kappa (AdditiveKernel::spectrum), a component x > 0 becomes
 * 2 m + 1 components
 *
 *     sqrt(x^g L kappa(0)), and for j = 1..m
 *     sqrt(2 x^g L kappa(j L)) cos(j L log x),
 *     sqrt(2 x^g L kappa(j L)) sin(j L log x)
 *
 * (equation 11 of the source). x = 0 becomes zeros. g is the degree of
 * homogeneity. g = 1 gives the kernel itself. Any other g gives (x y)^((g - 1)
 * / 2) times the kernel, summed over the components.
 *
 *     auto index = index_factory(d, "HKM2(chi2),HNSW32");
 *     index->train(n, histograms);
 *     index->add(n, histograms);
 *     index->search(nq, queries, 10, distances, labels);
 *
 * Strings, in front of any index: `HKM2(js)`, `HKM(js,order=2)`,
 * `HKM3(intersection,period=8,window=rectangular,negative=sign,norm=l1)`.
 *
 * Component i (0 <= i <= 2 m) of coordinate k is output component i * d_in + k.
 * The map of Hellinger's kernel is sqrt(x): it is exact and has one component
 * for any order. With the rectangular window, kappa is the transform of the
 * kernel's signature cut off at +-Lambda / 2.
 *
 * The squared length of a mapped vector is squared_norm() sum_k x_k^g, the same
 * for all L1-normalised x.
 *
 * The error of the map is known: it replaces the term sqrt(x y)
 * kernel->signature(log y / x) of two components by sqrt(x y) map_signature(log
 * y / x). With the uniform window and the default periods, the largest
 * difference falls like exp(-3 sqrt(m)) for chi2 and js, and like log(m) / m
 * for intersection. With the rectangular window an even order is little better
 * than the odd order below it, or worse.
 *
 * In single precision a component of order j is accurate to 1e-6 (1 + j + |j L
 * log x|) times its amplitude, typically to a tenth of it. A degree other than
 * 1 adds 1e-6 |log x|.
 *
 * Components below 1e-37 (of the sum, with norm=l1) count as 0. Components
 * above 1e37 are an error. Without norm=l1, a sum of components below 1e-30
 * d_in is an error too, unless it is 0.
 *
 * Source: A. Vedaldi and A. Zisserman, Efficient additive kernels via explicit
 * feature maps, PAMI 2012.
 */
struct HomogeneousKernelMap : FeatureMap {
    using Window = AdditiveKernel::Window;

    /// How negative components are treated: as an error, or by the map of the
    /// absolute value with the sign (as in VLFeat).
    enum class Negative { error, sign };

    /// l1 divides vectors by the sum of their absolute components first; rows
    /// of zeros stay zeros.
    enum class Norm { none, l1 };

    ClonePtr<AdditiveKernel> kernel;
    int order = 1; ///< m
    Window window = Window::uniform;
    double period = 0; ///< Lambda; 0: the default, and for Hellinger's kernel
    double degree = 1; ///< g
    Negative negative = Negative::error;
    Norm norm = Norm::none;

    /// sqrt(L kappa(0)), then sqrt(2 L kappa(j L))
    std::vector<float> amplitudes;

    /**
     * @param d       input dimension
     * @param kernel  is copied
     * @param period  0: the kernel's default for the order and the window, or,
     *                for order 0, the period that makes the map sqrt(x)
     */
    HomogeneousKernelMap(
            int d,
            const AdditiveKernel& kernel,
            int order = 1,
            Window window = Window::uniform,
            double period = 0,
            double degree = 1);
    HomogeneousKernelMap() = default;

    /** Computes vectors from their maps, exactly up to rounding.
     *
     * If xt has errors, for example after quantisation, vectors are computed
     * from the squared lengths of the 2 m + 1 components of each coordinate.
     * With norm=l1 they are normalised. A row of NaN, by which FAISS marks a
     * missing result, gives NaN.
     */
    void reverse_transform(idx_t n, const float* xt, float* x) const override;

    /// Output components for each input component: 2 m + 1.
    int components() const {
        return 2 * int(amplitudes.size()) - 1;
    }

    /// Squared length of the map of a component of 1.
    double squared_norm() const;

    /// The map's approximation of the kernel's signature K(lambda).
    double map_signature(double lambda) const;

    /** The largest error |k(x, y) - Psi(x) . Psi(y)| for two L1-normalised
     * histograms: the delta of Kim and Choi, AAAI 2017.
     *
     * It is accurate to 1e-4 relative, plus the rounding of the map. Throws
     * unless the degree is 1.
     *
     * It is the largest |signature(lambda) - map_signature(lambda)| /
     * cosh(lambda / 2). Let m_i = sqrt(x_i y_i) and lambda_i = log y_i / x_i.
     * The difference is then the sum of m_i times the difference of the
     * signatures, which are even functions, and sum_i m_i cosh(lambda_i / 2) =
     * (sum x + sum y) / 2 = 1. Two components, (p, 1 - p) and (1 - p, p),
     * attain the maximum.
     */
    double distortion() const;

    /// Throws if a component is NaN, infinite or above 1e37 in magnitude, or if
    /// it is negative and negative=error.
    void check_vectors(idx_t n, const float* x, size_t d, const char* where)
            const override;

    void map(size_t n, const float* x, float* xt) const override;
    /// Maps only the components that are not 0.
    void map_sparse(const SparseVectors& x, float* xt) const override;
    void fields(FieldVisitor& v) const override;
    void init() override;
    void restore() override;
};

} // namespace faiss_ext
