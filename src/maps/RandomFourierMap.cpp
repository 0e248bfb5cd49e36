// SPDX-License-Identifier: MIT
#include <faiss_ext/maps/RandomFourierMap.h>

#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "core/cache_sizes.h"
#include "core/errors.h"
#include "maps/fourier_features.h"
#include "projections/draw.h"

namespace faiss_ext {

RandomFourierMap::RandomFourierMap(
        int d,
        int dims,
        const ShiftInvariantKernel& kernel,
        int64_t seed,
        const ProjectionChoice& proj)
        : FeatureMap(d, dims), dims(dims), seed(seed), proj(proj) {
    this->kernel = copy_as<ShiftInvariantKernel>(kernel);
    init();
}

void RandomFourierMap::fields(FieldVisitor& v) const {
    v.part("kernel", kernel, "a shift-invariant kernel");
    v.integer("dims", dims, 2, 1 << 26, "output dimension, even");
    v.integer("seed", seed, 0, INT64_MAX, "seed of the frequencies");
    // files have the keys of bilinear projections only if they are chosen
    proj.fields(v, d_in, d_in, kinds(), !kernel);
    v.learned_part("projection", projection);
}

std::vector<ProjectionChoice::Kind> RandomFourierMap::kinds() const {
    std::vector<ProjectionChoice::Kind> kinds = frequency_kinds(kernel.get());
    if (!kernel || dynamic_cast<const GaussianKernel*>(kernel.get())) {
        kinds.push_back(ProjectionChoice::Kind::bilinear);
    }
    return kinds;
}

void RandomFourierMap::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0,
            "the input dimension is %d, expected a positive number",
            d_in);
    check_fields(*this);
    if (dims % 2 != 0) {
        throw FieldError(
                "dims",
                "dims is " + std::to_string(dims) +
                        ", expected an even number: half are cosines, half sines");
    }
    proj.set_kind(d_in, kinds());
    proj.set_shape(d_in);
    d_out = dims;
    is_trained = kernel->is_trained;
    if (is_trained) {
        draw();
    }
}

void RandomFourierMap::restore() {
    d_out = dims;
    proj.set_kind(d_in, kinds());
    FAISS_EXT_THROW_IF_NOT_MSG(
            dims % 2 == 0 && kernel->is_trained == is_trained &&
                    bool(projection) == is_trained &&
                    (!projection ||
                     (projection->d_in == d_in &&
                      projection->d_out == dims / 2)),
            "the parts of the map are inconsistent");
}

void RandomFourierMap::draw() {
    projection = draw_frequencies(proj, *kernel, d_in, dims / 2, seed);
}

void RandomFourierMap::learn(idx_t n, const float* x) {
    kernel->verbose = verbose;
    kernel->train(n, x, d_in);
    kernel->check_phases(n, x, d_in, "train");
    draw();
}

bool RandomFourierMap::learn_sparse(const SparseVectors& x) {
    kernel->verbose = verbose;
    kernel->train_sparse(x);
    check_components(x, "train");
    draw();
    return true;
}

idx_t RandomFourierMap::rows_per_block(idx_t n) const {
    return rows_to_multiply(n, dims, cache::half_l2);
}

void RandomFourierMap::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(kernel, "%s: the map has no kernel", where);
    kernel->check_phases(n, x, d, where);
}

void RandomFourierMap::map(size_t n, const float* x, float* xt) const {
    map_phases(n, xt, [&](float* phases) { projection->apply(n, x, phases); });
}

void RandomFourierMap::map_sparse(const SparseVectors& x, float* xt) const {
    map_phases(x.n, xt, [&](float* phases) {
        projection->apply_sparse(x, phases);
    });
}

template <class F>
void RandomFourierMap::map_phases(size_t n, float* xt, F&& project) const {
    const size_t half = dims / 2;
    FAISS_EXT_THROW_IF_NOT_MSG(
            projection && projection->d_in == d_in &&
                    projection->d_out == int(half) && d_out == dims,
            "the map is not trained; call train first");
    fourier_features(n, half, xt, project);
}

} // namespace faiss_ext
