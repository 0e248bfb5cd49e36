// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryHNSWKernel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "indexes/bit_scan.h"
#include "indexes/code_scores.h"
#include "simd/ranking.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

/// 1 - k of codes, in units of 2^-30.
struct BitScores final : CodeScores {
    const BitKernel& kernel;
    const int bits;
    const std::vector<float> zeros;

    BitScores(const BitKernel& kernel, int bits, const IndexBinaryFlatSIMD& all)
            : CodeScores(all.codes(), all.code_size),
              kernel(kernel),
              bits(bits),
              zeros(d()) {}

    void block(
            size_t n,
            const float* x,
            size_t m,
            const float* y,
            float* scores) const override {
        const Scratch ones_of_x(n), ones_of_y(m);
        CodeScores::block(1, zeros.data(), n, x, ones_of_x.get());
        CodeScores::block(1, zeros.data(), m, y, ones_of_y.get());
        CodeScores::block(n, x, m, y, scores);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                float& score = scores[i * m + j];
                const int a = int(ones_of_x.get()[i]),
                          b = int(ones_of_y.get()[j]);
                const int common = (a + b - int(score)) / 2;
                score = float(scaled_distance(kernel, {bits, a, b, common}));
            }
        }
    }
};

} // namespace

IndexBinaryHNSWKernel::IndexBinaryHNSWKernel(
        int d,
        const BitKernel& kernel,
        int M)
        : IndexBinaryHNSWSIMD(padded_bits(d), M), kernel(kernel.clone()) {
    this->d = d; // FAISS's constructors take only multiples of 8
    check_kernel();
}

void IndexBinaryHNSWKernel::check_kernel() const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel, "IndexBinaryHNSWKernel: the kernel is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            kernel->is_symmetric() && kernel->is_one_for_equal(),
            "IndexBinaryHNSWKernel: a graph needs a symmetric kernel with k(x, x) = 1, got %s; BKFlat(...) alone takes any kernel of bits",
            kernel->description().c_str());
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0 && d <= most_kernel_bits,
            "IndexBinaryHNSWKernel: the number of bits is %d, expected 1 to %d",
            d,
            most_kernel_bits);
}

std::unique_ptr<VertexScores> IndexBinaryHNSWKernel::scores() const {
    return std::make_unique<BitScores>(*kernel, d, codes());
}

int32_t IndexBinaryHNSWKernel::distance(
        const uint8_t* query,
        int32_t vertex,
        float) const {
    const size_t size = code_size;
    const uint8_t* code = codes().codes() + size_t(vertex) * size;
    const int a = number_of_ones(query, size), b = number_of_ones(code, size);
    const int apart = hamming_distance(query, code, size);
    return scaled_distance(*kernel, {d, a, b, (a + b - apart) / 2});
}

float IndexBinaryHNSWKernel::largest_score(int radius) const {
    // floats are rounded to 24 bits
    return std::nextafter(
            float(radius), std::numeric_limits<float>::infinity());
}

void IndexBinaryHNSWKernel::scan(
        const faiss::IDSelector& sel,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* vertices) const {
    const idx_t total = codes().ntotal;
    parallel_blocks(n, 1, [&](idx_t i, idx_t) {
        TopK<int32_t> nearest(std::min(k, total));
        for (idx_t v = 0; v < total; v++) {
            if (sel.is_member(v)) {
                nearest.push(distance(x + i * code_size, int32_t(v), 0), v);
            }
        }
        const auto hits = nearest.sorted(k);
        for (idx_t j = 0; j < k; j++) {
            const bool is_there = j < idx_t(hits.size());
            distances[i * k + j] = is_there
                    ? hits[j].first
                    : std::numeric_limits<int32_t>::max();
            vertices[i * k + j] = is_there ? hits[j].second : -1;
        }
    });
}

void IndexBinaryHNSWKernel::check_same_distance(
        const IndexBinaryHNSWSIMD& other) const {
    const auto* same = dynamic_cast<const IndexBinaryHNSWKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            same,
            "cannot merge: one graph has a kernel of bits, expected both or none");
    check_same_kernel(*kernel, *same->kernel);
}

} // namespace faiss_ext
