// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/BandwidthKernel.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "core/errors.h"
#include "core/sparse_input.h"

namespace faiss_ext {

namespace {

bool are_all_the_same(idx_t n, const float* x, size_t d) {
    for (idx_t i = 1; i < n; i++) {
        if (!std::equal(x, x + d, x + i * d)) {
            return false;
        }
    }
    return true;
}

/// The same for vectors in canonical form.
bool are_all_the_same(const SparseVectors& x) {
    const auto equal = [&](const auto* array, idx_t i) {
        return std::equal(
                array + x.indptr[0],
                array + x.indptr[1],
                array + x.indptr[i],
                array + x.indptr[i + 1]);
    };
    for (idx_t i = 1; i < x.n; i++) {
        if (!equal(x.indices, i) || !equal(x.values, i)) {
            return false;
        }
    }
    return true;
}

} // namespace

BandwidthKernel::BandwidthKernel() : BandwidthKernel(0) {}

BandwidthKernel::BandwidthKernel(double gamma)
        : gamma(gamma), auto_gamma(gamma == 0) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            gamma == 0 || (gamma >= min_gamma && gamma <= max_gamma),
            "gamma is %g, expected a number from %g to %g, or 0 to let train choose it",
            gamma,
            min_gamma,
            max_gamma);
    is_trained = !auto_gamma;
}

void BandwidthKernel::fields(FieldVisitor& v) const {
    v.number(
            "gamma",
            gamma,
            min_gamma,
            max_gamma,
            "bandwidth; auto: chosen by train",
            &auto_gamma);
}

void BandwidthKernel::init() {
    check_fields(*this);
    is_trained = gamma > 0;
}

template <class Choose, class AreEqual>
void BandwidthKernel::train_by(idx_t n, Choose&& choose, AreEqual&& are_equal) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 2,
            "train: %" PRId64
            " vectors given, expected at least 2 to choose a bandwidth from",
            int64_t(n));
    const double chosen = choose();
    FAISS_EXT_THROW_IF_NOT_FMT(
            chosen >= min_gamma && chosen <= max_gamma,
            "cannot choose the bandwidth gamma: %s; give gamma in the string",
            are_equal() ? "the training vectors are all the same"
                    : nearest_are_equal(chosen)
                    ? "the training vectors are nearly equal to their neighbours (a higher rank may help, such as neighbor=1000)"
                    : "the distances of the training vectors are too small or too large for float");
    gamma = chosen;
    is_trained = true;
    if (verbose) {
        printf("%s: chosen by train\n", description().c_str());
    }
}

void BandwidthKernel::train(idx_t n, const float* x, size_t d) {
    if (!is_trained) {
        check_input(n, x, d, "train");
        train_by(
                n,
                [&] { return choose_gamma(n, x, d); },
                [&] { return are_all_the_same(n, x, d); });
    }
}

void BandwidthKernel::train_sparse(const SparseVectors& x) {
    const CanonicalVectors canonical(x, "train");
    if (!is_trained) {
        check_sparse_input(canonical, "train");
        train_by(
                x.n,
                [&] { return choose_gamma_sparse(canonical.get()); },
                [&] { return are_all_the_same(canonical.get()); });
    }
}

double BandwidthKernel::choose_gamma_sparse(const SparseVectors& x) const {
    const std::vector<float> sample = dense_sample(x);
    return choose_gamma(idx_t(sample.size()) / x.d, sample.data(), x.d);
}

void BandwidthKernel::block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    score_block(faiss::METRIC_INNER_PRODUCT, n, x, m, y, d, out);
    values_of_scores(faiss::METRIC_INNER_PRODUCT, n * m, out);
}

void BandwidthKernel::distance_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) const {
    score_block(faiss::METRIC_L2, n, x, m, y, d, out);
    values_of_scores(faiss::METRIC_L2, n * m, out);
}

void BandwidthKernel::self_values(size_t n, const float*, size_t, float* out)
        const {
    std::fill_n(out, n, 1.0f);
}

} // namespace faiss_ext
