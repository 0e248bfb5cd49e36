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
#include "maps/kernel_pca_steps.h"
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
/// NormalizedKernel takes any k(x, x) > 0 and therefore needs double; here
/// inverse norms are at most 1e18, so floats are enough.
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

void KernelPCA::Steps::parameters(const KernelPCA& map, FieldVisitor& v) {
    v.part("kernel",
           map.kernel,
           "any kernel, or rows of its values",
           "precomputed");
    v.assign(map.p, map.kernel || map.d_in <= 0 ? map.p : map.d_in);
    const bool is_free = map.kernel || v.wants_all();
    v.integer(
            "p",
            map.p,
            is_free ? 2 : map.p,
            is_free ? max_landmarks : map.p,
            "landmarks, drawn by train");
    // precomputed values cannot be tried out
    const bool can = map.owned_by_hash && is_free;
    if ((map.auto_rank || map.auto_scale) &&
        !(map.owned_by_hash && map.kernel)) {
        throw FieldError(
                map.auto_rank ? "rank" : "scale",
                "only a hash with a kernel can choose rank=auto and scale=auto");
    }
    v.integer(
            "rank",
            map.rank,
            map.owned_by_hash ? 0 : 1,
            map.p,
            map.owned_by_hash
                    ? "eigenvectors kept, at most p; 0: all; auto: chosen by train"
                    : "eigenvectors kept, at most p: the output dimension",
            can ? &map.auto_rank : nullptr);
    v.number(
            "scale",
            map.scale,
            0,
            1e4,
            "s in exp(s (k - 1)), which replaces k; 0: k itself",
            can ? &map.auto_scale : nullptr);
    v.flag("nystrom", map.nystrom, "do not centre the landmarks' matrix");
    v.flag("center", map.center, "centre the vectors");
    if (is_free) {
        v.flag("normalize", map.normalize, "scale k so that k(x, x) is 1");
    }
    v.number(
            "tolerance",
            map.tolerance,
            0,
            0.999,
            "smaller eigenvalues are dropped, relative to the largest");
    v.integer(
            "seed",
            map.seed,
            0,
            INT64_MAX,
            "seed of the landmarks and the draws");
}

void KernelPCA::Steps::learned_fields(const KernelPCA& map, FieldVisitor& v) {
    v.array("landmarks", map.landmarks);
    v.array("eigenvalues", map.eigenvalues);
}

void KernelPCA::fields(FieldVisitor& v) const {
    Steps::parameters(*this, v);
    Steps::learned_fields(*this, v);
    v.learned_part("components", components);
    v.array("offset", offset, is_trained ? rank : 0);
}

void KernelPCA::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0,
            "the input dimension is %d, expected a positive number",
            d_in);
    Steps::set_precomputed_p(*this);
    check_fields(*this);
    d_out = rank;
    is_trained = false;
}

void KernelPCA::Steps::set_precomputed_p(KernelPCA& map) {
    if (!map.kernel && map.d_in > 0) {
        map.p = map.d_in;
    }
}

void KernelPCA::Steps::restore_landmarks(KernelPCA& map) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            map.landmarks.size() ==
                            (map.kernel &&
                                             (map.is_trained ||
                                              !map.landmarks.empty())
                                     ? size_t(map.p) * map.d_in
                                     : 0) &&
                    (map.kernel || map.p == map.d_in) &&
                    (!map.kernel || !map.is_trained || map.kernel->is_trained),
            "the landmarks and the parameters are inconsistent");
    if (map.kernel) {
        map.kernel->check_input(
                map.landmarks.size() / map.d_in,
                map.landmarks.data(),
                map.d_in,
                "landmarks");
    }
    if (map.is_trained) {
        set_inverse_norms(map);
    }
}

void KernelPCA::restore() {
    d_out = rank;
    Steps::restore_landmarks(*this);
    FAISS_EXT_THROW_IF_NOT_MSG(
            rank > 0 &&
                    (!is_trained ||
                     (components && components->d_in == p &&
                      components->d_out == rank)),
            "the parts of the map are inconsistent");
}

void KernelPCA::Steps::transform(double s, size_t n, float* values) {
    if (s > 0) {
        simd::exp_affine(n, float(s), float(-s), values);
    }
}

void KernelPCA::Steps::set_inverse_norms(KernelPCA& map) {
    map.inverse_norms.clear();
    if (map.kernel && map.normalize &&
        !dynamic_cast<const ShiftInvariantKernel*>(map.kernel.get())) {
        map.inverse_norms = inverse_norms_of(
                *map.kernel, map.p, map.landmarks.data(), map.d_in);
    }
}

void KernelPCA::Steps::kernel_rows(
        const KernelPCA& map,
        size_t n,
        const float* x,
        float* rows) {
    if (!map.kernel) {
        std::copy_n(x, n * map.p, rows);
        return;
    }
    map.kernel->block(n, x, map.p, map.landmarks.data(), map.d_in, rows);
    if (!map.inverse_norms.empty()) {
        normalize_block(
                inverse_norms_of(*map.kernel, n, x, map.d_in),
                map.inverse_norms,
                rows);
    }
}

void KernelPCA::Steps::kernel_block(
        const KernelPCA& map,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        float* block) {
    map.kernel->block(n, x, m, y, map.d_in, block);
    if (map.normalize) {
        normalize_block(
                inverse_norms_of(*map.kernel, n, x, map.d_in),
                inverse_norms_of(*map.kernel, m, y, map.d_in),
                block);
    }
}

void KernelPCA::Steps::check_values(
        const KernelPCA& map,
        size_t n,
        const float* values) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            all_finite(n, values),
            "values of the kernel %s are not finite on these vectors",
            map.kernel ? map.kernel->description().c_str() : "given");
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

void KernelPCA::Steps::check_precomputed(
        const KernelPCA& map,
        idx_t n,
        const float* x) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n == map.p,
            "train: %" PRId64
            " rows of precomputed values, expected the %d x %d matrix of the landmarks",
            int64_t(n),
            map.p,
            map.p);
    for (int i = 0; i < map.p; i++) {
        for (int j = 0; j < i; j++) {
            const float a = x[size_t(i) * map.p + j],
                        b = x[size_t(j) * map.p + i];
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

std::vector<float> KernelPCA::Steps::learn_landmarks(
        KernelPCA& map,
        idx_t n,
        const float* x) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            map.landmarks.empty() ||
                    map.landmarks.size() == size_t(map.p) * map.d_in,
            "train: p is %d, but %zu landmarks are set",
            map.p,
            map.landmarks.size() / map.d_in);
    if (map.kernel) {
        map.kernel->verbose = map.verbose;
        if (!map.kernel->is_trained) {
            map.kernel->train(n, x, map.d_in);
            // once it has a bandwidth it may refuse more
            map.kernel->check_input(n, x, map.d_in, "train");
        }
        if (map.landmarks.empty()) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    n >= map.p,
                    "train: %" PRId64
                    " training vectors, expected at least p = %d, the number of landmarks",
                    int64_t(n),
                    map.p);
            map.landmarks =
                    gather_rows(sample_ids(n, map.p, map.seed), x, map.d_in);
        }
        set_inverse_norms(map);
    } else {
        check_precomputed(map, n, x);
    }
    std::vector<float> K(size_t(map.p) * map.p);
    parallel_blocks(
            "kernel of the landmarks", map.p, 16, [&](idx_t begin, idx_t end) {
                const float* from = map.kernel ? map.landmarks.data() : x;
                kernel_rows(
                        map,
                        end - begin,
                        from + begin * map.d_in,
                        &K[begin * map.p]);
            });
    return K;
}

KernelSpectrum KernelPCA::Steps::decompose(
        const KernelPCA& map,
        const float* K) {
    check_values(map, size_t(map.p) * map.p, K);
    KernelSpectrum s = decompose_kernel(
            map.p, K, !map.nystrom, map.tolerance, map.verbose);
    FAISS_EXT_THROW_IF_NOT_FMT(
            map.rank <= s.rank(),
            "train: rank is %d, but the kernel matrix of the %d landmarks has rank %d (eigenvalues above %g of the largest); take a smaller rank, or more landmarks",
            map.rank,
            map.p,
            s.rank(),
            map.tolerance);
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
    std::vector<float> K = Steps::learn_landmarks(*this, n, x);
    Steps::transform(scale, K.size(), K.data());
    const KernelSpectrum s = Steps::decompose(*this, K.data());
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
    Steps::kernel_rows(*this, n, x, rows.get());
    Steps::transform(scale, n * p, rows.get());
    components->apply(n, rows.get(), xt);
    for (size_t i = 0; i < n; i++) {
        for (int j = 0; j < rank; j++) {
            xt[i * rank + j] -= offset[j];
        }
    }
    Steps::check_values(*this, n * rank, xt);
}

void KernelPCA::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    if (kernel) {
        kernel->check_input(n, x, d, where);
    } else {
        check_finite(n, x, d, where);
    }
}

} // namespace faiss_ext
