#include <faiss_ext/hashes/HyperplaneHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <faiss_ext/core/Spec.h>

#include "core/errors.h"
#include "core/io_fields.h"
#include "hashes/angle.h"
#include "hashes/features.h"
#include "projections/projection_args.h"
#include "projections/random_projection.h"

namespace faiss_ext {

HyperplaneHash::HyperplaneHash(
        int d,
        int nbits,
        bool center,
        int64_t seed,
        bool structured)
        : KernelHash(d, nbits),
          center(center),
          seed(seed),
          projection(gaussian_projection(structured, d, nbits, seed)) {
    is_trained = !center;
}

HyperplaneHash::HyperplaneHash(
        AnyProjection projection,
        bool center,
        int64_t seed)
        : KernelHash(
                  projection ? projection->d_in : 0,
                  projection ? projection->d_out : 0),
          center(center),
          seed(seed),
          projection(std::move(projection)) {
    is_trained = !center;
}

HyperplaneHash::HyperplaneHash(int d, int nbits, Spec& spec)
        : KernelHash(d, nbits),
          center(spec.get_flag("center", false)),
          seed(spec.get_int("seed", 1234, 0, INT64_MAX)) {
    is_trained = !center;
    const std::string form = spec.get_word(
            "proj", "structured", {"structured", "dense", "bilinear"});
    if (form != "bilinear") {
        projection = gaussian_projection(form == "structured", d, nbits, seed);
        return;
    }
    const std::string text = spec.get("shape").value_or("auto");
    size_t position = spec.begin;
    for (const Spec::Argument& a : spec.arguments) {
        position = a.key == "shape" ? a.value_begin : position;
    }
    const auto [d_w, d_v] = parse_shape(spec, text, position, d);
    const int m = int(spec.get_int("m", 5, 1, 1000));
    projection = BilinearProjection(
            d_w,
            d_v,
            nbits,
            m,
            spec.get_word("form", "structured", {"structured", "dense"}) ==
                    "structured",
            seed,
            1.0,
            spec.get_flag("shuffle", true));
}

void HyperplaneHash::learn(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            n > 0, "HyperplaneHash::train: there are no vectors");
    const std::vector<double> means = mean_of_features(
            n, x, d_in, seed, d_in, [&](const float* from, double* to) {
                std::copy_n(from, d_in, to);
            });
    const std::vector<float> mean(means.begin(), means.end());
    threshold.resize(nbits);
    projection->apply(1, mean.data(), threshold.data());
}

void HyperplaneHash::margins(size_t n, const float* x, float* margins) const {
    check_projection(projection.get(), d_in, nbits);
    projection->apply(n, x, margins);
    subtract_thresholds(threshold, n, margins);
}

double HyperplaneHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, -1);
    return nbits * angle_share(kernel_value);
}

double HyperplaneHash::kernel_estimate(double hamming) const {
    return std::cos(std::numbers::pi * normalized_hamming(hamming));
}

void HyperplaneHash::write_fields(faiss::IOWriter* f) const {
    write_value(f, center);
    write_value(f, seed);
    projection.write(f);
    write_vector(f, threshold);
}

void HyperplaneHash::read_fields(faiss::IOReader* f) {
    center = read_value<bool>(f, "center");
    seed = read_value<int64_t>(f, "seed");
    projection.read(f);
    read_finite_vector(
            f, threshold, center && is_trained ? nbits : 0, "threshold");
    FAISS_EXT_THROW_IF_NOT_FMT(
            projection && projection->d_in == d_in &&
                    projection->d_out == nbits && (center || is_trained),
            "%s is damaged: the parts of a hash do not fit",
            f->name.c_str());
}

} // namespace faiss_ext
