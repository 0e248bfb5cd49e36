// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/GeneratedProjection.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "simd/generated.h"

namespace faiss_ext {

namespace {

/// Mixes 64 bits (the finaliser of SplitMix64: Steele, Lea and Flood, Fast
/// splittable pseudorandom number generators, OOPSLA 2014).
uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/// Returns number i of a stream of random numbers, which are all different.
uint64_t number(uint64_t stream, uint64_t i) {
    return mix(stream + (i + 1) * 0x9e3779b97f4a7c15);
}

simd::Law law_of(GeneratedProjection::Law law) {
    return law == GeneratedProjection::Law::normal ? simd::Law::normal
                                                   : simd::Law::cauchy;
}

} // namespace

/// The components of a vector that are not 0.
struct GeneratedProjection::Columns {
    uint64_t stream;
    std::vector<simd::ColumnKey> keys;
    std::vector<float> values;

    explicit Columns(int64_t seed) : stream(number(uint64_t(seed), 0)) {}

    void clear() {
        keys.clear();
        values.clear();
    }

    void add(uint64_t column, float value) {
        if (value != 0) {
            const uint64_t bits = number(stream, column);
            keys.push_back({uint32_t(bits), uint32_t(bits >> 32)});
            values.push_back(value);
        }
    }
};

GeneratedProjection::GeneratedProjection(
        int d_in,
        int d_out,
        int64_t seed,
        Law law,
        const std::vector<double>& scales)
        : seed(seed), law(law) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in > 0 && d_out > 0,
            "GeneratedProjection: from %d dimensions to %d, expected positive numbers",
            d_in,
            d_out);
    FAISS_EXT_THROW_IF_NOT_FMT(
            scales.empty() || scales.size() == size_t(d_out),
            "GeneratedProjection: %zu scales given, expected one for each of %d outputs, or none",
            scales.size(),
            d_out);
    this->d_in = d_in;
    this->d_out = d_out;
    for (double scale : scales) {
        this->scales.push_back(float(scale));
    }
}

void GeneratedProjection::multiply_columns(const Columns& columns, float* y)
        const {
    const simd::Law law = law_of(this->law);
    const uint64_t bits = number(uint64_t(seed), 1);
    const Scratch sums(simd::num_sums(law, d_out));
    simd::generated_sums(
            law,
            columns.keys.size(),
            columns.keys.data(),
            columns.values.data(),
            d_out,
            {uint32_t(bits), uint32_t(bits >> 32)},
            sums.get());
    const double unit =
            law == simd::Law::normal ? 1 / simd::generated_deviation() : 1;
    for (int j = 0; j < d_out; j++) {
        const float factor = float(scales.empty() ? unit : unit * scales[j]);
        y[j] = sums[j] * factor;
    }
}

void GeneratedProjection::multiply(size_t n, const float* x, float* y) const {
    Columns columns(seed);
    for (size_t i = 0; i < n; i++, x += d_in, y += d_out) {
        columns.clear();
        for (int k = 0; k < d_in; k++) {
            columns.add(k, x[k]);
        }
        multiply_columns(columns, y);
    }
}

void GeneratedProjection::multiply_sparse(const SparseVectors& x, float* y)
        const {
    Columns columns(seed);
    for (idx_t i = 0; i < x.n; i++, y += d_out) {
        columns.clear();
        for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; j++) {
            columns.add(x.indices[j], x.values[j]);
        }
        multiply_columns(columns, y);
    }
}

std::vector<float> GeneratedProjection::matrix() const {
    std::vector<float> A(size_t(d_out) * d_in);
    parallel_blocks(d_in, 64, [&](idx_t begin, idx_t end) {
        std::vector<float> column(d_out);
        Columns unit(seed);
        for (idx_t k = begin; k < end; k++) {
            unit.clear();
            unit.add(k, 1);
            multiply_columns(unit, column.data());
            for (int j = 0; j < d_out; j++) {
                A[size_t(j) * d_in + k] = column[j];
            }
        }
    });
    return A;
}

void GeneratedProjection::fields(FieldVisitor& v) const {
    Projection::fields(v);
    v.integer("seed", seed, 0, INT64_MAX, "seed of the numbers");
    v.word("law", law, {"normal", "cauchy"}, "distribution of the numbers");
    v.array("scales", scales);
}

void GeneratedProjection::restore() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            scales.empty() || scales.size() == size_t(d_out),
            "the projection has %zu scales, expected one for each of %d outputs, or none",
            scales.size(),
            d_out);
}

} // namespace faiss_ext
