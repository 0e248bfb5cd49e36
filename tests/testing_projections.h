// How far the products of projections may be from those of their matrices.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include <faiss_ext/projections/Projection.h>
#include <faiss_ext/projections/ProjectionChoice.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "testing_theory.h"

namespace testing_projections {

constexpr auto proj_dense = faiss_ext::ProjectionChoice::Kind::dense;
constexpr auto proj_structured = faiss_ext::ProjectionChoice::Kind::structured;

inline faiss_ext::ProjectionChoice proj_of(bool structured) {
    return structured ? proj_structured : proj_dense;
}

inline bool is_structured(const faiss_ext::ProjectionChoice& proj) {
    return proj.kind == proj_structured;
}

/// Sylvester's matrix
inline double hadamard(size_t i, size_t j) {
    return std::popcount(i & j) % 2 ? -1 : 1;
}

/// Rows that the last transform has, if d_y are wanted of d.
inline size_t last_rows(size_t d, size_t d_y) {
    return std::min(d, std::bit_ceil(std::max<size_t>(16, d_y)));
}

/** How far an output of simd::hadamard_rounds, not scaled, may be from the true
 * one, over |x|.
 *
 * A level of butterflies errs by one unit of its results, and what follows is
 * orthogonal but for a factor, so that a level adds one unit of d^(3/2) |x|.
 * Where the d / d_last = c parts of the input of the last transform are added
 * up, the sum of i of them is at most sqrt(i) times as long as the input, and
 * the output moves by sum_{i = 2..c} sqrt(i / c) units of d^(3/2) |x|. The
 * factor 1.001 is for products of such terms.
 */
inline double rounds_error(size_t d, size_t d_y) {
    const double d_last = double(last_rows(d, d_y)), c = double(d) / d_last;
    double units = 2 * std::log2(double(d)) + std::log2(d_last);
    for (double i = 2; i <= c; i++) {
        units += std::sqrt(i / c);
    }
    return 1.001 * testing_theory::float_unit * units *
            std::pow(double(d), 1.5);
}

inline double length(const double* x, size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        sum += x[k] * x[k];
    }
    return std::sqrt(sum);
}

inline double length(const float* x, size_t d) {
    return length(std::vector<double>(x, x + d).data(), d);
}

/// How far output j may be from the product of row j of matrix() with x, over
/// |x|: that of the rounds, and a unit each for the product with the norm and
/// for that of matrix(), whose rounds are whole numbers below 2^24.
inline double structured_error(
        const faiss_ext::StructuredProjection& p,
        size_t j) {
    const size_t D = p.order(p.d_in), begin = j / D * D;
    const double rounds = rounds_error(D, std::min(D, size_t(p.d_out) - begin));
    return p.norms[j] *
            (rounds + 2.001 * testing_theory::float_unit * std::pow(D, 1.5));
}

/// |w_j|
inline double row_length(const faiss_ext::StructuredProjection& p, size_t j) {
    return p.norms[j] * std::pow(double(p.order(p.d_in)), 1.5);
}

/** How far the products of a projection may be from the sum of the terms
 * A_jk x_k, in double.
 *
 * @param absolute  sum |A_jk x_k|
 * @param length    |x|
 */
inline double product_error(
        const faiss_ext::Projection& p,
        size_t j,
        double absolute,
        double length) {
    const auto* structured =
            dynamic_cast<const faiss_ext::StructuredProjection*>(&p);
    return structured ? structured_error(*structured, j) * length
                      : 2e-5 * absolute; // DenseProjection.h
}

} // namespace testing_projections
