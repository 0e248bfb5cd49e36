// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/ConsistentSamplingHash.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
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
}

void ConsistentSamplingHash::init() {
    check_fields(*this);
}

void ConsistentSamplingHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
}

void ConsistentSamplingHash::margins_of_components(
        size_t count,
        const int32_t* components,
        const float* weights,
        float* margins,
        std::vector<uint32_t>& work) const {
    uint32_t keys[simd::max_weighted_samples];
    for (int begin = 0; begin < nbits; begin += simd::max_weighted_samples) {
        const size_t size =
                std::min<size_t>(nbits - begin, simd::max_weighted_samples);
        const uint64_t seeds = mixed(uint64_t(seed) ^ mixed(begin + 1));
        if (count > 0) {
            simd::weighted_samples(
                    count,
                    components,
                    weights,
                    uint32_t(seeds),
                    uint32_t(seeds >> 32),
                    size,
                    keys,
                    work);
        } else {
            for (size_t j = 0; j < size; j++) {
                keys[j] = uint32_t(mixed(seeds ^ mixed(j + 1)) >> 32);
            }
        }
        for (size_t j = 0; j < size; j++) {
            margins[begin + j] = keys[j] & 1 ? 1.0f : -1.0f;
        }
    }
}

void ConsistentSamplingHash::margins(size_t n, const float* x, float* margins)
        const {
    std::vector<uint32_t> work;
    std::vector<int32_t> components(size_t(d_in) + 1);
    std::vector<float> weights(components.size());
    for (size_t i = 0; i < n; i++, x += d_in, margins += nbits) {
        const size_t count = simd::positive_components(
                d_in, x, components.data(), weights.data());
        margins_of_components(
                count, components.data(), weights.data(), margins, work);
    }
}

void ConsistentSamplingHash::map_sparse(const SparseVectors& x, float* xt)
        const {
    std::vector<uint32_t> work;
    for (idx_t i = 0; i < x.n; i++) {
        const int64_t at = x.indptr[i];
        margins_of_components(
                x.num_components(i),
                x.indices + at,
                x.values + at,
                xt + i * nbits,
                work);
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
