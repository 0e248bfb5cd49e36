// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/ProjectionHash.h>

#include <algorithm>
#include <cmath>

#include "core/cache_sizes.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "hashes/angle.h"
#include "hashes/learned_rotation.h"
#include "projections/draw.h"

namespace faiss_ext {

int ProjectionHash::num_features() const {
    return d_in;
}

const float* ProjectionHash::features(size_t, const float* x, float*) const {
    return x;
}

size_t ProjectionHash::features_space() const {
    return 0;
}

void ProjectionHash::finish(size_t n, float* margins) const {
    const size_t size = threshold.size();
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < size; j++) {
            margins[i * size + j] -= threshold[j];
        }
    }
}

void ProjectionHash::margins(size_t n, const float* x, float* margins) const {
    check_projection(true);
    const size_t size = features_space();
    if (size == 0) {
        projection->apply(n, features(n, x, nullptr), margins);
        finish(n, margins);
        return;
    }
    project(n, margins, [&](size_t begin, size_t end, float* space) {
        return features(end - begin, x + begin * d_in, space);
    });
}

void ProjectionHash::project(
        size_t n,
        float* margins,
        const std::function<const float*(size_t, size_t, float*)>& compute)
        const {
    const size_t size = features_space();
    const size_t rows =
            std::min(n, std::clamp<size_t>(cache::half_l2 / size, 1, 192));
    const Scratch space(rows * size);
    for (size_t i = 0; i < n; i += rows) {
        const size_t m = std::min(rows, n - i);
        const float* phi = compute(i, i + m, space.get());
        projection->apply(m, phi, margins + i * nbits);
    }
    finish(n, margins);
}

std::optional<SparseVectors> ProjectionHash::sparse_features(
        const SparseVectors&,
        SparseRows&) const {
    return std::nullopt;
}

void ProjectionHash::map_sparse(const SparseVectors& x, float* margins) const {
    check_projection(true);
    SparseRows space;
    if (const auto phi = sparse_features(x, space)) {
        projection->apply_sparse(*phi, margins);
        finish(x.n, margins);
    } else {
        KernelHash::map_sparse(x, margins);
    }
}

void ProjectionHash::learned_fields(FieldVisitor& v, size_t num_thresholds)
        const {
    v.learned_part("projection", projection);
    v.array("threshold", threshold, num_thresholds);
}

void ProjectionHash::check_projection(bool is_drawn) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_drawn ? projection && projection->d_in == num_features() &&
                            projection->d_out == nbits
                     : !projection,
            "the projection and the training of the hash are inconsistent: expected a projection from %d dimensions to %d bits if it is trained, otherwise none",
            num_features(),
            nbits);
}

std::vector<ProjectionChoice::Kind> CenteredHash::projection_kinds() const {
    using Kind = ProjectionChoice::Kind;
    return {Kind::structured, Kind::dense, Kind::generated};
}

void CenteredHash::centered_fields(FieldVisitor& v) const {
    v.word("rot",
           rot,
           {"random", "pca", "itq"},
           "hyperplanes: random, or rotated principal directions, the rotation random or learnt");
    const bool is_random = rot == Rotation::random || v.wants_all();
    if (is_random) {
        v.flag("center", center, "measure angles from the learned mean");
    }
    v.integer("seed", seed, 0, INT64_MAX, "seed of the projection");
    if (is_random) {
        proj.fields(v, d_in, num_features(), projection_kinds());
    }
    learned_fields(v, is_centered() && is_trained ? nbits : 0);
    v.learned("mean_value", mean_value);
}

void CenteredHash::init() {
    check_fields(*this);
    proj.set_kind(num_features(), projection_kinds());
    proj.set_shape(d_in);
    projection = nullptr;
    if (rot == Rotation::random) {
        projection = draw_gaussian(proj, num_features(), nbits, seed);
    }
    threshold.clear();
    is_trained = !is_centered();
}

void CenteredHash::restore() {
    proj.set_kind(num_features(), projection_kinds());
    check_projection(is_trained || rot == Rotation::random);
    FAISS_EXT_THROW_IF_NOT_MSG(
            (is_centered() || is_trained) && mean_value >= 0 && mean_value <= 1,
            "the parts of the hash are inconsistent");
}

double CenteredHash::expected_hamming_of_pair(const float* x, const float* y)
        const {
    if (is_centered() || proj.kind == ProjectionChoice::Kind::bilinear) {
        return KernelHash::expected_hamming_of_pair(x, y);
    }
    check_pair(x, y, "expected_hamming_of_pair");
    const Scratch space_x(features_space()), space_y(features_space());
    const float* a = features(1, x, space_x.get());
    const float* b = features(1, y, space_y.get());
    double aa = 0, ab = 0, bb = 0;
    for (int i = 0; i < num_features(); i++) {
        aa += double(a[i]) * a[i];
        ab += double(a[i]) * b[i];
        bb += double(b[i]) * b[i];
    }
    if (std::equal(x, x + d_in, y) || (aa == 0 && bb == 0)) {
        return 0;
    }
    // a row of zeros has all bits 1, and other rows have half of them
    const double cosine = ab == 0 ? 0 : ab / std::sqrt(aa) / std::sqrt(bb);
    return nbits * normalized_angle(cosine);
}

bool CenteredHash::has_independent_bits() const {
    return rot == Rotation::random && proj.is_independent();
}

namespace {

constexpr idx_t most_for_mean = 65536;

/// The sums of features are computed block by block, so that they do not depend
/// on the number of threads.
constexpr idx_t mean_block = 1024;

/// Returns |mu|^2 / mean |phi|^2.
double share_of_mean(double square, double mean_square) {
    return mean_square > 0 ? std::min(square / mean_square, 1.0) : 0;
}

} // namespace

void CenteredHash::learn(idx_t n, const float* x) {
    FAISS_EXT_THROW_IF_NOT_MSG(n > 0, "train: 0 vectors, expected at least 1");
    constexpr idx_t most_for_rotation = 16384;
    const std::vector<idx_t> ids = sample_ids(n, most_for_mean, seed);
    double mean_square = 0;
    const std::vector<float> mean = learn_mean(ids, x, mean_square);
    if (rot != Rotation::random) {
        const auto compute = [&](idx_t i0, idx_t m, float* phi) {
            const Scratch space(features_space());
            for (idx_t i = 0; i < m; i++, phi += num_features()) {
                const float* from =
                        features(1, x + ids[i0 + i] * d_in, space.get());
                std::copy_n(from, num_features(), phi);
            }
        };
        const idx_t m = std::min<idx_t>(ids.size(), most_for_rotation);
        projection = learn_rotation(
                rot,
                {m, num_features(), mean, std::sqrt(mean_square), compute},
                nbits,
                seed,
                verbose);
    }
    threshold.resize(nbits);
    projection->apply(1, mean.data(), threshold.data());
}

std::vector<float> CenteredHash::learn_mean(
        const std::vector<idx_t>& ids,
        const float* x,
        double& mean_square) {
    constexpr idx_t block = mean_block;
    const idx_t m = ids.size(), nblocks = (m + block - 1) / block;
    // the sums of the features, then of their squares
    const size_t size = num_features();
    std::vector<double> sums(nblocks * (size + 1));
    parallel_blocks(nblocks, 1, [&](idx_t b, idx_t) {
        double* to = &sums[b * (size + 1)];
        std::vector<float> space(features_space());
        for (idx_t i = b * block; i < std::min(m, (b + 1) * block); i++) {
            const float* phi = features(1, x + ids[i] * d_in, space.data());
            double square = 0;
            for (size_t k = 0; k < size; k++) {
                to[k] += phi[k];
                square += double(phi[k]) * phi[k];
            }
            to[size] += square;
        }
    });
    std::vector<double> means(size + 1);
    for (size_t k = 0; k <= size; k++) {
        for (idx_t b = 0; b < nblocks; b++) {
            means[k] += sums[b * (size + 1) + k];
        }
        means[k] /= double(m);
    }
    double square = 0;
    for (size_t k = 0; k < size; k++) {
        square += means[k] * means[k];
    }
    mean_square = means[size];
    mean_value = share_of_mean(square, mean_square);
    return {means.begin(), means.end() - 1};
}

bool CenteredHash::learn_sparse(const SparseVectors& x) {
    SparseRows space;
    if (rot != Rotation::random) {
        check_rotated_features(num_features()); // before dense copies
        return false;
    }
    if (!sparse_features(x.slice(0, 0), space)) {
        return false;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            x.n > 0, "train: 0 vectors, expected at least 1");
    // the same sums in the same order as in learn_mean, for the columns that
    // have components
    struct Component {
        int32_t column, block;
        float value;
    };
    const std::vector<idx_t> ids = sample_ids(x.n, most_for_mean, seed);
    std::vector<Component> components;
    std::vector<double> squares((ids.size() + mean_block - 1) / mean_block);
    Steps steps;
    for (size_t i = 0; i < ids.size(); i++) {
        steps.next();
        const auto block = int32_t(i / mean_block);
        const SparseVectors phi =
                *sparse_features(x.slice(ids[i], ids[i] + 1), space);
        double square = 0;
        for (int64_t j = phi.indptr[0]; j < phi.indptr[1]; j++) {
            components.push_back({phi.indices[j], block, phi.values[j]});
            square += double(phi.values[j]) * phi.values[j];
        }
        squares[block] += square;
    }
    std::stable_sort(
            components.begin(),
            components.end(),
            [](const Component& a, const Component& b) {
                return a.column < b.column;
            });
    SparseRows mean;
    mean.d = num_features();
    const auto count = double(ids.size());
    double square = 0;
    for (size_t i = 0; i < components.size();) {
        const int32_t column = components[i].column;
        double sum = 0;
        while (i < components.size() && components[i].column == column) {
            const int32_t block = components[i].block;
            double part = 0;
            for (; i < components.size() && components[i].column == column &&
                 components[i].block == block;
                 i++) {
                part += components[i].value;
            }
            sum += part;
        }
        sum /= count;
        square += sum * sum;
        mean.indices.push_back(column);
        mean.values.push_back(float(sum));
    }
    mean.indptr = {0, int64_t(mean.indices.size())};
    double mean_square = 0;
    for (double s : squares) {
        mean_square += s;
    }
    mean_value = share_of_mean(square, mean_square / count);
    threshold.resize(nbits);
    projection->apply_sparse(mean.get(), threshold.data());
    return true;
}

} // namespace faiss_ext
