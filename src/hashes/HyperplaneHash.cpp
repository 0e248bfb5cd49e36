// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/HyperplaneHash.h>

#include <cmath>
#include <numbers>

#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/GeneratedProjection.h>

#include "core/check.h"
#include "hashes/angle.h"

namespace faiss_ext {

HyperplaneHash::HyperplaneHash(
        int d,
        int nbits,
        bool center,
        int64_t seed,
        const ProjectionChoice& proj,
        Rotation rot)
        : CenteredHash(d, nbits) {
    this->center = center;
    this->seed = seed;
    this->proj = proj;
    this->rot = rot;
    init();
}

HyperplaneHash::HyperplaneHash(
        ClonePtr<Projection> projection,
        bool center,
        int64_t seed)
        : CenteredHash(
                  projection ? projection->d_in : 0,
                  projection ? projection->d_out : 0) {
    this->center = center;
    this->seed = seed;
    this->projection = std::move(projection);
    if (const auto* bilinear = dynamic_cast<const BilinearProjection*>(
                this->projection.get())) {
        proj = ProjectionChoice::Kind::bilinear;
        proj.d_w = bilinear->d_w;
        proj.d_v = bilinear->d_v;
        proj.m = bilinear->m;
        proj.w = bilinear->structured ? ProjectionChoice::Rows::structured
                                      : ProjectionChoice::Rows::dense;
        proj.shuffle = !bilinear->source.empty();
    } else if (dynamic_cast<const DenseProjection*>(this->projection.get())) {
        proj = ProjectionChoice::Kind::dense;
    } else if (dynamic_cast<const GeneratedProjection*>(
                       this->projection.get())) {
        proj = ProjectionChoice::Kind::generated;
    } else {
        proj = ProjectionChoice::Kind::structured;
    }
    check_fields(*this);
    is_trained = !center;
}

std::vector<ProjectionChoice::Kind> HyperplaneHash::projection_kinds() const {
    using Kind = ProjectionChoice::Kind;
    return {Kind::structured, Kind::dense, Kind::bilinear, Kind::generated};
}

void HyperplaneHash::fields(FieldVisitor& v) const {
    centered_fields(v);
}

double HyperplaneHash::expected_hamming(double kernel_value) const {
    check_kernel_value(kernel_value, least_kernel_value());
    return nbits * normalized_angle(kernel_value);
}

std::pair<double, double> HyperplaneHash::hamming_bounds(
        double kernel_value) const {
    if (rot != Rotation::random ||
        proj.kind == ProjectionChoice::Kind::bilinear) {
        return CenteredHash::hamming_bounds(kernel_value);
    }
    const double bits = expected_hamming(kernel_value);
    return {bits, bits};
}

std::optional<SparseVectors> HyperplaneHash::sparse_features(
        const SparseVectors& x,
        SparseRows&) const {
    return x;
}

void HyperplaneHash::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    if (center || rot != Rotation::random) {
        check_signed_histograms(n, x, d, where);
    } else {
        check_finite(n, x, d, where);
    }
}

double HyperplaneHash::kernel_value(const float* x, const float* y) const {
    if (center || rot != Rotation::random) {
        return CenteredHash::kernel_value(x, y); // the mean is not stored
    }
    check_pair(x, y, "kernel_value");
    return CosineKernel()(x, y, d_in);
}

double HyperplaneHash::kernel_estimate(double hamming) const {
    return std::cos(std::numbers::pi * normalized_hamming(hamming));
}

std::string HyperplaneHash::caution() const {
    const std::string learnt = rot == Rotation::random
            ? ""
            : caution_of_learnt + std::string("; ");
    return is_centered() ? learnt +
                    "kernel values are cosines as seen from the mean of the training vectors"
                         : "";
}

} // namespace faiss_ext
