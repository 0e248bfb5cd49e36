#include <faiss_ext/hashes/SignCauchyHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <faiss_ext/core/Spec.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/io_fields.h"
#include "hashes/angle.h"
#include "hashes/features.h"
#include "projections/random_projection.h"

namespace faiss_ext {

SignCauchyHash::SignCauchyHash(int d, int nbits, int64_t seed)
        : KernelHash(d, nbits), seed(seed) {
    init();
}

SignCauchyHash::SignCauchyHash(int d, int nbits, Spec& spec)
        : KernelHash(d, nbits), seed(spec.get_int("seed", 1234, 0, INT64_MAX)) {
    spec.get_word("proj", "dense", {"dense"});
    init();
}

void SignCauchyHash::init() {
    projection = random_projection<std::cauchy_distribution<double>>(
            d_in, nbits, seed);
}

void SignCauchyHash::margins(size_t n, const float* x, float* margins) const {
    check_projection(&projection, d_in, nbits);
    projection.apply(n, x, margins);
}

void SignCauchyHash::check_input(idx_t n, const float* x, const char* where)
        const {
    check_histograms(n, x, d_in, where);
}

double SignCauchyHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, 0);
    return nbits * angle_share(kernel_value);
}

double SignCauchyHash::kernel_estimate(double hamming) const {
    return std::max(
            0.0, std::cos(std::numbers::pi * normalized_hamming(hamming)));
}

void SignCauchyHash::write_fields(faiss::IOWriter* f) const {
    write_value(f, seed);
    projection.write(f);
}

void SignCauchyHash::read_fields(faiss::IOReader* f) {
    seed = read_value<int64_t>(f, "seed");
    projection.read(f);
    FAISS_EXT_THROW_IF_NOT_FMT(
            projection.d_in == d_in && projection.d_out == nbits && is_trained,
            "%s is damaged: the parts of a hash do not fit",
            f->name.c_str());
}

} // namespace faiss_ext
