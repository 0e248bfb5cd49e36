// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/ConsistentSamplingHash.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/random_streams.h"
#include "hashes/angle.h"
#include "simd/weighted_samples.h"

namespace faiss_ext {

namespace {

/// Mixes a number so that its 64 bits are as good as random (the last step of
/// SplitMix64).
uint64_t mixed(uint64_t v) {
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

} // namespace

ConsistentSamplingHash::ConsistentSamplingHash(int d, int nbits, int64_t seed)
        : KernelHash(d, nbits), seed(seed) {
    init();
}

void ConsistentSamplingHash::fields(FieldVisitor& v) const {
    v.integer("seed", seed, 0, INT64_MAX, "seed of the samples");
    const size_t count = size_t(d_in) * nbits;
    v.array("rate", rate, count);
    v.array("shift", shift, count);
    v.array("cost", cost, count);
}

void ConsistentSamplingHash::init() {
    check_fields(*this);
    const size_t count = size_t(d_in) * nbits;
    rate.resize(count);
    shift.resize(count);
    cost.resize(count);
    parallel_blocks(nbits, 8, [&](idx_t begin, idx_t end) {
        for (idx_t j = begin; j < end; j++) {
            auto rng = row_rng(seed, j, stream_rows);
            // the least value is far from 0, so no rate vanishes
            const auto uniform = [&] {
                return (double(rng() >> 11) + 0.5) * 0x1p-53;
            };
            const auto gamma_2 = [&] {
                return -std::log(uniform() * uniform());
            };
            for (int k = 0; k < d_in; k++) {
                const size_t at = size_t(k) * nbits + j;
                rate[at] = float(gamma_2());
                shift[at] = float(uniform());
                cost[at] = float(std::log(gamma_2()));
            }
        }
    });
}

void ConsistentSamplingHash::restore() {
    const bool fits =
            std::all_of(
                    rate.begin(), rate.end(), [](float v) { return v > 0; }) &&
            std::all_of(shift.begin(), shift.end(), [](float v) {
                return v >= 0 && v <= 1;
            });
    FAISS_EXT_THROW_IF_NOT_MSG(
            fits && is_trained, "the numbers of the hash are out of range");
}

void ConsistentSamplingHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
}

void ConsistentSamplingHash::margins(size_t n, const float* x, float* margins)
        const {
    std::vector<int32_t> components, chosen(nbits), level(nbits);
    std::vector<float> logarithms;
    for (size_t i = 0; i < n; i++, x += d_in, margins += nbits) {
        components.clear();
        logarithms.clear();
        for (int k = 0; k < d_in; k++) {
            if (x[k] > 0) {
                components.push_back(k);
                logarithms.push_back(std::log(x[k]));
            }
        }
        simd::weighted_samples(
                components.size(),
                components.data(),
                logarithms.data(),
                nbits,
                rate.data(),
                shift.data(),
                cost.data(),
                chosen.data(),
                level.data());
        for (int j = 0; j < nbits; j++) {
            const uint64_t sample =
                    uint64_t(uint32_t(chosen[j])) << 32 | uint32_t(level[j]);
            const uint64_t bit =
                    mixed(sample ^ mixed(uint64_t(seed) ^ mixed(j)));
            margins[j] = bit >> 63 ? 1.0f : -1.0f;
        }
    }
}

double ConsistentSamplingHash::least_kernel_value() const {
    return 0;
}

double ConsistentSamplingHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, least_kernel_value());
    return nbits * (1 - kernel_value) / 2;
}

std::pair<double, double> ConsistentSamplingHash::hamming_bounds(
        double kernel_value) const {
    const double expected = expected_hamming(kernel_value);
    return {expected, expected};
}

double ConsistentSamplingHash::kernel_estimate(double hamming) const {
    return std::max(0.0, 1 - 2 * normalized_hamming(hamming));
}

double ConsistentSamplingHash::asymmetric_kernel_estimate(
        double distance) const {
    return kernel_estimate(distance);
}

double ConsistentSamplingHash::kernel_value(const float* x, const float* y)
        const {
    check_pair(x, y, "kernel_value");
    double smaller = 0, larger = 0;
    for (int k = 0; k < d_in; k++) {
        smaller += std::min(x[k], y[k]);
        larger += std::max(x[k], y[k]);
    }
    return larger > 0 ? smaller / larger : 1;
}

} // namespace faiss_ext
