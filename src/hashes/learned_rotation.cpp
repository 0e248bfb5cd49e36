// SPDX-License-Identifier: MIT
#include "hashes/learned_rotation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "core/errors.h"
#include "core/nearest_orthogonal.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/random_streams.h"
#include "projections/principal_components.h"

namespace faiss_ext {

namespace {

using Floats = std::vector<float>;

constexpr int most_components = 8192;
constexpr int num_rounds = 50; // as in the paper

/// Returns how many vectors iterative quantisation uses for r bits.
idx_t most_quantised(size_t r) {
    return std::max<idx_t>(4096, 10 * r);
}

/// Transposes a matrix of n rows.
Floats transposed(size_t n, size_t d, const Floats& x) {
    Floats t(n * d);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < d; j++) {
            t[j * n + i] = x[i * d + j];
        }
    }
    return t;
}

/// Multiplies n vectors by the rows of a matrix, on all threads.
Floats products(const DenseProjection& matrix, size_t n, const Floats& x) {
    Floats y(n * matrix.d_out);
    parallel_blocks(n, 24, [&](idx_t begin, idx_t end) {
        matrix.apply(
                end - begin, &x[begin * matrix.d_in], &y[begin * matrix.d_out]);
    });
    return y;
}

/// Calls fn(m, features) for consecutive parts of the sample. The mean has been
/// subtracted, and features are scaled by a power of two so that squares
/// neither overflow nor vanish.
template <class F>
void for_parts(const FeatureSample& sample, F&& fn) {
    constexpr idx_t part = 1024;
    const size_t d = sample.size;
    const float factor = sample.length > 0
            ? float(std::ldexp(
                      1.0, std::clamp(-std::ilogb(sample.length), -126, 126)))
            : 1.0f;
    Floats phi;
    for (idx_t i0 = 0; i0 < sample.n; i0 += part) {
        const idx_t m = std::min(part, sample.n - i0);
        phi.resize(m * d);
        parallel_blocks(m, 64, [&](idx_t begin, idx_t end) {
            float* rows = &phi[begin * d];
            sample.compute(i0 + begin, end - begin, rows);
            for (size_t k = 0; k < (end - begin) * d; k++) {
                rows[k] = factor * rows[k] - factor * sample.mean[k % d];
            }
        });
        fn(m, phi);
    }
}

/// Returns the r principal directions of largest variance, size r * d, the
/// largest first.
Floats principal_directions(
        const FeatureSample& sample,
        size_t r,
        bool verbose) {
    ScatterMatrix scatter(sample.size);
    for_parts(sample, [&](idx_t m, const Floats& phi) {
        scatter.add(m, phi.data());
    });
    return scatter.leading(r, verbose).vectors;
}

Floats project_sample(
        const FeatureSample& sample,
        size_t r,
        const Floats& rows) {
    const DenseProjection matrix(sample.size, int(r), rows.data());
    Floats projected;
    for_parts(sample, [&](idx_t m, const Floats& phi) {
        const Floats part = products(matrix, m, phi);
        projected.insert(projected.end(), part.begin(), part.end());
    });
    return projected;
}

Floats random_rotation(size_t r, int64_t seed, int64_t number) {
    std::mt19937_64 rng = row_rng(seed, number, stream_rotations);
    std::normal_distribution<double> normal;
    std::vector<double> a(r * r);
    std::generate(a.begin(), a.end(), [&] { return normal(rng); });
    nearest_orthogonal(r, a);
    return {a.begin(), a.end()};
}

/// Iterative quantisation of vectors with r components.
struct Quantisation {
    size_t n, r;
    DenseProjection by_vector;    ///< rows are the vectors
    DenseProjection by_component; ///< rows are their components

    Quantisation(size_t r, const Floats& v)
            : n(v.size() / r),
              r(r),
              by_vector(int(r), int(n), v.data()),
              by_component(int(n), int(r), transposed(n, r, v).data()) {}

    /// Improves a rotation: computes the signs of all vectors, then the best R
    /// for these signs.
    void improve(Floats& rotation) const {
        Floats signs = products(by_vector, r, rotation);
        for (float& s : signs) {
            s = s >= 0 ? 1.0f : -1.0f;
        }
        const Floats correlation = products(by_component, r, signs);
        std::vector<double> best(correlation.begin(), correlation.end());
        nearest_orthogonal(r, best);
        rotation.assign(best.begin(), best.end());
    }
};

} // namespace

void check_rotated_features(int num_features) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            num_features <= most_components,
            "train: rot=pca and rot=itq support at most %d dimensions of features, but there are %d; use rot=random",
            most_components,
            num_features);
}

std::unique_ptr<DenseProjection> learn_rotation(
        CenteredHash::Rotation rot,
        const FeatureSample& sample,
        int nbits,
        int64_t seed,
        bool verbose) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            sample.n >= 2,
            "train: 1 vector, expected at least 2 to find principal directions");
    const size_t d = sample.size, r = std::min<size_t>(nbits, d);
    check_rotated_features(sample.size);
    const Floats directions = principal_directions(sample, r, verbose);
    const Floats columns = transposed(r, d, directions);
    const DenseProjection onto_columns(int(r), int(d), columns.data());
    std::unique_ptr<Quantisation> quantisation;
    if (rot == CenteredHash::Rotation::itq) {
        FeatureSample part = sample;
        part.n = std::min(sample.n, most_quantised(r));
        quantisation = std::make_unique<Quantisation>(
                r, project_sample(part, r, directions));
    }
    auto projection = std::make_unique<DenseProjection>(int(d), nbits);
    Progress progress("rotation", nbits);
    for (size_t first = 0; first < size_t(nbits); first += r) {
        Floats rotation = random_rotation(r, seed, first);
        for (int i = 0; quantisation && i < num_rounds; i++) {
            quantisation->improve(rotation);
            check_interrupt();
            progress.at(std::min<size_t>(nbits, first + r * i / num_rounds));
        }
        const size_t rows = std::min(r, nbits - first);
        const Floats turned = products(onto_columns, rows, rotation);
        for (size_t j = 0; j < rows; j++) {
            projection->set_row(int(first + j), &turned[j * d]);
        }
        if (verbose) {
            printf("rotation of %zu principal directions: %zu of %d bits\n",
                   r,
                   first + rows,
                   nbits);
        }
    }
    progress.at(nbits);
    return projection;
}

} // namespace faiss_ext
