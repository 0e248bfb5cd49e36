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
#include "core/field_strings.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "core/sparse_input.h"
#include "kernels/sparse_blocks.h"
#include "maps/kernel_pca_steps.h"
#include "simd/elementwise.h"

namespace faiss_ext {

namespace {

constexpr int max_landmarks = 8192;

/// Returns 1 / sqrt(k(x, x)) of each vector, or 0 if this value is too small to
/// have all digits.
std::vector<float> inverse_norms_of(
        const Kernel& kernel,
        const VectorBatch& x) {
    std::vector<float> norms(x.n);
    self_values_of(kernel, x, norms.data());
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
    // strings of a trained hash have the chosen values
    const bool shows_auto =
            can && (!map.is_trained || v.wants_all() || shows_choices(v));
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
            shows_auto ? &map.auto_rank : nullptr);
    v.number(
            "scale",
            map.scale,
            0,
            1e4,
            "s in exp(s (k - 1)), which replaces k; 0: k itself",
            shows_auto ? &map.auto_scale : nullptr);
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
    if (map.landmarks.empty()) {
        const SparseRows& rows = map.sparse_landmarks;
        v.array("landmark rows", rows.indptr);
        v.array("landmark columns",
                rows.indices,
                rows.n() == 0 ? 0 : size_t(rows.indptr.back()));
        v.array("landmark values", rows.values, rows.indices.size());
    }
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

VectorBatch KernelPCA::Steps::landmarks(const KernelPCA& map) {
    return map.sparse_landmarks.n() > 0
            ? VectorBatch(map.sparse_landmarks.get())
            : VectorBatch(
                      idx_t(map.landmarks.size()) / map.d_in,
                      map.landmarks.data(),
                      map.d_in);
}

void KernelPCA::Steps::check_landmarks(const KernelPCA& map) {
    const VectorBatch set = landmarks(map);
    const bool are_needed = map.kernel && (map.is_trained || set.n > 0);
    FAISS_EXT_THROW_IF_NOT_MSG(
            set.n == (are_needed ? map.p : 0) &&
                    map.landmarks.size() ==
                            (set.is_sparse ? 0 : size_t(set.n) * map.d_in) &&
                    (map.kernel || map.p == map.d_in) &&
                    (!map.kernel || !map.is_trained || map.kernel->is_trained),
            "the landmarks and the parameters are inconsistent");
    if (!map.kernel) {
        return;
    }
    if (!set.is_sparse) {
        map.kernel->check_input(set.n, set.dense, set.d, "landmarks");
        return;
    }
    check_ignores_zeros(*map.kernel, "landmarks");
    const SparseRows& rows = map.sparse_landmarks;
    FAISS_EXT_THROW_IF_NOT_MSG(
            rows.indptr.front() == 0 &&
                    rows.indptr.back() == int64_t(rows.indices.size()) &&
                    rows.indices.size() == rows.values.size(),
            "the arrays of the sparse landmarks do not match");
    const CanonicalVectors canonical(set.sparse, "landmarks");
    FAISS_EXT_THROW_IF_NOT_MSG(
            canonical->indices == set.sparse.indices,
            "the columns of a sparse landmark do not ascend, or a component is 0");
    map.check_components(set.sparse, "landmarks");
}

void KernelPCA::Steps::restore_landmarks(KernelPCA& map) {
    map.sparse_landmarks.d = map.d_in;
    check_landmarks(map);
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
        map.inverse_norms = inverse_norms_of(*map.kernel, landmarks(map));
    }
}

void KernelPCA::Steps::kernel_rows(
        const KernelPCA& map,
        const VectorBatch& x,
        float* rows) {
    const VectorBatch y = landmarks(map);
    if (x.is_sparse && !y.is_sparse) {
        const Scratch row(x.d);
        for (idx_t i = 0; i < x.n; i++) {
            x.sparse.copy_dense(i, row.get());
            kernel_rows(map, {1, row.get(), x.d}, rows + i * map.p);
        }
        return;
    }
    if (!x.is_sparse && y.is_sparse) {
        const SparseRows copy = sparse_copy(x.n, x.dense, x.d);
        kernel_rows(map, copy.get(), rows);
        return;
    }
    if (!map.kernel) {
        std::copy_n(x.dense, x.n * map.p, rows);
        return;
    }
    block_of(*map.kernel, x, y, rows);
    if (!map.inverse_norms.empty()) {
        normalize_block(
                inverse_norms_of(*map.kernel, x), map.inverse_norms, rows);
    }
}

void KernelPCA::Steps::kernel_block(
        const KernelPCA& map,
        const VectorBatch& x,
        const VectorBatch& y,
        float* block) {
    block_of(*map.kernel, x, y, block);
    if (map.normalize) {
        normalize_block(
                inverse_norms_of(*map.kernel, x),
                inverse_norms_of(*map.kernel, y),
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

void KernelPCA::check_new_landmarks(idx_t n) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel,
            "set_landmarks: not supported with precomputed kernel values");
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= 2 && n <= max_landmarks,
            "set_landmarks: %" PRId64 " landmarks, expected 2 to %d",
            int64_t(n),
            max_landmarks);
    FAISS_EXT_THROW_IF_NOT_MSG(
            !is_trained,
            "set_landmarks: the map is already trained; set the landmarks before training");
    FAISS_EXT_THROW_IF_NOT_FMT(
            rank <= n,
            "set_landmarks: %" PRId64
            " landmarks, expected at least the rank, %d",
            int64_t(n),
            rank);
}

void KernelPCA::set_landmarks(idx_t n, const float* x) {
    check_new_landmarks(n);
    kernel->check_input(n, x, d_in, "set_landmarks");
    landmarks.assign(x, x + n * d_in);
    sparse_landmarks = {};
    p = int(n);
}

void KernelPCA::set_landmarks(const SparseVectors& x) {
    check_new_landmarks(x.n);
    check_ignores_zeros(*kernel, "set_landmarks");
    const CanonicalVectors canonical(x, "set_landmarks");
    check_sparse_input(canonical, "set_landmarks");
    sparse_landmarks = gather_rows(all_ids(x.n), canonical.get());
    landmarks.clear();
    p = int(x.n);
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

bool KernelPCA::Steps::takes_sparse(
        const KernelPCA& map,
        const SparseVectors& x) {
    if (!map.kernel || map.kernel->ignores_zeros()) {
        return bool(map.kernel);
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            landmarks(map).n > 0 || map.p <= most_dense(x.d),
            "train: the kernel %s may depend on components that are 0 in both vectors, so landmarks are dense; %d landmarks of dimension %d take %.3g GB, expected at most 1 GB",
            map.kernel->description().c_str(),
            map.p,
            map.d_in,
            4e-9 * map.p * map.d_in);
    return false;
}

void KernelPCA::Steps::train_kernel(KernelPCA& map, const VectorBatch& x) {
    map.kernel->verbose = map.verbose;
    if (map.kernel->is_trained) {
        return;
    }
    // once it has a bandwidth it may refuse more
    if (x.is_sparse) {
        map.kernel->train_sparse(x.sparse);
        map.check_components(x.sparse, "train");
    } else {
        map.kernel->train(x.n, x.dense, x.d);
        map.kernel->check_input(x.n, x.dense, x.d, "train");
    }
}

void KernelPCA::Steps::draw_landmarks(KernelPCA& map, const VectorBatch& x) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            x.n >= map.p,
            "train: %" PRId64
            " training vectors, expected at least p = %d, the number of landmarks",
            int64_t(x.n),
            map.p);
    VectorSample drawn = gather_rows(sample_ids(x.n, map.p, map.seed), x);
    map.landmarks = std::move(drawn.dense);
    map.sparse_landmarks = std::move(drawn.sparse);
}

std::vector<float> KernelPCA::Steps::learn_landmarks(
        KernelPCA& map,
        const VectorBatch& x) {
    const idx_t num_set = landmarks(map).n;
    FAISS_EXT_THROW_IF_NOT_FMT(
            num_set == 0 || num_set == map.p,
            "train: p is %d, but %" PRId64 " landmarks are set",
            map.p,
            int64_t(num_set));
    if (map.kernel) {
        train_kernel(map, x);
        if (num_set == 0) {
            draw_landmarks(map, x);
        }
        set_inverse_norms(map);
    } else {
        check_precomputed(map, x.n, x.dense);
    }
    const VectorBatch rows = map.kernel ? landmarks(map) : x;
    std::vector<float> K(size_t(map.p) * map.p);
    parallel_blocks(
            "kernel of the landmarks", map.p, 16, [&](idx_t begin, idx_t end) {
                kernel_rows(map, rows.slice(begin, end), &K[begin * map.p]);
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
    learn_from({n, x, d_in});
}

bool KernelPCA::learn_sparse(const SparseVectors& x) {
    if (!Steps::takes_sparse(*this, x)) {
        return false;
    }
    learn_from(x);
    return true;
}

void KernelPCA::learn_from(const VectorBatch& x) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            !owned_by_hash,
            "train: this map is part of a hash; train the hash instead");
    FAISS_EXT_THROW_IF_NOT_FMT(
            rank == d_out,
            "train: rank is %d, but the map was made for %d dimensions",
            rank,
            d_out);
    std::vector<float> K = Steps::learn_landmarks(*this, x);
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
    map_batch({idx_t(n), x, d_in}, xt);
}

void KernelPCA::map_sparse(const SparseVectors& x, float* xt) const {
    map_batch(x, xt);
}

void KernelPCA::map_batch(const VectorBatch& x, float* xt) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            components && components->d_in == p && components->d_out == d_out,
            "the map cannot be applied: it is not trained, or part of a hash");
    const size_t n = x.n;
    const Scratch rows(n * p);
    Steps::kernel_rows(*this, x, rows.get());
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
