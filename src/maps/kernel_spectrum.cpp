// SPDX-License-Identifier: MIT
#include "maps/kernel_spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/eigen_symmetric.h"
#include "core/errors.h"

namespace faiss_ext {

KernelSpectrum decompose_kernel(
        size_t p,
        const float* K,
        bool center,
        double tolerance,
        bool verbose) {
    KernelSpectrum s;
    s.means.assign(p, 0);
    double mean = 0, largest = 0;
    for (size_t i = 0; i < p; i++) {
        for (size_t j = 0; j < p; j++) {
            s.means[i] += K[i * p + j] / double(p);
            largest = std::max(largest, std::abs(double(K[i * p + j])));
        }
        mean += s.means[i] / double(p);
    }
    const auto [low, high] = std::minmax_element(K, K + p * p);
    const bool varies = double(*high) - *low > 1e-6 * largest;
    std::vector<double> a, values = {0};
    if (varies) {
        a.resize(p * p);
        for (size_t i = 0; i < p; i++) {
            for (size_t j = 0; j < p; j++) {
                // K is symmetric up to rounding
                const double k =
                        0.5 * (double(K[i * p + j]) + double(K[j * p + i]));
                a[i * p + j] = center ? k - s.means[i] - s.means[j] + mean : k;
            }
        }
        eigen_symmetric(p, a, values, verbose);
    }
    const double top = values.back();
    // rounding alone gives eigenvalues of 1e-7 sqrt(p)
    const double rounding = 1e-6 * std::sqrt(double(p)) * largest;
    FAISS_EXT_THROW_IF_NOT_FMT(
            varies && std::max(top, -values[0]) > rounding &&
                    (values[0] >= -1e-3 * top || -values[0] > rounding),
            "the kernel has (nearly) the same value for all pairs of the %zu landmarks; its bandwidth may be too large, or outliers or an offset may hide differences between the vectors",
            p);
    FAISS_EXT_THROW_IF_NOT_FMT(
            top > 0 && values[0] >= -1e-3 * top,
            "the kernel is not positive semi-definite on the landmarks: its matrix has the eigenvalues %g and %g",
            values[0],
            top);
    // smaller eigenvalues are rounding errors
    const double least = std::max(
            tolerance, double(p) * std::numeric_limits<double>::epsilon());
    size_t rank = 0;
    while (rank < p && values[p - 1 - rank] > least * top) {
        rank++;
    }
    s.vectors.resize(rank, p);
    for (size_t i = 0; i < rank; i++) {
        s.values.push_back(values[p - 1 - i]);
        std::copy_n(&a[(p - 1 - i) * p], p, s.vectors.row(i).data());
    }
    return s;
}

} // namespace faiss_ext
