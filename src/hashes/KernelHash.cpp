// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/KernelHash.h>

#include <algorithm>
#include <cmath>

#include "core/cache_sizes.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "hashes/angle.h"
#include "simd/margins.h"

namespace faiss_ext {

KernelHash::KernelHash(int d, int nbits) {
    set_dimensions(d, nbits);
}

void KernelHash::set_dimensions(int d, int nbits) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the input dimension is %d, expected a positive number", d);
    FAISS_EXT_THROW_IF_NOT_FMT(
            nbits > 0,
            "the number of bits is %d, expected a positive number",
            nbits);
    d_in = d;
    d_out = this->nbits = nbits;
}

idx_t KernelHash::rows_per_block(idx_t n) const {
    return rows_to_multiply(n, nbits, cache::margins);
}

void KernelHash::encode(idx_t n, const float* x, uint8_t* codes) const {
    check_ready(n, x, "encode");
    encode_blocks(n, codes, [&](idx_t begin, idx_t end, float* to) {
        margins(end - begin, x + begin * d_in, to);
    });
}

void KernelHash::encode_sparse(const SparseVectors& x, uint8_t* codes) const {
    const CanonicalVectors canonical(x, "encode");
    check_ready(canonical, "encode");
    encode_blocks(x.n, codes, [&](idx_t begin, idx_t end, float* to) {
        map_sparse(canonical->slice(begin, end), to);
    });
}

template <class F>
void KernelHash::encode_blocks(idx_t n, uint8_t* codes, F&& compute) const {
    parallel_blocks(
            "encoding", n, rows_per_block(n), [&](idx_t begin, idx_t end) {
                const Scratch block((end - begin) * nbits);
                compute(begin, end, block.get());
                simd::pack_signs(
                        end - begin,
                        nbits,
                        block.get(),
                        codes + begin * code_size());
            });
}

void KernelHash::map(size_t n, const float* x, float* xt) const {
    margins(n, x, xt);
}

std::pair<double, double> KernelHash::hamming_bounds(
        double kernel_value) const {
    expected_hamming(kernel_value); // throws if there is no theory
    return {0, nbits};
}

std::pair<double, double> KernelHash::kernel_interval(
        double hamming,
        double failure) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            failure > 0 && failure < 1,
            "kernel_interval: failure is %g, expected a probability between 0 and 1",
            failure);
    normalized_hamming(hamming); // throws if it is out of range
    constexpr double inside = 0.5;
    FAISS_EXT_THROW_IF_NOT_FMT(
            has_independent_bits() &&
                    hamming_bounds(inside) != std::pair(0.0, double(nbits)),
            "kernel_interval: not available for %s, because its bits are not independent or no bounds are known; use CWS, or SIK, AHK or RHBE with proj=dense or proj=generated and without learnt directions",
            description().c_str());
    const double deviation = std::sqrt(nbits * std::log(2 / failure) / 2);
    const auto [low, high] =
            kernel_bounds(hamming - deviation, hamming + deviation);
    if (low <= high) {
        return {low, high};
    }
    const double estimate = kernel_estimate(hamming);
    return {estimate, estimate};
}

std::pair<double, double> KernelHash::kernel_bounds(double least, double most)
        const {
    // bounds decrease with the kernel value: find where they reach a distance
    const auto value_at = [&](auto&& bound, double distance) {
        double low = least_kernel_value(), high = 1;
        if (bound(hamming_bounds(low)) <= distance) {
            return low;
        }
        if (bound(hamming_bounds(high)) > distance) {
            return high;
        }
        for (int i = 0; i < 60; i++) {
            const double middle = (low + high) / 2;
            (bound(hamming_bounds(middle)) > distance ? low : high) = middle;
        }
        return high;
    };
    return {value_at([](const auto& bounds) { return bounds.first; }, most),
            value_at([](const auto& bounds) { return bounds.second; }, least)};
}

std::string KernelHash::caution() const {
    return "";
}

double KernelHash::least_kernel_value() const {
    return -1;
}

double KernelHash::kernel_value(const float*, const float*) const {
    FAISS_EXT_THROW_FMT(
            "kernel_value: %s cannot compute the kernel value of two vectors",
            description().c_str());
}

double KernelHash::expected_hamming_of_pair(const float* x, const float* y)
        const {
    const double value = kernel_value(x, y);
    // rounding may put the kernel value a little below 1, or make codes of
    // zeros equal
    return std::equal(x, x + d_in, y) ? 0 : expected_hamming(value);
}

double KernelHash::covariance_of_pair(const float* x, const float* y) const {
    check_pair(x, y, "covariance_of_pair");
    FAISS_EXT_THROW_IF_NOT_FMT(
            has_independent_bits(),
            "covariance_of_pair: the covariance of the bits of %s is not known; use independent random directions (proj=dense or proj=generated, rot=random), or BSIK",
            description().c_str());
    return 0;
}

void KernelHash::check_pair(const float* x, const float* y, const char* where)
        const {
    check_ready(1, x, where);
    check_ready(1, y, where);
}

void KernelHash::query_weights(size_t, float*) const {}

double KernelHash::asymmetric_kernel_estimate(double distance) const {
    const double cosine = 1 - 2 * normalized_hamming(distance);
    return kernel_estimate(nbits * normalized_angle(cosine));
}

std::string KernelHash::description() const {
    if (!class_table<KernelHash>().knows(*this)) {
        return type_name(typeid(*this));
    }
    const std::string text = object_to_string(*this);
    const size_t end = std::min(text.find('('), text.size());
    return text.substr(0, end) + std::to_string(nbits) + text.substr(end);
}

std::unique_ptr<KernelHash> KernelHash::clone() const {
    return class_table<KernelHash>().find(*this).copy(*this);
}

void KernelHash::assign(const KernelHash& other) {
    class_table<KernelHash>().find(*this).assign(*this, other);
}

std::unique_ptr<Transform> KernelHash::copy_transform() const {
    return clone();
}

void KernelHash::assign_transform(const Transform& other) {
    assign(dynamic_cast<const KernelHash&>(other));
}

double KernelHash::normalized_hamming(double hamming) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            hamming >= 0 && hamming <= nbits,
            "the distance is %g, expected 0 to %d bits",
            hamming,
            nbits);
    return hamming / nbits;
}

} // namespace faiss_ext
