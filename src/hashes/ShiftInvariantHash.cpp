#include <faiss_ext/hashes/ShiftInvariantHash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <faiss_ext/core/Spec.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "core/errors.h"
#include "core/io_fields.h"
#include "core/parallel.h"
#include "core/random_streams.h"
#include "hashes/angle.h"
#include "hashes/features.h"
#include "hashes/hamming_series.h"
#include "kernels/kernel_io.h"
#include "simd/margins.h"

namespace faiss_ext {

namespace {

using std::numbers::pi;

std::unique_ptr<ShiftInvariantKernel> as_shift_invariant(
        std::unique_ptr<Kernel> kernel) {
    auto* cast = dynamic_cast<ShiftInvariantKernel*>(kernel.get());
    FAISS_EXT_THROW_IF_NOT_FMT(
            cast,
            "%s is not shift-invariant, expected gaussian, laplacian or matern",
            kernel->description().c_str());
    kernel.release();
    return std::unique_ptr<ShiftInvariantKernel>(cast);
}

std::unique_ptr<ShiftInvariantKernel> kernel_of_spec(Spec& spec) {
    const std::vector<std::string> names = {"gaussian", "laplacian", "matern"};
    Spec item = spec.get_item(0, names);
    spec.hand_over_keys(item);
    std::unique_ptr<Kernel> kernel = make_kernel(item, names);
    auto* cast = dynamic_cast<ShiftInvariantKernel*>(kernel.get());
    if (!cast) {
        item.fail(item.begin, item.name + " is not shift-invariant", names);
    }
    kernel.release();
    return std::unique_ptr<ShiftInvariantKernel>(cast);
}

/// Whether frequencies have all directions alike, which those of rotations
/// have.
bool is_isotropic(const ShiftInvariantKernel& kernel) {
    return kernel.norm() == ShiftInvariantKernel::Norm::L2;
}

/// A kernel value, which rounding may have put a little outside of [0, 1].
double checked_unit(double u) {
    check_kernel_value(u, 0);
    return std::clamp(u, 0.0, 1.0);
}

} // namespace

ShiftInvariantHash::ShiftInvariantHash(
        int d,
        int nbits,
        const ShiftInvariantKernel& kernel,
        int64_t seed,
        bool structured)
        : KernelHash(d, nbits),
          kernel(as_shift_invariant(kernel.clone())),
          seed(seed),
          structured(structured && is_isotropic(kernel)) {
    is_trained = kernel.is_trained;
    if (is_trained) {
        draw();
    }
}

ShiftInvariantHash::ShiftInvariantHash(int d, int nbits, Spec& spec)
        : KernelHash(d, nbits) {
    seed = spec.get_int("seed", 1234, 0, INT64_MAX);
    const std::string proj = spec.get_word("proj", "", {"structured", "dense"});
    kernel = kernel_of_spec(spec);
    if (proj == "structured" && !is_isotropic(*kernel)) {
        spec.fail_value(
                "proj",
                "frequencies of " + kernel->description() +
                        " have preferred directions: proj=dense only");
    }
    structured = proj != "dense" && is_isotropic(*kernel);
    is_trained = kernel->is_trained;
    if (is_trained) {
        draw();
    }
}

void ShiftInvariantHash::draw() {
    const double turns = kernel->turns();
    const auto draw_row = [&](idx_t i, std::vector<float>& omega) {
        std::mt19937_64 rng = row_rng(seed, i, stream_rows);
        kernel->sample_frequency(rng, omega.size(), omega.data());
    };
    if (structured) {
        // A part of a frequency of D dimensions is one of d_in dimensions.
        const int D = StructuredProjection::order(d_in);
        std::vector<double> lengths(nbits);
        parallel_blocks(nbits, 64, [&](idx_t begin, idx_t end) {
            std::vector<float> omega(D);
            for (idx_t i = begin; i < end; i++) {
                draw_row(i, omega);
                double sum = 0;
                for (float v : omega) {
                    sum += double(v) * v;
                }
                lengths[i] = turns * std::sqrt(sum);
            }
        });
        projection = StructuredProjection(d_in, nbits, seed, lengths);
    } else {
        DenseProjection dense(d_in, nbits);
        parallel_blocks(nbits, 64, [&](idx_t begin, idx_t end) {
            std::vector<float> omega(d_in);
            for (idx_t i = begin; i < end; i++) {
                draw_row(i, omega);
                for (float& v : omega) {
                    v = float(turns * v);
                }
                dense.set_row(int(i), omega.data());
            }
        });
        projection = std::move(dense);
    }
    std::mt19937_64 rng = row_rng(seed, 0, stream_offsets);
    std::uniform_real_distribution<double> uniform;
    offset.clear();
    threshold.clear();
    for (int i = 0; i < nbits; i++) {
        offset.push_back(float(uniform(rng)));
        threshold.push_back(float(std::acos(1 - 2 * uniform(rng)) / (2 * pi)));
    }
}

void ShiftInvariantHash::learn(idx_t n, const float* x) {
    kernel->verbose = verbose;
    kernel->train(n, x, d_in);
    draw();
}

void ShiftInvariantHash::margins(size_t n, const float* x, float* margins)
        const {
    check_projection(projection.get(), d_in, nbits);
    projection->apply(n, x, margins);
    simd::fold_phases(n, nbits, offset.data(), threshold.data(), margins);
}

double ShiftInvariantHash::expected_at(double r) const {
    return expected_share([&](double m) { return kernel->profile(m * r); });
}

double ShiftInvariantHash::expected_hamming(double kernel_value) const {
    const double u = checked_unit(kernel_value);
    return nbits * expected_at(kernel->inverse_profile(u));
}

double ShiftInvariantHash::kernel_estimate(double hamming) const {
    const double h = normalized_hamming(hamming);
    if (h >= 4 / (pi * pi)) {
        return 0;
    }
    if (h == 0) {
        return 1;
    }
    return kernel->profile(
            inverse_share(h, [&](double r) { return expected_at(r); }));
}

double ShiftInvariantHash::h1(double u) {
    u = checked_unit(u);
    return 4 / (pi * pi) * (1 - u);
}

double ShiftInvariantHash::h2(double u) {
    u = checked_unit(u);
    return std::min(0.5 * std::sqrt(1 - u), 4 / (pi * pi) * (1 - 2 * u / 3));
}

void ShiftInvariantHash::write_fields(faiss::IOWriter* f) const {
    write_kernel(f, *kernel);
    write_value(f, seed);
    write_value(f, structured);
    projection.write(f);
    write_vector(f, offset);
    write_vector(f, threshold);
}

void ShiftInvariantHash::read_fields(faiss::IOReader* f) {
    kernel = as_shift_invariant(read_kernel(f));
    seed = read_value<int64_t>(f, "seed");
    structured = read_value<bool>(f, "structured");
    projection.read(f);
    FAISS_EXT_THROW_IF_NOT_FMT(
            bool(projection) == is_trained &&
                    (!projection ||
                     (projection->d_in == d_in &&
                      projection->d_out == nbits)) &&
                    kernel->is_trained == is_trained &&
                    (!structured || is_isotropic(*kernel)),
            "%s is damaged: the parts of a hash do not fit",
            f->name.c_str());
    const size_t n = is_trained ? nbits : 0;
    read_finite_vector(f, offset, n, "offset");
    read_finite_vector(f, threshold, n, "threshold");
}

} // namespace faiss_ext
