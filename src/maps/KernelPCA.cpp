// SPDX-License-Identifier: MIT
#include <faiss_ext/maps/KernelPCA.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/projections/DenseProjection.h>

#include "core/cache_sizes.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "maps/kernel_spectrum.h"
#include "simd/elementwise.h"

namespace faiss_ext {

namespace {

constexpr int max_landmarks = 8192;

/// Returns 1 / sqrt(k(x, x)) of each vector, or 0 if this value is too small to
/// have all digits.
std::vector<float> inverse_norms_of(
        const Kernel& kernel,
        size_t n,
        const float* x,
        size_t d) {
    std::vector<float> norms(n);
    kernel.self_values(n, x, d, norms.data());
    for (float& v : norms) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                !(v < -1e-6f),
                "the kernel is not positive semi-definite: k(x, x) of a vector is %g, expected a positive number",
                v);
        v = v >= Kernel::least_self_value && std::isfinite(v) ? 1 / std::sqrt(v)
                                                              : 0;
    }
    return norms;
}

/// Divides a block of kernel values of n vectors and m others by the norms.
void normalize_block(
        const std::vector<float>& x_inverse_norms,
        const std::vector<float>& y_inverse_norms,
        float* block) {
    const size_t m = y_inverse_norms.size();
    for (size_t i = 0; i < x_inverse_norms.size(); i++) {
        simd::multiply(
                m, x_inverse_norms[i], y_inverse_norms.data(), block + i * m);
    }
}

} // namespace

KernelPCA::KernelPCA() {
    is_trained = false;
}

KernelPCA::KernelPCA(int d, int rank, const Kernel* kernel)
        : FeatureMap(d, rank), rank(rank) {
    if (kernel) {
        this->kernel = kernel->clone();
    }
    p = std::max(p, rank);
    init();
}

void KernelPCA::parameters(FieldVisitor& v) const {
    v.part("kernel",
           kernel,
           "any kernel, or rows of its values",
           "precomputed");
    v.assign(p, kernel || d_in <= 0 ? p : d_in);
    const bool is_free = kernel || v.wants_all();
    v.integer(
            "p",
            p,
            is_free ? 2 : p,
            is_free ? max_landmarks : p,
            "landmarks, drawn by train");
    // precomputed values cannot be tried out
    const bool can = owned_by_hash && is_free;
    if ((auto_rank || auto_scale) && !(owned_by_hash && kernel)) {
        throw FieldError(
                auto_rank ? "rank" : "scale",
                "only a hash with a kernel can choose rank=auto and scale=auto");
    }
    v.integer(
            "rank",
            rank,
            owned_by_hash ? 0 : 1,
            p,
            owned_by_hash
                    ? "eigenvectors kept, at most p; 0: all; auto: chosen by train"
                    : "eigenvectors kept, at most p: the output dimension",
            can ? &auto_rank : nullptr);
    v.number(
            "scale",
            scale,
            0,
            1e4,
            "s in exp(s (k - 1)), which replaces k; 0: k itself",
            can ? &auto_scale : nullptr);
    v.flag("nystrom", nystrom, "whether the landmarks' matrix is not centred");
    v.flag("center", center, "whether vectors are centred");
    if (is_free) {
        v.flag("normalize", normalize, "whether k(x, x) is made 1");
    }
    v.number(
            "tolerance",
            tolerance,
            0,
            0.999,
            "smaller eigenvalues are dropped, relative to the largest");
    v.integer("seed", seed, 0, INT64_MAX, "of the landmarks, and of draws");
}

void KernelPCA::learned_fields(FieldVisitor& v) const {
    v.array("landmarks", landmarks);
    v.array("eigenvalues", eigenvalues);
}

void KernelPCA::fields(FieldVisitor& v) const {
    parameters(v);
    learned_fields(v);
    v.learned_part("components", components);
    v.array("offset", offset, is_trained ? rank : 0);
}

void KernelPCA::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0,
            "the input dimension is %d, expected a positive number",
            d_in);
    set_precomputed_p();
    check_fields(*this);
    d_out = rank;
    is_trained = false;
}

void KernelPCA::set_precomputed_p() {
    if (!kernel && d_in > 0) {
        p = d_in;
    }
}

void KernelPCA::restore_landmarks() {
    FAISS_EXT_THROW_IF_NOT_MSG(
            landmarks.size() ==
                            (kernel && (is_trained || !landmarks.empty())
                                     ? size_t(p) * d_in
                                     : 0) &&
                    (kernel || p == d_in) &&
                    (!kernel || !is_trained || kernel->is_trained),
            "the landmarks and the parameters are inconsistent");
    if (kernel) {
        kernel->check_input(
                landmarks.size() / d_in, landmarks.data(), d_in, "landmarks");
    }
    if (is_trained) {
        set_inverse_norms();
    }
}

void KernelPCA::restore() {
    d_out = rank;
    restore_landmarks();
    FAISS_EXT_THROW_IF_NOT_MSG(
            rank > 0 &&
                    (!is_trained ||
                     (components && components->d_in == p &&
                      components->d_out == rank)),
            "the parts of the map are inconsistent");
}

void KernelPCA::transform(double s, size_t n, float* values) {
    if (s > 0) {
        simd::exp_affine(n, float(s), float(-s), values);
    }
}

void KernelPCA::set_inverse_norms() {
    inverse_norms.clear();
    if (kernel && normalize &&
        !dynamic_cast<const ShiftInvariantKernel*>(kernel.get())) {
        inverse_norms = inverse_norms_of(*kernel, p, landmarks.data(), d_in);
    }
}

void KernelPCA::kernel_rows(size_t n, const float* x, float* rows) const {
    if (!kernel) {
        std::copy_n(x, n * p, rows);
        return;
    }
    kernel->block(n, x, p, landmarks.data(), d_in, rows);
    if (!inverse_norms.empty()) {
        normalize_block(
                inverse_norms_of(*kernel, n, x, d_in), inverse_norms, rows);
    }
}

void KernelPCA::kernel_block(
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        float* block) const {
    kernel->block(n, x, m, y, d_in, block);
    if (normalize) {
        normalize_block(
                inverse_norms_of(*kernel, n, x, d_in),
                inverse_norms_of(*kernel, m, y, d_in),
                block);
    }
}

void KernelPCA::check_values(size_t n, const float* values) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            all_finite(n, values),
            "values of the kernel %s are not finite on these vectors",
            kernel ? kernel->description().c_str() : "given");
}

void KernelPCA::set_landmarks(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel,
            "set_landmarks: not supported with precomputed kernel values");
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 2 && n <= max_landmarks,
            "set_landmarks: %" PRId64 " landmarks, expected 2 to %d",
            int64_t(n),
            max_landmarks);
    kernel->check_input(n, x, d_in, "set_landmarks");
    FAISS_EXT_THROW_IF_NOT_MSG(
            !is_trained,
            "set_landmarks: the map is already trained; set the landmarks before training");
    FAISS_EXT_THROW_IF_NOT_FMT(
            rank <= n,
            "set_landmarks: %" PRId64
            " landmarks, expected at least the rank, %d",
            int64_t(n),
            rank);
    landmarks.assign(x, x + n * d_in);
    p = int(n);
}

void KernelPCA::check_precomputed(idx_t n, const float* x) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n == p,
            "train: %" PRId64
            " rows of precomputed values, expected the %d x %d matrix of the landmarks",
            int64_t(n),
            p,
            p);
    for (int i = 0; i < p; i++) {
        for (int j = 0; j < i; j++) {
            const float a = x[size_t(i) * p + j], b = x[size_t(j) * p + i];
            FAISS_EXT_THROW_IF_NOT_FMT(
                    std::abs(a - b) <=
                            1e-4 * (std::abs(a) + std::abs(b)) + 1e-6,
                    "train: the matrix is not symmetric: %g at (%d, %d), %g at (%d, %d)",
                    a,
                    i,
                    j,
                    b,
                    j,
                    i);
        }
    }
}

std::vector<float> KernelPCA::learn_landmarks(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            landmarks.empty() || landmarks.size() == size_t(p) * d_in,
            "train: p is %d, but %zu landmarks are set",
            p,
            landmarks.size() / d_in);
    if (kernel) {
        kernel->verbose = verbose;
        if (!kernel->is_trained) {
            kernel->train(n, x, d_in);
            // once it has a bandwidth it may refuse more
            kernel->check_input(n, x, d_in, "train");
        }
        if (landmarks.empty()) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    n >= p,
                    "train: %" PRId64
                    " training vectors, expected at least p = %d, the number of landmarks",
                    int64_t(n),
                    p);
            landmarks = gather_rows(sample_ids(n, p, seed), x, d_in);
        }
        set_inverse_norms();
    } else {
        check_precomputed(n, x);
    }
    std::vector<float> K(size_t(p) * p);
    parallel_blocks(
            "kernel of the landmarks", p, 16, [&](idx_t begin, idx_t end) {
                const float* from = kernel ? landmarks.data() : x;
                kernel_rows(end - begin, from + begin * d_in, &K[begin * p]);
            });
    return K;
}

KernelSpectrum KernelPCA::decompose(const float* K) const {
    check_values(size_t(p) * p, K);
    KernelSpectrum s = decompose_kernel(p, K, !nystrom, tolerance, verbose);
    FAISS_EXT_THROW_IF_NOT_FMT(
            rank <= s.rank(),
            "train: rank is %d, but the kernel matrix of the %d landmarks has rank %d (eigenvalues above %g of the largest); take a smaller rank, or more landmarks",
            rank,
            p,
            s.rank(),
            tolerance);
    return s;
}

void KernelPCA::learn(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            !owned_by_hash,
            "train: this map is part of a hash; train the hash instead");
    FAISS_EXT_THROW_IF_NOT_FMT(
            rank == d_out,
            "train: rank is %d, but the map was made for %d dimensions",
            rank,
            d_out);
    std::vector<float> K = learn_landmarks(n, x);
    transform(scale, K.size(), K.data());
    const KernelSpectrum s = decompose(K.data());
    eigenvalues.assign(s.values.begin(), s.values.begin() + rank);
    DenseProjection rows(p, rank);
    offset.clear();
    std::vector<float> row(p);
    for (int i = 0; i < rank; i++) {
        double c = 0;
        for (int j = 0; j < p; j++) {
            const double v = s.vectors(i, j) / std::sqrt(s.values[i]);
            row[j] = float(v);
            c += v * s.means[j];
        }
        rows.set_row(i, row.data());
        offset.push_back(center ? float(c) : 0);
    }
    components = std::move(rows);
    if (verbose) {
        printf("KernelPCA: %d landmarks, rank %d of %d, eigenvalues %g to %g\n",
               p,
               rank,
               s.rank(),
               eigenvalues.front(),
               eigenvalues.back());
    }
}

idx_t KernelPCA::rows_per_block(idx_t n) const {
    return rows_to_multiply(n, p, cache::half_l2);
}

void KernelPCA::map(size_t n, const float* x, float* xt) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            components && components->d_in == p && components->d_out == d_out,
            "the map cannot be applied: it is not trained, or part of a hash");
    const Scratch rows(n * p);
    kernel_rows(n, x, rows.get());
    transform(scale, n * p, rows.get());
    components->apply(n, rows.get(), xt);
    for (size_t i = 0; i < n; i++) {
        for (int j = 0; j < rank; j++) {
            xt[i * rank + j] -= offset[j];
        }
    }
    check_values(n * rank, xt);
}

void KernelPCA::check_input(idx_t n, const float* x, const char* where) const {
    if (kernel) {
        kernel->check_input(n, x, d_in, where);
    } else {
        check_finite(n, x, d_in, where);
    }
}

} // namespace faiss_ext
