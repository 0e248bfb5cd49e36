// SPDX-License-Identifier: MIT
#include <faiss_ext/maps/HomogeneousKernelMap.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numbers>

#include <faiss_ext/kernels/kernel_registry.h>

#include "core/check.h"
#include "core/errors.h"
#include "maps/homogeneous_sparse.h"
#include "simd/homogeneous_map.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

constexpr double min_period = 1e-3, max_period = 1e4;

/// Computes 1 / (2 pi) times the integral of K(lambda) cos(omega lambda) over a
/// period, by Simpson's rule.
double windowed_spectrum(
        const AdditiveKernel& kernel,
        double period,
        double omega) {
    const double end = period / 2;
    // some 64 steps per oscillation and per unit
    const int steps = 2 * int(std::ceil(32 * end * (1 + omega / (2 * pi))));
    const double h = end / steps;
    double sum = 0;
    for (int i = 0; i <= steps; i++) {
        const double weight = i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2;
        sum += weight * kernel.signature(i * h) * std::cos(omega * i * h);
    }
    return std::max(0.0, sum * h / 3 / pi);
}

} // namespace

HomogeneousKernelMap::HomogeneousKernelMap(
        int d,
        const AdditiveKernel& kernel,
        int order,
        Window window,
        double period,
        double degree)
        : FeatureMap(d, 0),
          kernel(copy_as(kernel)),
          order(order),
          window(window),
          period(period),
          degree(degree) {
    init();
}

void HomogeneousKernelMap::fields(FieldVisitor& v) const {
    v.part("kernel", kernel, "an additive kernel");
    v.integer("order", order, 0, 100, "2 order + 1 components each");
    // if the spectrum is a single line, the map is exact
    if (v.wants_all() || !kernel ||
        kernel->default_period(order, window) != 0) {
        v.number(
                "period",
                period,
                0,
                max_period,
                "period of the spectrum's samples, at least 0.001; 0: chosen by kernel, order and window");
        v.word("window",
               window,
               {"uniform", "rectangular"},
               "window of the kernel's signature");
    }
    v.number("degree", degree, 1e-6, 2, "degree of homogeneity");
    v.word("negative",
           negative,
           {"error", "sign"},
           "error: refuse negative components; sign: map their magnitude");
    v.word("norm", norm, {"none", "l1"}, "l1: vectors are L1-normalised first");
}

void HomogeneousKernelMap::restore() {
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained, "is_trained is false, but this map needs no training");
    init();
}

void HomogeneousKernelMap::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0,
            "HomogeneousKernelMap: the input dimension is %d, expected a positive number",
            d_in);
    check_fields(*this);
    const double default_period = kernel->default_period(order, window);
    if (default_period == 0) {
        if (period != 0) {
            throw FieldError(
                    "period",
                    "period has no effect: the map of " +
                            kernel->description() + " is exact");
        }
        amplitudes = {1};
    } else {
        const bool is_root = order == 0 && period == 0;
        if (period == 0) {
            // the fits of the defaults do not cover order 0
            period = order > 0 ? default_period : 2 * pi * kernel->spectrum(0);
        }
        if (period < min_period) {
            throw FieldError(
                    "period",
                    format_message(
                            "period is %g, expected %g to %g, or 0 for the default",
                            period,
                            min_period,
                            max_period));
        }
        const double L = 2 * pi / period;
        amplitudes.clear();
        for (int j = 0; j <= order; j++) {
            const double kappa = window == Window::uniform
                    ? kernel->spectrum(j * L)
                    : windowed_spectrum(*kernel, period, j * L);
            amplitudes.push_back(
                    float(std::sqrt((j == 0 ? 1 : 2) * L * kappa)));
        }
        if (is_root) {
            amplitudes = {1};
        }
    }
    const int64_t dimension = int64_t(d_in) * components();
    FAISS_EXT_THROW_IF_NOT_FMT(
            dimension <= INT32_MAX,
            "HomogeneousKernelMap: %d dimensions of order %d make %" PRId64
            " dimensions, expected at most 2^31 - 1",
            d_in,
            order,
            dimension);
    d_out = int(dimension);
}

void HomogeneousKernelMap::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    const auto check = negative == Negative::error ? check_histograms
                                                   : check_signed_histograms;
    check(n, x, d, where);
    if (norm == Norm::none) {
        check_sums(n, x, d, where);
    }
}

namespace {

/// Maps `size` components of vectors. Component c of x[k] goes to out[c * size
/// + k]. Since zeros map to zeros and do not change the sum, the components of
/// a vector that are not 0 suffice.
struct ComponentMap {
    simd::HomogeneousMap map;
    bool normalises;

    explicit ComponentMap(const HomogeneousKernelMap& m)
            : map{m.amplitudes.size() - 1,
                  m.amplitudes.data(),
                  m.period > 0 ? float(2 * pi / m.period) : 0,
                  float(m.degree / 2)},
              normalises(m.norm == HomogeneousKernelMap::Norm::l1) {}

    void operator()(size_t size, const float* x, float* out) const {
        float scale = 1;
        std::vector<float> scaled;
        if (normalises) {
            double sum = 0;
            for (size_t k = 0; k < size; k++) {
                sum += std::abs(x[k]);
            }
            // the inverse would underflow, or the components would count as 0
            if (sum > 1e30 || (sum > 0 && sum < 1e-20)) {
                const float factor = sum > 1 ? 1e-30f : 1e30f;
                scaled.assign(x, x + size);
                for (float& v : scaled) {
                    v *= factor;
                }
                sum *= factor;
                x = scaled.data();
            }
            scale = sum == 0 ? 0 : float(1 / sum);
        }
        simd::homogeneous_map(map, size, x, scale, out);
    }
};

} // namespace

void HomogeneousKernelMap::map(size_t n, const float* x, float* xt) const {
    const ComponentMap map(*this);
    for (size_t i = 0; i < n; i++) {
        map(d_in, x + i * d_in, xt + i * d_out);
    }
}

void HomogeneousKernelMap::map_sparse(const SparseVectors& x, float* xt) const {
    const SparseRows mapped = map_to_sparse(*this, x);
    for (idx_t i = 0; i < x.n; i++, xt += d_out) {
        std::fill_n(xt, d_out, 0.0f);
        for (int64_t j = mapped.indptr[i]; j < mapped.indptr[i + 1]; j++) {
            xt[mapped.indices[j]] = mapped.values[j];
        }
    }
}

SparseRows map_to_sparse(
        const HomogeneousKernelMap& map,
        const SparseVectors& x) {
    const ComponentMap of_components(map);
    const size_t components = map.components();
    const size_t total = components * size_t(x.indptr[x.n] - x.indptr[0]);
    SparseRows rows;
    rows.d = map.d_out;
    rows.indptr = {0};
    rows.indices.resize(total);
    rows.values.resize(total);
    size_t to = 0;
    for (idx_t i = 0; i < x.n; i++) {
        const size_t size = x.num_components(i);
        const int64_t at = x.indptr[i];
        of_components(size, x.values + at, rows.values.data() + to);
        for (size_t c = 0; c < components; c++) {
            for (size_t k = 0; k < size; k++, to++) {
                rows.indices[to] =
                        int32_t(int64_t(c) * map.d_in + x.indices[at + k]);
            }
        }
        rows.indptr.push_back(to);
    }
    return rows;
}

void HomogeneousKernelMap::reverse_transform(idx_t n, const float* xt, float* x)
        const {
    const char* where = "HomogeneousKernelMap::reverse_transform";
    check_batch(n, xt, where);
    const auto is_missing = [&](idx_t i) {
        const float* row = xt + i * d_out;
        return std::all_of(
                row, row + d_out, [](float v) { return std::isnan(v); });
    };
    std::vector<float> known(xt, xt + n * d_out);
    for (idx_t i = 0; i < n; i++) {
        if (is_missing(i)) {
            std::fill_n(known.begin() + i * d_out, d_out, 0.0f);
        }
    }
    check_finite(n, known.data(), d_out, where);
    const double unit = squared_norm();
    for (idx_t i = 0; i < n; i++) {
        const float* mapped = xt + i * d_out;
        if (is_missing(i)) {
            std::fill_n(x + i * d_in, d_in, mapped[0]);
            continue;
        }
        for (int k = 0; k < d_in; k++) {
            double sum = 0;
            for (int c = 0; c < components(); c++) {
                const double v = mapped[int64_t(c) * d_in + k];
                sum += v * v;
            }
            const double value = std::pow(sum / unit, 1 / degree);
            x[i * d_in + k] = float(
                    negative == Negative::sign ? std::copysign(value, mapped[k])
                                               : value);
        }
    }
}

double HomogeneousKernelMap::squared_norm() const {
    return map_signature(0);
}

double HomogeneousKernelMap::map_signature(double lambda) const {
    const double L = period > 0 ? 2 * pi / period : 0;
    double sum = 0;
    for (size_t j = 0; j < amplitudes.size(); j++) {
        sum += double(amplitudes[j]) * amplitudes[j] *
                std::cos(double(j) * L * lambda);
    }
    return sum;
}

double HomogeneousKernelMap::distortion() const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            degree == 1, "distortion: the degree is %g, expected 1", degree);
    const double L = period > 0 ? 2 * pi / period : 0;
    const double step = 0.01 / (1 + L * double(amplitudes.size()));
    const double most = 1 + squared_norm(); // bound on the difference
    double largest = 0;
    for (double lambda = 0; most / std::cosh(lambda / 2) > largest;
         lambda += step) {
        const double difference =
                kernel->signature(lambda) - map_signature(lambda);
        largest =
                std::max(largest, std::abs(difference) / std::cosh(lambda / 2));
    }
    return largest;
}

} // namespace faiss_ext
