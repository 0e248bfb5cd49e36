#include <faiss_ext/AdditiveKernel.h>

#include "check.h"
#include "simd/pairwise.h"

namespace faiss_ext {

using simd::PairOp;

void AdditiveKernel::check_input(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_histograms(n, x, d, where);
}

void AdditiveKernel::self_values(size_t n, const float* x, size_t d, float* out)
        const {
    for (size_t i = 0; i < n; i++) {
        // min(x, x) = x
        const float* row = x + i * d;
        simd::pairwise(PairOp::intersection, 1, row, 1, row, d, out + i, 1);
    }
}

void Chi2Kernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::chi2, n, x, m, y, d, out, m);
}

void Chi2Kernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::chi2_distance, n, x, m, y, d, out, m);
}

std::string Chi2Kernel::description() const {
    return "chi2";
}

void IntersectionKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::intersection, n, x, m, y, d, out, m);
}

void IntersectionKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::l1, n, x, m, y, d, out, m);
}

std::string IntersectionKernel::description() const {
    return "intersection";
}

void JensenShannonKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::jensen_shannon, n, x, m, y, d, out, m);
}

std::string JensenShannonKernel::description() const {
    return "js";
}

void HellingerKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::hellinger, n, x, m, y, d, out, m);
}

void HellingerKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    simd::pairwise(PairOp::hellinger_distance, n, x, m, y, d, out, m);
}

std::string HellingerKernel::description() const {
    return "hellinger";
}

} // namespace faiss_ext
