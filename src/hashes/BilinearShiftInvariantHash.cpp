#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include <faiss_ext/core/Spec.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include "core/check.h"
#include "core/eigen_symmetric.h"
#include "core/errors.h"
#include "core/io_fields.h"
#include "core/random_streams.h"
#include "hashes/angle.h"
#include "hashes/features.h"
#include "hashes/hamming_series.h"
#include "kernels/kernel_args.h"
#include "projections/projection_args.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

constexpr int max_m = 1000;

int checked_dimension(int d_w, int d_v) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_w > 0 && d_v > 0 && int64_t(d_w) * d_v <= (1 << 30),
            "BilinearShiftInvariantHash: the shape is %d x %d, expected positive numbers of product up to 2^30",
            d_w,
            d_v);
    return d_w * d_v;
}

/// prod_j (1 + m^2 lambda_j)^(-1/2)
double bilinear_product(const std::vector<double>& lambda, double m) {
    double log = 0;
    for (double v : lambda) {
        log += std::log1p(m * m * v);
    }
    return std::exp(-log / 2);
}

/// the same for r equal eigenvalues of sum s
double even_product(double s, int r, double m) {
    return std::exp(-0.5 * r * std::log1p(m * m * s / r));
}

} // namespace

BilinearShiftInvariantHash::BilinearShiftInvariantHash(
        int d_w,
        int d_v,
        int nbits,
        double gamma,
        int m,
        bool structured,
        int64_t seed,
        bool shuffle)
        : KernelHash(checked_dimension(d_w, d_v), nbits),
          kernel(gamma),
          d_w(d_w),
          d_v(d_v),
          m(m),
          structured(structured),
          shuffle(shuffle),
          seed(seed) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            m >= 1 && m <= max_m,
            "BilinearShiftInvariantHash: m is %d, expected 1 to %d",
            m,
            max_m);
    is_trained = kernel.is_trained;
    if (is_trained) {
        draw();
    }
}

BilinearShiftInvariantHash::BilinearShiftInvariantHash(
        int d,
        int nbits,
        Spec& spec)
        : KernelHash(d, nbits) {
    const auto shape = spec.get_positional(0);
    std::tie(d_w, d_v) = shape
            ? parse_shape(spec, shape->value, shape->value_begin, d)
            : parse_shape(spec, "auto", spec.begin, d);
    m = int(spec.get_int("m", 5, 1, max_m));
    kernel = GaussianKernel(get_gamma(spec));
    structured = get_structured(spec);
    shuffle = spec.get_flag("shuffle", true);
    seed = spec.get_int("seed", 1234, 0, INT64_MAX);
    is_trained = kernel.is_trained;
    if (is_trained) {
        draw();
    }
}

void BilinearShiftInvariantHash::draw() {
    projection = BilinearProjection(
            d_w, d_v, nbits, m, structured, seed, kernel.turns(), shuffle);
    std::mt19937_64 rng = row_rng(seed, 0, stream_offsets);
    std::uniform_real_distribution<double> uniform;
    offset.resize(nbits);
    threshold.resize(nbits);
    for (int i = 0; i < nbits; i++) {
        offset[i] = float(uniform(rng));
        threshold[i] = float(std::acos(1 - 2 * uniform(rng)) / (2 * pi));
    }
}

void BilinearShiftInvariantHash::learn(idx_t n, const float* x) {
    kernel.verbose = verbose;
    kernel.train(n, x, d_in);
    draw();
}

void BilinearShiftInvariantHash::margins(
        size_t n,
        const float* x,
        float* margins) const {
    check_projection(&projection, d_in, nbits);
    projection.apply(n, x, margins);
    simd::fold_phases(n, nbits, offset.data(), threshold.data(), margins);
}

double BilinearShiftInvariantHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, 0);
    const double s = -2 * std::log(std::clamp(kernel_value, 0.0, 1.0));
    const int r = std::min(d_w, d_v);
    return nbits *
            expected_share([&](double i) { return even_product(s, r, i); });
}

double BilinearShiftInvariantHash::kernel_estimate(double hamming) const {
    const double share = normalized_hamming(hamming);
    if (share >= 4 / (pi * pi)) {
        return 0;
    }
    if (share == 0) {
        return 1;
    }
    const int r = std::min(d_w, d_v);
    const double s = inverse_share(share, [&](double s) {
        return expected_share([&](double i) { return even_product(s, r, i); });
    });
    return std::exp(-s / 2);
}

std::vector<double> BilinearShiftInvariantHash::eigenvalues(
        const float* x,
        const float* y) const {
    FAISS_EXT_THROW_IF_NOT_MSG(is_trained, "the hash is not trained");
    check_finite(1, x, d_in, "BilinearShiftInvariantHash");
    check_finite(1, y, d_in, "BilinearShiftInvariantHash");
    // the smaller of the two Gram matrices of the difference
    const bool rows = d_w <= d_v;
    const size_t r = rows ? d_w : d_v, length = rows ? d_v : d_w;
    const auto difference = [&](size_t i, size_t k) {
        const size_t at = rows ? i * d_v + k : k * d_v + i;
        return double(projection.component(x, at)) -
                projection.component(y, at);
    };
    std::vector<double> a(r * r), values;
    for (size_t i = 0; i < r; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
            for (size_t k = 0; k < length; k++) {
                sum += difference(i, k) * difference(j, k);
            }
            a[i * r + j] = a[j * r + i] = kernel.gamma * sum;
        }
    }
    eigen_symmetric(r, a, values);
    for (double& v : values) {
        v = std::max(v, 0.0);
    }
    return values;
}

double BilinearShiftInvariantHash::bilinear_kernel(
        const float* x,
        const float* y) const {
    return bilinear_product(eigenvalues(x, y), 1);
}

double BilinearShiftInvariantHash::expected_hamming_of_pair(
        const float* x,
        const float* y) const {
    const std::vector<double> lambda = eigenvalues(x, y);
    return nbits * expected_share([&](double i) {
               return bilinear_product(lambda, i);
           });
}

double BilinearShiftInvariantHash::lower_bound(double u) {
    check_kernel_value(u, 0);
    return 4 / (pi * pi) * (1 - std::pow(std::clamp(u, 0.0, 1.0), 0.79));
}

double BilinearShiftInvariantHash::upper_bound(double u) {
    check_kernel_value(u, 0);
    return ShiftInvariantHash::h2(std::clamp(u, 0.0, 1.0));
}

double BilinearShiftInvariantHash::covariance_bound(double u) {
    check_kernel_value(u, 0);
    const double log = std::log(std::clamp(u, 0.0, 1.0));
    // 8/pi^2 times the series is 4/pi^2 less the expected share
    const auto series = [&](double power) {
        return 4 / (pi * pi) - expected_share([&](double i) {
                   return std::exp(power * i * i * log);
               });
    };
    const double high = series(0.79), low = series(1);
    return high * high - low * low;
}

void BilinearShiftInvariantHash::write_fields(faiss::IOWriter* f) const {
    write_value(f, kernel.gamma);
    write_value(f, kernel.auto_gamma);
    write_value(f, d_w);
    write_value(f, d_v);
    write_value(f, m);
    write_value(f, structured);
    write_value(f, shuffle);
    write_value(f, seed);
    if (is_trained) {
        projection.write(f);
        write_vector(f, offset);
        write_vector(f, threshold);
    }
}

void BilinearShiftInvariantHash::read_fields(faiss::IOReader* f) {
    const double gamma = read_value<double>(f, "gamma");
    FAISS_EXT_THROW_IF_NOT_FMT(
            gamma >= 0 && std::isfinite(gamma) && (gamma > 0) == is_trained,
            "%s is damaged: gamma is %g",
            f->name.c_str(),
            gamma);
    kernel = GaussianKernel(gamma);
    kernel.auto_gamma = read_value<bool>(f, "auto_gamma");
    d_w = read_value_in<int>(f, "d_w", 1, d_in);
    d_v = read_value_in<int>(f, "d_v", 1, d_in);
    m = read_value_in<int>(f, "m", 1, max_m);
    structured = read_value<bool>(f, "structured");
    shuffle = read_value<bool>(f, "shuffle");
    seed = read_value<int64_t>(f, "seed");
    bool fits = int64_t(d_w) * d_v == d_in;
    if (is_trained) {
        projection.read(f);
        read_finite_vector(f, offset, nbits, "offset");
        read_finite_vector(f, threshold, nbits, "threshold");
        fits = fits && projection.d_w == d_w && projection.d_v == d_v &&
                projection.d_out == nbits;
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            fits,
            "%s is damaged: the parts of a hash do not fit",
            f->name.c_str());
}

} // namespace faiss_ext
