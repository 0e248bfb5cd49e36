// SPDX-License-Identifier: MIT
#include <faiss_ext/kernels/BandwidthKernel.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "core/SparseRow.h"
#include "core/errors.h"
#include "core/sample.h"
#include "core/sparse_input.h"

namespace faiss_ext {

namespace {

bool are_equal(const VectorBatch& x, idx_t i, idx_t j) {
    if (!x.is_sparse) {
        const float* row = x.dense + i * x.d;
        return std::equal(row, row + x.d, x.dense + j * x.d);
    }
    const auto a = SparseRow::of(x.sparse, i), b = SparseRow::of(x.sparse, j);
    return std::ranges::equal(a.columns, b.columns) &&
            std::ranges::equal(a.values, b.values);
}

bool are_all_the_same(const VectorBatch& x) {
    for (idx_t i = 1; i < x.n; i++) {
        if (!are_equal(x, 0, i)) {
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

void BandwidthKernel::train(idx_t n, const float* x, size_t d) {
    if (is_trained) {
        return;
    }
    check_input(n, x, d, "train");
    learn_gamma(VectorBatch(n, x, idx_t(d)));
}

void BandwidthKernel::train_sparse(const SparseVectors& x) {
    if (is_trained) {
        return;
    }
    const CanonicalVectors canonical(x, "train");
    check_sparse_input(canonical, "train");
    if (x.n <= most_sampled) {
        learn_gamma(canonical.get());
    } else {
        const auto ids = training_ids(x.n, most_sampled);
        learn_gamma(gather_rows(ids, canonical.get()).get());
    }
}

void BandwidthKernel::learn_gamma(const VectorBatch& x) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.n >= 2,
            "train: %" PRId64
            " vectors given, expected at least 2 to choose a bandwidth from",
            int64_t(x.n));
    const double chosen = choose_gamma(x);
    FAISS_EXT_THROW_IF_NOT_FMT(
            chosen >= min_gamma && chosen <= max_gamma,
            "cannot choose the bandwidth gamma: %s; give gamma in the string",
            are_all_the_same(x) ? "the training vectors are all the same"
                    : nearest_are_equal(chosen)
                    ? "the training vectors are nearly equal to their neighbours (a higher rank may help, such as neighbor=1000)"
                    : "the distances of the training vectors are too small or too large for float");
    gamma = chosen;
    is_trained = true;
    if (verbose) {
        printf("%s: chosen by train\n", description().c_str());
    }
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
