// SPDX-License-Identifier: MIT
#include "projections/principal_components.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

// keeps sums independent of the number of threads
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>

#include <faiss_ext/core/AlignedVector.h>

#include "core/eigen_symmetric.h"
#include "core/errors.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "simd/projection.h"

namespace faiss_ext {

namespace {

/// rows that are multiplied together
constexpr idx_t rows_together = 16;

using Matrix = Eigen::Matrix<double, -1, -1, Eigen::RowMajor>;

/// Computes the k leading eigenvectors by LAPACK, which computes all of them.
void all_eigenvectors(
        const std::vector<float>& S,
        size_t d,
        size_t k,
        bool verbose,
        PrincipalAxes& result) {
    std::vector<double> a(S.begin(), S.end()), values;
    eigen_symmetric(d, a, values, verbose);
    for (size_t i = 0; i < k; i++) {
        const size_t from = d - 1 - i;
        result.values[i] = float(std::max(values[from], 0.0));
        std::copy_n(&a[from * d], d, &result.vectors[i * d]);
    }
}

/// Computes Q S for a symmetric S, row by row.
Matrix times_symmetric(const Matrix& Q, const std::vector<float>& S) {
    const size_t m = Q.rows(), d = Q.cols();
    AlignedVector<float> packed(simd::packed_size(d, m));
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < d; j++) {
            packed[simd::panel_index(d, i, j)] = float(Q(i, j));
        }
    }
    Matrix Z(m, d);
    parallel_blocks(d, rows_together, [&](idx_t j0, idx_t j1) {
        const Scratch products((j1 - j0) * m);
        simd::project(j1 - j0, &S[j0 * d], m, packed.data(), d, products.get());
        for (idx_t j = j0; j < j1; j++) {
            for (size_t i = 0; i < m; i++) {
                Z(i, j) = products[(j - j0) * m + i];
            }
        }
    });
    return Z;
}

/// Replaces Q by the orthonormalised rows of Q S, the leading eigenvectors'
/// directions first. Returns estimates of the eigenvalues.
std::vector<double> iterate(Matrix& Q, const std::vector<float>& S) {
    constexpr double smallest = 1e-12; // squared, relative to the largest
    const Matrix Z = times_symmetric(Q, S);
    const size_t m = Z.rows();
    const Matrix gram = Z * Z.transpose(); // Q S^2 Q'
    std::vector<double> a(gram.data(), gram.data() + m * m), squares;
    eigen_symmetric(m, a, squares);
    Matrix turn = Matrix::Zero(m, m);
    std::vector<double> values(m);
    for (size_t i = 0; i < m; i++) {
        const size_t from = m - 1 - i;
        if (squares[from] > smallest * squares[m - 1]) {
            values[i] = std::sqrt(squares[from]);
            for (size_t j = 0; j < m; j++) {
                turn(i, j) = a[from * m + j] / values[i];
            }
        }
    }
    Q = turn * Z;
    return values;
}

void leading_eigenvectors(
        const std::vector<float>& S,
        size_t d,
        size_t k,
        PrincipalAxes& result) {
    constexpr int most_iterations = 100;
    constexpr double tolerance = 1e-5;
    const size_t m = std::min(d, k + std::max<size_t>(16, k / 4));
    Matrix Q(m, d);
    std::mt19937_64 rng(1234);
    std::normal_distribution<double> normal;
    std::generate_n(Q.data(), Q.size(), [&] { return normal(rng); });
    iterate(Q, S);
    std::vector<double> values;
    double captured = 0;
    for (int i = 0; i < most_iterations; i++) {
        values = iterate(Q, S);
        const double before = captured;
        captured = std::accumulate(values.begin(), values.begin() + k, 0.0);
        if (captured - before <= tolerance * captured) {
            break;
        }
    }
    for (size_t i = 0; i < k; i++) {
        result.values[i] = float(values[i]);
        for (size_t j = 0; j < d; j++) {
            result.vectors[i * d + j] = float(Q(i, j));
        }
    }
}

/// Flips each eigenvector so that its largest component is positive. Otherwise
/// its sign would depend on rounding.
void choose_signs(size_t d, std::vector<float>& vectors) {
    for (size_t i = 0; i < vectors.size(); i += d) {
        const auto begin = vectors.begin() + i, end = begin + d;
        const auto largest = std::max_element(begin, end, [](float a, float b) {
            return std::abs(a) < std::abs(b);
        });
        if (*largest < 0) {
            std::transform(begin, end, begin, std::negate<>());
        }
    }
}

} // namespace

ScatterMatrix::ScatterMatrix(size_t d) : d(d), S(d * d) {}

void ScatterMatrix::add(idx_t n, const float* x) {
    const size_t m = n;
    std::vector<float> columns(d * m);
    AlignedVector<float> packed(simd::packed_size(m, d));
    parallel_blocks(d, rows_together, [&](idx_t begin, idx_t end) {
        for (idx_t j = begin; j < end; j++) {
            for (size_t i = 0; i < m; i++) {
                const float v = x[i * d + j];
                columns[j * m + i] = v;
                packed[simd::panel_index(m, j, i)] = v;
            }
        }
    });
    // the part to the right of the diagonal blocks
    parallel_blocks(d, rows_together, [&](idx_t begin, idx_t end) {
        const size_t width = d - begin;
        const Scratch products((end - begin) * width);
        simd::project(
                end - begin,
                &columns[begin * m],
                width,
                &packed[simd::panel_index(m, begin, 0)],
                m,
                products.get());
        for (idx_t j = begin; j < end; j++) {
            for (size_t l = 0; l < width; l++) {
                S[j * d + begin + l] += products[(j - begin) * width + l];
            }
        }
    });
}

PrincipalAxes ScatterMatrix::leading(size_t k, bool verbose) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            k <= d,
            "%zu principal components are requested, but the vectors have only %zu dimensions",
            k,
            d);
    std::vector<float> whole = S;
    for (size_t j = 0; j < d; j++) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                std::isfinite(S[j * d + j]),
                "train: the variance of the vectors is beyond the range of float; scale them down");
        for (size_t l = 0; l < j; l++) {
            whole[j * d + l] = S[l * d + j];
        }
    }
    PrincipalAxes result;
    result.values.resize(k);
    result.vectors.resize(k * d);
    // LAPACK takes about 10 d^3 steps, an iteration 2 m d^2 + 4 m^2 d
    if (d <= 512 || k > d / 4) {
        all_eigenvectors(whole, d, k, verbose, result);
    } else {
        leading_eigenvectors(whole, d, k, result);
    }
    choose_signs(d, result.vectors);
    return result;
}

std::vector<float> mean_of(idx_t n, const float* x, size_t d) {
    std::vector<double> sum(d);
    for (idx_t i = 0; i < n; i++) {
        for (size_t j = 0; j < d; j++) {
            sum[j] += x[i * d + j];
        }
    }
    std::vector<float> mean(d);
    for (size_t j = 0; j < d; j++) {
        mean[j] = float(sum[j] / double(n));
    }
    return mean;
}

namespace {

constexpr size_t vectors_together = 1024;

/// Computes the axes of fewer vectors than dimensions, from the n^2 products of
/// centred vectors: if u is an eigenvector of X X', then X' u is one of X' X.
PrincipalAxes axes_of_few(
        const std::vector<float>& x,
        size_t n,
        size_t d,
        size_t k) {
    constexpr float smallest = 1e-6f; // relative to the largest eigenvalue
    ScatterMatrix products(n);
    std::vector<float> columns;
    for (size_t begin = 0; begin < d; begin += vectors_together) {
        const size_t m = std::min(vectors_together, d - begin);
        columns.resize(m * n);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                columns[j * n + i] = x[i * d + begin + j];
            }
        }
        products.add(idx_t(m), columns.data());
    }
    const PrincipalAxes few = products.leading(std::min(k, n));
    PrincipalAxes result;
    result.values.resize(k);
    result.vectors.resize(k * d);
    size_t rank = 0;
    while (rank < few.values.size() &&
           few.values[rank] > smallest * few.values[0]) {
        rank++;
    }
    Matrix axes = Matrix::Zero(rank, d);
    parallel_blocks(rank, 1, [&](idx_t a, idx_t) {
        for (size_t i = 0; i < n; i++) {
            axes.row(a) += double(few.vectors[a * n + i]) *
                    Eigen::Map<const Eigen::RowVectorXf>(&x[i * d], d)
                            .cast<double>();
        }
    });
    for (size_t a = 0; a < rank; a++) {
        check_interrupt();
        // rounding adds parts of other axes
        for (int time = 0; time < 2; time++) {
            for (size_t b = 0; b < a; b++) {
                axes.row(a) -= axes.row(a).dot(axes.row(b)) * axes.row(b);
            }
        }
        axes.row(a).normalize();
        result.values[a] = few.values[a];
        for (size_t j = 0; j < d; j++) {
            result.vectors[a * d + j] = float(axes(a, j));
        }
    }
    choose_signs(d, result.vectors);
    return result;
}

} // namespace

PrincipalComponents principal_components(
        idx_t n,
        const float* x,
        size_t d,
        size_t k,
        bool center) {
    PrincipalComponents result;
    result.mean = center ? mean_of(n, x, d) : std::vector<float>(d);
    std::vector<float> centred;
    const auto centre = [&](size_t begin, size_t end) {
        centred.assign(x + begin * d, x + end * d);
        for (size_t i = 0; i < centred.size(); i++) {
            centred[i] -= result.mean[i % d];
        }
    };
    PrincipalAxes& axes = result;
    if (size_t(n) < d) {
        centre(0, n);
        axes = axes_of_few(centred, n, d, k);
        return result;
    }
    ScatterMatrix scatter(d);
    for (size_t begin = 0; begin < size_t(n); begin += vectors_together) {
        centre(begin, std::min(begin + vectors_together, size_t(n)));
        scatter.add(idx_t(centred.size() / d), centred.data());
    }
    axes = scatter.leading(k);
    return result;
}

} // namespace faiss_ext
