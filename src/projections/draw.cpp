// SPDX-License-Identifier: MIT
#include "projections/draw.h"

#include <cmath>
#include <random>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/GeneratedProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "projections/random_projection.h"

namespace faiss_ext {

namespace {

using Kind = ProjectionChoice::Kind;

ClonePtr<Projection> draw_bilinear(
        const ProjectionChoice& choice,
        int d_out,
        int64_t seed,
        double factor) {
    return std::make_unique<BilinearProjection>(
            choice.d_w,
            choice.d_v,
            d_out,
            choice.m,
            choice.w == ProjectionChoice::Rows::structured,
            seed,
            factor,
            choice.shuffle);
}

} // namespace

ClonePtr<Projection> draw_gaussian(
        const ProjectionChoice& choice,
        int d_in,
        int d_out,
        int64_t seed) {
    if (choice.kind == Kind::bilinear) {
        return draw_bilinear(choice, d_out, seed, 1);
    }
    if (choice.kind == Kind::dense) {
        return std::make_unique<DenseProjection>(
                random_projection<std::normal_distribution<double>>(
                        d_in, d_out, seed));
    }
    if (choice.kind == Kind::generated) {
        return std::make_unique<GeneratedProjection>(d_in, d_out, seed);
    }
    const int D = StructuredProjection::order(d_in);
    std::vector<double> lengths(d_out);
    parallel_blocks(d_out, 256, [&](idx_t begin, idx_t end) {
        for (idx_t j = begin; j < end; j++) {
            lengths[j] = gaussian_length(seed, j, D);
        }
    });
    return std::make_unique<StructuredProjection>(d_in, d_out, seed, lengths);
}

ClonePtr<Projection> draw_frequencies(
        const ProjectionChoice& choice,
        const ShiftInvariantKernel& kernel,
        int d_in,
        int d_out,
        int64_t seed) {
    const double turns = kernel.turns();
    if (choice.kind == Kind::bilinear) {
        return draw_bilinear(choice, d_out, seed, turns);
    }
    if (choice.kind == Kind::generated) {
        using Law = GeneratedProjection::Law;
        std::vector<double> scales(d_out);
        parallel_blocks(d_out, 256, [&](idx_t begin, idx_t end) {
            for (idx_t i = begin; i < end; i++) {
                std::mt19937_64 rng = row_rng(seed, i, stream_lengths);
                scales[i] = turns * kernel.sample_scale(rng).value();
            }
        });
        return std::make_unique<GeneratedProjection>(
                d_in,
                d_out,
                seed,
                kernel.norm() == ShiftInvariantKernel::Norm::L2 ? Law::normal
                                                                : Law::cauchy,
                scales);
    }
    const auto draw_row = [&](idx_t i, std::vector<float>& omega) {
        std::mt19937_64 rng = row_rng(seed, i, stream_rows);
        kernel.sample_frequency(rng, omega.size(), omega.data());
    };
    if (choice.kind == Kind::dense) {
        auto dense = std::make_unique<DenseProjection>(d_in, d_out);
        parallel_blocks(d_out, 64, [&](idx_t begin, idx_t end) {
            std::vector<float> omega(d_in);
            for (idx_t i = begin; i < end; i++) {
                draw_row(i, omega);
                for (float& v : omega) {
                    v = float(turns * v);
                }
                dense->set_row(int(i), omega.data());
            }
        });
        return dense;
    }
    // a part of a frequency in D dimensions is a frequency in d_in dimensions
    const int D = StructuredProjection::order(d_in);
    std::vector<double> lengths(d_out);
    parallel_blocks(d_out, 64, [&](idx_t begin, idx_t end) {
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
    return std::make_unique<StructuredProjection>(d_in, d_out, seed, lengths);
}

std::vector<Kind> frequency_kinds(const ShiftInvariantKernel* kernel) {
    std::vector<Kind> kinds;
    if (!kernel || kernel->norm() == ShiftInvariantKernel::Norm::L2) {
        kinds.push_back(Kind::structured);
    }
    kinds.push_back(Kind::dense);
    std::mt19937_64 rng;
    if (!kernel || kernel->sample_scale(rng)) {
        kinds.push_back(Kind::generated);
    }
    return kinds;
}

} // namespace faiss_ext
