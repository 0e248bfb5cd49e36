// SPDX-License-Identifier: MIT
#include "projections/given_frequencies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <faiss_ext/kernels/ShiftInvariantKernel.h>

#include "core/check.h"
#include "core/errors.h"

namespace faiss_ext {

namespace {

constexpr double turn = 2 * std::numbers::pi;

/// The most turns of a phase.
constexpr double most_turns = 1e30;

double length_of(const float* x, size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += double(x[k]) * x[k];
    }
    return std::sqrt(sum);
}

} // namespace

std::unique_ptr<DenseProjection> given_frequencies(
        int d,
        int n,
        const float* omega,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0 && n > 0 && n <= most_frequencies,
            "%s: %d frequencies of %d dimensions, expected 1 to %d frequencies of at least 1 dimension",
            where,
            n,
            d,
            most_frequencies);
    FAISS_EXT_THROW_IF_NOT_FMT(
            omega, "%s: the pointer to the frequencies is null", where);
    auto turns = std::make_unique<DenseProjection>(d, n);
    std::vector<float> row(d);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < d; k++) {
            const float v = omega[size_t(i) * d + k];
            FAISS_EXT_THROW_IF_NOT_FMT(
                    std::isfinite(v),
                    "%s: component %d of frequency %d is %g, expected a finite number",
                    where,
                    k,
                    i,
                    v);
            row[k] = float(v / turn);
        }
        turns->set_row(i, row.data());
    }
    return turns;
}

double longest_vector(const Projection& turns) {
    const size_t d = turns.d_in, n = turns.d_out;
    const std::vector<float> rows = turns.matrix();
    std::vector<double> lengths(n);
    for (size_t i = 0; i < n; i++) {
        lengths[i] = length_of(&rows[i * d], d);
    }
    const auto middle = lengths.begin() + std::ptrdiff_t(n / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    const double inverse_scale = turn * *middle / std::sqrt(double(d));
    const double most = *std::max_element(middle, lengths.end());
    const auto quotient = [](double a, double b) {
        return b > 0 ? a / b : std::numeric_limits<double>::infinity();
    };
    return std::min(
            quotient(ShiftInvariantKernel::max_radius, inverse_scale),
            quotient(most_turns, most));
}

void check_given_phases(
        const Projection* turns,
        int d_in,
        double longest,
        idx_t n,
        const float* x,
        size_t d,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            turns && turns->d_in == d_in,
            "%s: there are no frequencies for vectors of %d dimensions",
            where,
            d_in);
    // if no component exceeds this, no vector is longer
    const auto safe = float(std::min(longest / std::sqrt(d + 1.0), 1e38));
    check_rows_exceeding(safe, n, x, d, where, [&](idx_t i, const float* row) {
        const double length = length_of(row, d);
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                length <= longest,
                i,
                format_message("%s: ", where),
                format_message(
                        " is too far from the origin: its length is %g, expected at most %g with these frequencies; centre the vectors, or take smaller frequencies",
                        length,
                        longest));
    });
}

} // namespace faiss_ext
