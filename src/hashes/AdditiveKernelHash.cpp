#include <faiss_ext/hashes/AdditiveKernelHash.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include <faiss_ext/core/Spec.h>

#include "core/errors.h"
#include "core/io_fields.h"
#include "core/scratch.h"
#include "hashes/angle.h"
#include "hashes/features.h"
#include "projections/projection_args.h"
#include "projections/random_projection.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

void check_bound(double u, double delta) {
    check_kernel_value(u, 0);
    FAISS_EXT_THROW_IF_NOT_FMT(
            delta >= 0 && delta < 1,
            "delta is %g, expected 0 to below 1",
            delta);
}

/// Maps of so many vectors stay in the second-level cache.
size_t rows_per_map(int d) {
    return std::clamp(131072 / d, 1, 192);
}

} // namespace

AdditiveKernelHash::AdditiveKernelHash(
        const HomogeneousKernelMap& map,
        int nbits,
        bool center,
        int64_t seed,
        bool structured)
        : KernelHash(map.d_in, nbits), map(map), center(center), seed(seed) {
    draw(structured);
}

AdditiveKernelHash::AdditiveKernelHash(int d, int nbits, Spec& spec)
        : KernelHash(d, nbits),
          map(d, int(spec.get_int("order", 1, 0, 100)), spec),
          center(spec.get_flag("center", false)),
          seed(spec.get_int("seed", 1234, 0, INT64_MAX)) {
    draw(get_structured(spec));
}

void AdditiveKernelHash::draw(bool structured) {
    projection = gaussian_projection(structured, map.d_out, nbits, seed);
    is_trained = !center;
}

void AdditiveKernelHash::learn(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            n > 0, "AdditiveKernelHash::train: there are no vectors");
    const std::vector<double> means = mean_of_features(
            n,
            x,
            d_in,
            seed,
            map.d_out + 1, // |Psi(x)|^2 is one feature more
            [&](const float* from, double* features) {
                std::vector<float> mapped(map.d_out);
                map.map(1, from, mapped.data());
                features[map.d_out] = 0;
                for (int k = 0; k < map.d_out; k++) {
                    features[k] = mapped[k];
                    features[map.d_out] += features[k] * features[k];
                }
            });
    const std::vector<float> mean(means.begin(), means.end() - 1);
    double sum = 0;
    for (int k = 0; k < map.d_out; k++) {
        sum += means[k] * means[k];
    }
    mean_value = means.back() > 0 ? std::min(sum / means.back(), 1.0) : 0;
    threshold.resize(nbits);
    projection->apply(1, mean.data(), threshold.data());
}

void AdditiveKernelHash::margins(size_t n, const float* x, float* margins)
        const {
    check_projection(projection.get(), map.d_out, nbits);
    const size_t rows = std::min(n, rows_per_map(map.d_out));
    const Scratch mapped(rows * map.d_out);
    for (size_t i = 0; i < n; i += rows) {
        const size_t m = std::min(rows, n - i);
        map.map(m, x + i * d_in, mapped.get());
        projection->apply(m, mapped.get(), margins + i * nbits);
    }
    subtract_thresholds(threshold, n, margins);
}

void AdditiveKernelHash::check_input(idx_t n, const float* x, const char* where)
        const {
    map.check_input(n, x, where);
}

double AdditiveKernelHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, 0);
    if (mean_value == 1) { // all training vectors were equal
        return kernel_value < 1 ? nbits / 2.0 : 0;
    }
    return nbits * angle_share((kernel_value - mean_value) / (1 - mean_value));
}

double AdditiveKernelHash::kernel_estimate(double hamming) const {
    const double cosine = std::cos(pi * normalized_hamming(hamming));
    return std::clamp(mean_value + cosine * (1 - mean_value), 0.0, 1.0);
}

double AdditiveKernelHash::f(double u, double delta) {
    check_bound(u, delta);
    const double v = (u + delta) / (1 - delta);
    return 0.5 - v / pi - 3 / (5 * pi) * v * v * v;
}

double AdditiveKernelHash::g(double u, double delta) {
    check_bound(u, delta);
    const double v = u - delta;
    return 0.5 - v / pi - v * v * v / (6 * pi);
}

void AdditiveKernelHash::write_fields(faiss::IOWriter* f) const {
    map.write_fields(f);
    write_value(f, center);
    write_value(f, seed);
    projection.write(f);
    write_vector(f, threshold);
    write_value(f, mean_value);
}

void AdditiveKernelHash::read_fields(faiss::IOReader* f) {
    map.d_in = d_in;
    map.read_fields(f);
    center = read_value<bool>(f, "center");
    seed = read_value<int64_t>(f, "seed");
    projection.read(f);
    read_finite_vector(
            f, threshold, center && is_trained ? nbits : 0, "threshold");
    mean_value = read_value<double>(f, "mean_value");
    FAISS_EXT_THROW_IF_NOT_FMT(
            projection && projection->d_in == map.d_out &&
                    projection->d_out == nbits && (center || is_trained) &&
                    mean_value >= 0 && mean_value <= 1,
            "%s is damaged: the parts of a hash do not fit",
            f->name.c_str());
}

} // namespace faiss_ext
