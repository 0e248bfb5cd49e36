// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/BitKernel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <faiss_ext/kernels/DiceKernel.h>
#include <faiss_ext/kernels/JaccardKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>

#include "core/bit_rows.h"
#include "core/check.h"
#include "core/class_table_impl.h"
#include "core/field_strings.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "simd/common_bits.h"

namespace faiss_ext {

template struct ClassTable<BitKernel>;

template <>
ClassTable<BitKernel>& class_table<BitKernel>() {
    static ClassTable<BitKernel> table(
            "kernel of bits",
            Names::inside,
            {
                    class_entry<BitKernel, CosineBitKernel>("cosine"),
                    class_entry<BitKernel, DiceBitKernel>("dice"),
                    class_entry<BitKernel, HammingBitKernel>("hamming"),
                    class_entry<BitKernel, JaccardBitKernel>("jaccard"),
                    class_entry<BitKernel, RussellRaoBitKernel>("russellrao"),
                    class_entry<BitKernel, TverskyBitKernel>("tversky"),
            });
    return table;
}

std::vector<std::string> bit_kernel_names() {
    return class_table<BitKernel>().names();
}

std::unique_ptr<BitKernel> bit_kernel_factory(const std::string& description) {
    Spec spec = Spec::parse(description);
    const auto entry = class_table<BitKernel>().find(spec.name);
    if (!entry) {
        spec.fail(
                spec.begin,
                "unknown kernel of bits '" + spec.name + "'",
                bit_kernel_names());
    }
    auto kernel = entry->make();
    read_string(*kernel, spec);
    return kernel;
}

void BitKernel::fields(FieldVisitor&) const {}

void BitKernel::init() {
    check_fields(*this);
}

void BitKernel::restore() {
    check_fields(*this);
}

std::string BitKernel::description() const {
    return object_to_string(*this);
}

std::unique_ptr<BitKernel> BitKernel::clone() const {
    return class_table<BitKernel>().find(*this).copy(*this);
}

void BitKernel::assign(const BitKernel& other) {
    class_table<BitKernel>().find(*this).assign(*this, other);
}

namespace {

/// Codes as words of 8 bytes, padded with zeros, and their numbers of ones.
struct CountedCodes {
    size_t words;
    std::vector<uint64_t> codes;
    std::vector<int> ones;

    CountedCodes(idx_t n, const uint8_t* x, size_t code_size)
            : words((code_size + 7) / 8), codes(n * words), ones(n) {
        for (idx_t i = 0; i < n; i++) {
            const uint8_t* code = x + i * code_size;
            std::memcpy(&codes[i * words], code, code_size);
            ones[i] = number_of_ones(code, code_size);
        }
    }
};

} // namespace

void BitKernel::gram(
        idx_t n,
        const uint8_t* x,
        idx_t m,
        const uint8_t* y,
        int d,
        float* out) const {
    const char* where = "BitKernel::gram";
    check_batch(n, x, where);
    check_batch(m, y, where);
    check_bits(n, d, x, where);
    check_bits(m, d, y, where);
    const size_t code_size = bytes_of_bits(d);
    const CountedCodes a(n, x, code_size), b(m, y, code_size);
    std::vector<uint32_t> all(m);
    std::iota(all.begin(), all.end(), 0u);
    parallel_blocks(n, 1, [&](idx_t i, idx_t) {
        std::vector<uint32_t> common(m);
        simd::common_bits(
                a.words,
                &a.codes[i * a.words],
                b.codes.data(),
                m,
                all.data(),
                common.data());
        for (idx_t j = 0; j < m; j++) {
            out[i * m + j] = float(
                    1 - distance({d, a.ones[i], b.ones[j], int(common[j])}));
        }
    });
}

namespace {

/// Bits that are 1 in one of two codes only.
double apart(const BitCounts& n) {
    return double(n.x) + n.y - 2.0 * n.common;
}

/// a / b, and 0 if both are 0.
double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

} // namespace

double JaccardBitKernel::distance(const BitCounts& n) const {
    return ratio(apart(n), apart(n) + n.common);
}

double JaccardBitKernel::common_bits(double distance, const BitCounts& n)
        const {
    const double k = 1 - distance;
    return k / (1 + k) * (double(n.x) + n.y);
}

const Kernel* JaccardBitKernel::on_vectors() const {
    static const JaccardKernel kernel;
    return &kernel;
}

double DiceBitKernel::distance(const BitCounts& n) const {
    return ratio(apart(n), double(n.x) + n.y);
}

double DiceBitKernel::common_bits(double distance, const BitCounts& n) const {
    return (1 - distance) / 2 * (double(n.x) + n.y);
}

const Kernel* DiceBitKernel::on_vectors() const {
    static const DiceKernel kernel;
    return &kernel;
}

double CosineBitKernel::distance(const BitCounts& n) const {
    if (n.x == 0 || n.y == 0) {
        return 1;
    }
    const double product = double(n.x) * n.y;
    // 1 - c / r = (r^2 - c^2) / (r (r + c)), exact before the division
    const double root = std::sqrt(product), c = n.common;
    return (product - c * c) / (root * (root + c));
}

double CosineBitKernel::common_bits(double distance, const BitCounts& n) const {
    return (1 - distance) * std::sqrt(double(n.x) * n.y);
}

const Kernel* CosineBitKernel::on_vectors() const {
    static const CosineKernel kernel;
    return &kernel;
}

TverskyBitKernel::TverskyBitKernel(double alpha, double beta)
        : alpha(alpha), beta(beta) {
    init();
}

void TverskyBitKernel::fields(FieldVisitor& v) const {
    constexpr double most = 1e6;
    v.number("alpha", alpha, 0, most, "weight of bits of the query only");
    v.number("beta", beta, 0, most, "weight of bits of the code only");
}

double TverskyBitKernel::distance(const BitCounts& n) const {
    const double others = alpha * (n.x - n.common) + beta * (n.y - n.common);
    if (n.common + others > 0) {
        return others / (n.common + others);
    }
    return 0;
}

double TverskyBitKernel::common_bits(double distance, const BitCounts& n)
        const {
    const double k = 1 - distance;
    return k * (alpha * n.x + beta * n.y) / (1 - k + k * (alpha + beta));
}

double RussellRaoBitKernel::distance(const BitCounts& n) const {
    return double(n.d - n.common) / n.d;
}

double RussellRaoBitKernel::common_bits(double distance, const BitCounts& n)
        const {
    return (1 - distance) * n.d;
}

double HammingBitKernel::distance(const BitCounts& n) const {
    return apart(n) / n.d;
}

double HammingBitKernel::common_bits(double distance, const BitCounts& n)
        const {
    return (double(n.x) + n.y - distance * n.d) / 2;
}

} // namespace faiss_ext
