// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/KernelizedLSH.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "core/errors.h"
#include "hashes/angle.h"
#include "hashes/klsh_draws.h"
#include "hashes/klsh_tuning.h"
#include "maps/kernel_pca_steps.h"

namespace faiss_ext {

using std::numbers::pi;

KernelizedLSH::KernelizedLSH() {
    is_trained = false;
    map.owned_by_hash = true;
}

KernelizedLSH::KernelizedLSH(int d, int nbits, const Kernel* kernel)
        : KernelizedLSH() {
    set_dimensions(d, nbits);
    if (kernel) {
        map.kernel = kernel->clone();
    }
    init();
}

void KernelizedLSH::set_dimensions(int d, int nbits) {
    ProjectionHash::set_dimensions(d, nbits);
    map.set_dimensions(d, 0);
}

void KernelizedLSH::fields(FieldVisitor& v) const {
    KernelPCA::Steps::parameters(map, v);
    v.word("draw",
           draw,
           {"clt", "gauss"},
           "how hyperplanes are drawn: clt from landmarks, gauss at random");
    if (draw == Draw::clt || v.wants_all()) {
        v.integer(
                "t",
                t,
                0,
                map.p - 1,
                "landmarks in a clt draw; 0: 30, or p / 2 if that is less");
    }
    KernelPCA::Steps::learned_fields(map, v);
    learned_fields(v, is_trained ? nbits : 0);
    v.learned("mean_value", mean_value);
}

void KernelizedLSH::init() {
    KernelPCA::Steps::set_precomputed_p(map);
    check_fields(*this);
    is_trained = false;
}

void KernelizedLSH::restore() {
    map.is_trained = is_trained;
    KernelPCA::Steps::restore_landmarks(map);
    check_projection(is_trained);
}

void KernelizedLSH::set_landmarks(idx_t n, const float* x) {
    set_landmarks_by([&] { map.set_landmarks(n, x); });
}

void KernelizedLSH::set_landmarks(const SparseVectors& x) {
    set_landmarks_by([&] { map.set_landmarks(x); });
}

template <class F>
void KernelizedLSH::set_landmarks_by(F&& set) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            !is_trained,
            "set_landmarks: the hash is already trained; set the landmarks before training");
    set();
    t = std::min(t, map.p - 1);
}

/// Returns t if it is set; otherwise 30, as in the papers, but at most half of
/// the landmarks.
int KernelizedLSH::num_drawn() const {
    return t > 0 ? t : std::min(30, map.p / 2);
}

void KernelizedLSH::learn(idx_t n, const float* x) {
    learn_from({n, x, d_in});
}

bool KernelizedLSH::learn_sparse(const SparseVectors& x) {
    if (!KernelPCA::Steps::takes_sparse(map, x)) {
        return false;
    }
    learn_from(x);
    return true;
}

void KernelizedLSH::learn_from(const VectorBatch& x) {
    map.verbose = verbose;
    std::vector<float> K = KernelPCA::Steps::learn_landmarks(map, x);
    if (map.auto_rank || map.auto_scale) {
        choose_parameters(*this, x, K.data(), num_drawn());
    }
    KernelPCA::Steps::transform(map.scale, K.size(), K.data());
    const KernelSpectrum s = KernelPCA::Steps::decompose(map, K.data());
    const int kept = map.rank > 0 ? map.rank : s.rank();
    map.eigenvalues.assign(s.values.begin(), s.values.begin() + kept);
    set_weights(*this, make_weights(Draws(*this, num_drawn()), s, kept), s);
    const int p = map.p;
    double sum = 0;
    for (int i = 0; i < p; i++) {
        sum += s.means[i] * p - K[size_t(i) * p + i];
    }
    mean_value = map.center ? sum / (double(p) * (p - 1)) : 0;
    map.is_trained = true;
    if (verbose) {
        printf("KernelizedLSH::train: %d landmarks, rank %d of %d, scale %g, eigenvalues %g to %g\n",
               p,
               kept,
               s.rank(),
               map.scale,
               map.eigenvalues.front(),
               map.eigenvalues.back());
    }
}

int KernelizedLSH::num_features() const {
    return map.p;
}

size_t KernelizedLSH::features_space() const {
    return map.p;
}

const float* KernelizedLSH::features(size_t n, const float* x, float* space)
        const {
    kernel_rows({idx_t(n), x, d_in}, space);
    return space;
}

void KernelizedLSH::kernel_rows(const VectorBatch& x, float* rows) const {
    KernelPCA::Steps::kernel_rows(map, x, rows);
    KernelPCA::Steps::transform(map.scale, x.n * map.p, rows);
}

void KernelizedLSH::map_sparse(const SparseVectors& x, float* margins) const {
    check_projection(true);
    project(x.n, margins, [&](size_t begin, size_t end, float* space) {
        kernel_rows(x.slice(idx_t(begin), idx_t(end)), space);
        return space;
    });
}

void KernelizedLSH::finish(size_t n, float* margins) const {
    ProjectionHash::finish(n, margins);
    // one kernel value that is not finite makes all margins infinite or NaN
    for (size_t i = 0; i < n; i++) {
        KernelPCA::Steps::check_values(map, 1, margins + i * nbits);
    }
}

void KernelizedLSH::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    map.check_vectors(n, x, d, where);
}

double KernelizedLSH::expected_hamming(double kernel_value) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained,
            "expected_hamming: the hash is not trained; call train first");
    FAISS_EXT_THROW_IF_NOT_FMT(
            std::isfinite(kernel_value),
            "the kernel value is %g, expected a finite number",
            kernel_value);
    const double s = map.scale;
    const double k = s > 0 ? std::exp(s * (kernel_value - 1)) : kernel_value;
    const double cosine = (k - mean_value) / (1 - mean_value);
    return nbits * normalized_angle(cosine);
}

double KernelizedLSH::kernel_value(const float* x, const float* y) const {
    if (!map.kernel) {
        return ProjectionHash::kernel_value(x, y);
    }
    check_pair(x, y, "kernel_value");
    return map.normalize ? NormalizedKernel(*map.kernel)(x, y, d_in)
                         : (*map.kernel)(x, y, d_in);
}

double KernelizedLSH::expected_hamming_of_pair(const float* x, const float* y)
        const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            map.normalize || !map.kernel,
            "expected_hamming_of_pair: not available with normalize=0, because kernel values do not determine the angles; use normalize=1");
    return ProjectionHash::expected_hamming_of_pair(x, y);
}

double KernelizedLSH::kernel_estimate(double hamming) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained,
            "kernel_estimate: the hash is not trained; call train first");
    const double cosine = std::cos(pi * normalized_hamming(hamming));
    const double k = mean_value + cosine * (1 - mean_value);
    if (map.scale == 0) {
        return k;
    }
    // kernel values below this, which gives k = -1, cannot occur
    return std::max(-1.0, 1 + std::log(std::max(k, 1e-300)) / map.scale);
}

std::string KernelizedLSH::caution() const {
    return caution_of_learnt;
}

} // namespace faiss_ext
