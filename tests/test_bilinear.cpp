// SPDX-License-Identifier: MIT
// Bilinear projections and their codes: the inner loop under every instruction
// set, the distribution of the random numbers, and the theory of Kim and Choi
// 2015.

#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/projections/BilinearProjection.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include <faiss/impl/io.h>

#include "core/field_files.h"
#include "hashes/hamming_series.h"
#include "simd/bilinear.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Hash = BilinearShiftInvariantHash;
using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;

size_t block_size(const BilinearProjection& p) {
    return std::max<size_t>(256, std::bit_ceil(size_t(p.d_w)));
}

/// Returns w_j. If structured, it is row j of H S_3 H S_2 H S_1, which is
/// column j of S_1 H S_2 H S_3 H, scaled.
VectorXd row_w(const BilinearProjection& p, size_t j) {
    const size_t D = block_size(p);
    std::vector<double> row(p.structured ? D : 0);
    if (!p.structured) {
        row.assign(p.W.begin() + j * p.d_w, p.W.begin() + (j + 1) * p.d_w);
    } else {
        row[j % D] = p.norms[j];
        for (size_t round = 3; round-- > 0;) {
            row = hadamard_product(row);
            for (size_t k = 0; k < D; k++) {
                row[k] *= p.signs[3 * D * (j / D) + round * D + k];
            }
        }
    }
    return Eigen::Map<VectorXd>(row.data(), p.d_w);
}

/// Returns outputs of which no two share a v; given all w, they are
/// independent.
std::vector<int> outputs_of_different_v(const BilinearProjection& p) {
    std::vector<bool> seen(p.k_v);
    std::vector<int> outputs;
    for (int j = 0; j < p.d_out; j++) {
        if (!seen[p.pair_v[j]]) {
            seen[p.pair_v[j]] = true;
            outputs.push_back(j);
        }
    }
    return outputs;
}

/// Returns x as the matrix X.
MatrixXd matrix_of(const BilinearProjection& p, const float* x) {
    MatrixXd X(p.d_w, p.d_v);
    for (int i = 0; i < p.d_in; i++) {
        const int from = p.source.empty() ? i : p.source[i];
        X(i / p.d_v, i % p.d_v) = from < 0 ? -x[-1 - from] : x[from];
    }
    return X;
}

/// Computes prod_j (1 + m^2 lambda_j)^(-1/2).
double product(const ArrayXd& lambda, double m) {
    return 1 / std::sqrt((1 + m * m * lambda).prod());
}

double series_of(const ArrayXd& lambda) {
    return expected_distance([&](double m) { return product(lambda, m); });
}

/// The expected normalised Hamming distance at a phase of variance s, by SIK's
/// series.
double gaussian_share(double s) {
    return expected_distance(
            [&](double m) { return std::exp(-m * m * s / 2); });
}

enum class Form { spread, rank_one, one_row };

/// Two random matrices at a distance of `length`. Their difference has many
/// singular values of similar size, or only one.
struct Pair {
    std::vector<float> x, y;

    Pair(int d_w, int d_v, double length, Form form, uint64_t seed)
            : x(normal_vectors(d_w, d_v, seed, 0.1)), y(x) {
        const std::vector<float> a = normal_vectors(1, d_w, seed + 2);
        std::vector<float> diff = normal_vectors(d_w, d_v, seed + 1);
        for (int k = 0; k < d_w * d_v; k++) {
            if (form == Form::rank_one) {
                diff[k] = a[k / d_v] * diff[k % d_v];
            } else if (form == Form::one_row && k >= d_v) {
                diff[k] = 0;
            }
        }
        length /= faiss_ext_test::length(diff.data(), diff.size());
        for (size_t k = 0; k < x.size(); k++) {
            y[k] += float(length * diff[k]);
        }
    }

    /// Returns X - Y.
    MatrixXd difference(const BilinearProjection& p) const {
        return matrix_of(p, x.data()) - matrix_of(p, y.data());
    }

    /// Returns the eigenvalues of (X - Y)(X - Y)', the largest first.
    ArrayXd eigenvalues(const BilinearProjection& p) const {
        const Eigen::JacobiSVD<MatrixXd> svd(difference(p));
        return svd.singularValues().array().square();
    }

    /// Returns the expected normalised Hamming distance.
    double share(const Hash& hash) const {
        return hash.expected_hamming_of_pair(x.data(), y.data()) / hash.nbits;
    }
};

const BilinearProjection& bilinear_of(const KernelHash& hash) {
    return projection_of<BilinearProjection>(hash);
}

/// A lane adds at most d terms, at most 4 additions join the lanes, and a term
/// has one rounding (none with fused multiply-adds). The bits are the same as
/// for the pair alone, and memory after the results stays unchanged.
TEST(SelectedDots, EveryTarget) {
    for (size_t i = 0; i < 300; i++) {
        const size_t d = std::array{16, 48, 256}[i / 100];
        const size_t rows = i / 10 % 10, count = i % 10;
        const size_t t_stride = d + rows, y_stride = count + 3;
        const std::vector<float> v = normal_vectors(9, d, d);
        const std::vector<float> t = normal_vectors(rows + 1, t_stride, d + 1);
        std::vector<int32_t> ids;
        for (size_t j = 0; j < count; j++) {
            ids.push_back(int32_t(j * 5 % 7 + (j == 3 ? 2 : 0)));
        }
        ids.resize(count + simd::ids_ahead);
        const auto dots = [&](size_t r, size_t n, size_t j, size_t c) {
            std::vector<float> y(n * y_stride, 42);
            const float* from = &t[r * t_stride];
            const int32_t* id = &ids[j];
            float* to = y.data();
            simd::selected_dots(
                    n, from, t_stride, 2, c, id, v.data(), d, to, y_stride);
            return y;
        };
        for (int64_t target : targets()) {
            SCOPED_TRACE(hwy::TargetName(target));
            const Target guard(target);
            const std::vector<float> y = dots(0, rows, 0, count);
            for (size_t at = 0; at < y.size(); at++) {
                const size_t r = at / y_stride, j = at % y_stride;
                if (j >= count) {
                    ASSERT_EQ(y[at], 42);
                    continue;
                }
                double sum = 0, absolute = 0;
                for (size_t k = 0; k < d; k++) {
                    const double term =
                            2 * double(t[r * t_stride + k]) * v[ids[j] * d + k];
                    sum += term;
                    absolute += std::abs(term);
                }
                const double units = 1.001 * (double(d) + 5);
                ASSERT_NEAR(y[at], sum, units * float_unit * absolute);
                ASSERT_EQ(y[at], dots(r, 1, j, 1)[0]);
            }
        }
    }
}

// matrix() equals w v' of the definition. The error of its w is only the
// rounding of the length, and the product with v is rounded once more. apply
// gives the product with the matrix up to rounding, and the same bits in every
// batch.
//
// The error of a dot product of N terms, in any order, is (N + 4) units of the
// product of the lengths. N is the padded d_v, and for a dense w, d_w <= 256.
// The error of a level of butterflies is a unit of the length of the result.
TEST(BilinearProjection, MatrixAndProducts) {
    for (auto [d_w, d_v, k, m, structured] :
         {std::tuple(1, 40, 24, 1, false),
          {40, 1, 150, 2, true},
          {16, 16, 1, 1, true},
          {16, 16, 150, 2, false},
          {33, 17, 150, 2, false},
          {33, 17, 40, 7, true},
          {250, 16, 24, 1, false},
          {250, 16, 150, 2, true}}) {
        SCOPED_TRACE(std::to_string(d_w) + " rows, k = " + std::to_string(k));
        const BilinearProjection p(d_w, d_v, k, m, structured, 3, 1, d_w < 30);
        const size_t D = block_size(p), d = p.d_in, n = 3;
        ASSERT_EQ(p.d_in, d_w * d_v);
        ASSERT_EQ(p.source.empty(), d_w >= 30);
        const std::vector<float> A = p.matrix(), x = normal_vectors(n, d, k);
        ASSERT_EQ(A.size(), k * d);
        std::vector<double> products(n * k), bounds(n * k);
        for (int j = 0; j < k; j++) {
            const VectorXd w = row_w(p, p.pair_w[j]);
            const Eigen::VectorXf v = Eigen::Map<const Eigen::VectorXf>(
                    &p.V[size_t(p.pair_v[j]) * p.padded_d_v()], d_v);
            const MatrixXd outer = w * v.cast<double>().transpose();
            const MatrixXd error = matrix_of(p, &A[j * d]) - outer;
            ASSERT_TRUE((error.array().abs() <=
                         2.01 * float_unit * outer.array().abs())
                                .all());
            const double of_w = structured
                    ? p.norms[p.pair_w[j]] * std::pow(D, 1.5)
                    : w.norm();
            const double units = p.padded_d_v() + 7 +
                    (structured ? 3 * std::log2(D) + 2 : d_w + 5);
            for (size_t i = 0; i < n; i++) {
                products[i * k + j] = dot_product(&A[j * d], &x[i * d], d);
                bounds[i * k + j] = 1.001 * float_unit * units * of_w *
                        v.norm() * length(&x[i * d], d);
            }
        }
        for (int64_t target : targets()) {
            const Target guard(target);
            const std::vector<float> y = applied(p, x);
            for (size_t at = 0; at < n * k; at++) {
                ASSERT_NEAR(y[at], products[at], bounds[at]);
            }
            for (size_t i = 0; i < n; i++) {
                ASSERT_TRUE(same_bits(
                        applied(p, rows(x, d, i, n)), rows(y, k, i, n)));
            }
        }
    }
}

TEST(BilinearProjection, PairsAreDifferentAndInRange) {
    for (int k : {1, 2, 24, 64, 400, 6400}) {
        for (int m : {1, 2, 5}) {
            const BilinearProjection p(4, 5, k, m, true, k + m);
            EXPECT_EQ(p.k_w, int(std::ceil(m * std::sqrt(double(k)) - 1e-9)));
            EXPECT_EQ(p.k_v, m > 1 ? p.k_w : (k + p.k_w - 1) / p.k_w);
            ASSERT_EQ(int(p.pair_w.size()), k);
            ASSERT_EQ(int(p.pair_v.size()), k);
            std::set<std::pair<int, int>> pairs;
            std::vector<int> of_w(p.k_w), of_v(p.k_v);
            for (int j = 0; j < k; j++) {
                pairs.emplace(p.pair_w[j], p.pair_v[j]);
                of_w.at(p.pair_w[j])++;
                of_v.at(p.pair_v[j])++;
            }
            EXPECT_EQ(int(pairs.size()), k);
            // draws without replacement, for which Hoeffding's bound holds
            // (1963, section 6)
            for (const std::vector<int>& counts : {of_w, of_v}) {
                const double share = 1.0 / double(counts.size());
                for (int n : counts) {
                    EXPECT_TRUE(plausible(n, k, share, share));
                }
            }
        }
    }
}

// Given all earlier pairs, the next one is any of the K - j that are left, and
// at most k_v - 1 of them share the w of the previous one. By Azuma's
// inequality for sums of indicators minus their conditional expectations, the
// square of the excess is at most k log(1 / p) / 2. In order of w, almost all
// neighbours would share one.
TEST(BilinearProjection, NeighboursShareNothingInParticular) {
    for (auto [k, m] : {std::pair<int, int>{6400, 1}, {10000, 2}}) {
        const BilinearProjection p(3, 3, k, m, true, 4);
        const double K = double(p.k_w) * p.k_v;
        for (bool right : {false, true}) {
            const std::vector<int32_t>& id = right ? p.pair_v : p.pair_w;
            const int others = (right ? p.k_w : p.k_v) - 1;
            int shared = 0, up = 0;
            double expected = 0;
            for (int j = 1; j < k; j++) {
                shared += id[j] == id[j - 1];
                up += id[j] > id[j - 1];
                expected += std::min(1.0, others / (K - j));
            }
            const double slack = std::sqrt(-log_failure() * k / 2);
            EXPECT_LE(shared, expected + slack) << k << ", " << m;
            EXPECT_LT(expected + slack, 0.15 * k);
            // random order: the number of ascents is balanced by the same bound
            // in both directions, with neighbours taken in pairs that do not
            // overlap
            EXPECT_NEAR(up, (k - 1 - shared) / 2.0, 3 * slack);
        }
    }
}

// Entries are normal numbers; v is scaled. Rows, and w and v, are not
// correlated, as shown by means of products of signs.
TEST(BilinearProjection, EntriesAreNormal) {
    const double scale = 0.37;
    const BilinearProjection p(40, 50, 10000, 10, false, 6, scale);
    std::vector<double> v;
    for (size_t i = 0; i < p.V.size(); i++) {
        if (i % p.padded_d_v() < 50) {
            v.push_back(p.V[i] / scale);
        } else {
            ASSERT_EQ(p.V[i], 0);
        }
    }
    EXPECT_TRUE(follows({p.W.begin(), p.W.end()}, normal_cdf));
    EXPECT_TRUE(follows(v, normal_cdf));
    double wv = 0, rows = 0;
    const size_t n = p.W.size() - 40;
    for (size_t i = 0; i < n; i++) {
        rows += (p.W[i] < 0) == (p.W[i + 40] < 0) ? 1 : -1;
    }
    for (int i = 0; i < p.k_w; i++) {
        wv += (p.W[i * 40] < 0) == (v[i * 50] < 0) ? 1 : -1;
    }
    EXPECT_NEAR(rows / double(n), 0, hoeffding(double(n) / 2, 2));
    EXPECT_NEAR(wv / p.k_w, 0, hoeffding(p.k_w, 2));
}

TEST(BilinearProjection, LengthsAreChi) {
    for (int d_w : {28, 300}) {
        const BilinearProjection p(d_w, 2, 10000, 30, true, 6);
        const int D = int(block_size(p));
        std::vector<double> squares;
        for (float norm : p.norms) {
            EXPECT_GT(norm, 0);
            squares.push_back(double(norm) * norm * std::pow(D, 3));
        }
        EXPECT_TRUE(follows(
                squares, [&](double x) { return chi_square_cdf(x, D); }));
        // blocks have different signs
        double ones = 0;
        for (int i = 0; i < 3 * D; i++) {
            ASSERT_EQ(std::abs(p.signs[i]), 1);
            ones += p.signs[i] == p.signs[i + 3 * D];
        }
        EXPECT_TRUE(plausible(ones, 3 * D, 0.5, 0.5));
    }
}

TEST(BilinearProjection, SeedsAndFactors) {
    const std::vector<float> x = normal_vectors(5, 42, 1);
    for (bool structured : {false, true}) {
        const auto make = [&](int64_t seed, double factor) {
            return BilinearProjection(
                    6, 7, 100, 3, structured, seed, factor, structured);
        };
        const BilinearProjection p = make(5, 0.5);
        const std::vector<float> y = applied(p, x);
        EXPECT_TRUE(same_bits(applied(make(5, 0.5), x), y));
        for (int64_t seed : {6L, 5L + (1L << 32), -5L, 0L}) {
            const BilinearProjection other = make(seed, 0.5);
            EXPECT_NE(other.V, p.V);
            EXPECT_NE(other.pair_w, p.pair_w);
            EXPECT_TRUE(other.source != p.source || !structured);
            EXPECT_TRUE(structured ? other.norms != p.norms : other.W != p.W);
        }
        EXPECT_TRUE(same_bits(applied(make(5, 1), x), scaled(y, 2))); // exactly
    }
}

// Shuffling keeps each component once, in random order and with random signs.
// The number of components that move down is nearly Gaussian for a random
// order, with variance (d + 1) / 12.
TEST(BilinearProjection, Shuffle) {
    const int d = 40000;
    const BilinearProjection p(200, 200, 8, 1, true, 1, 1, true);
    std::vector<bool> seen(d);
    double negative = 0, down = 0;
    for (int i = 0; i < d; i++) {
        const int from = p.source[i] < 0 ? -1 - p.source[i] : p.source[i];
        seen.at(from) = true;
        negative += p.source[i] < 0;
        down += from > i;
    }
    EXPECT_NEAR(down, (d - 1) / 2.0, Moments::beyond * std::sqrt(d / 12.0));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), d);
    EXPECT_TRUE(plausible(negative, d, 0.5, 0.5));
}

TEST(BilinearProjection, NearlySquare) {
    EXPECT_EQ(BilinearProjection::nearly_square(1000003), 1); // a prime
    EXPECT_EQ(BilinearProjection::nearly_square(1 << 30), 1 << 15);
    for (int d = 1; d < 500; d++) {
        int best = 1;
        for (int s = 1; s * s <= d; s++) {
            best = d % s == 0 ? s : best;
        }
        EXPECT_EQ(BilinearProjection::nearly_square(d), best) << d;
    }
}

// Memory is as stated in the header, apart from the object itself and the
// padding.
TEST(BilinearProjection, Memory) {
    for (bool structured : {false, true}) {
        const BilinearProjection p(100, 160, 10000, 5, structured, 1);
        const double k_w = p.k_w, k_v = p.k_v;
        const double numbers =
                (structured ? 4 * k_w + 3 * 128 : 100 * k_w) + 160 * k_v;
        EXPECT_LE(p.memory(), 4 * numbers + 24 * 10000 + 4096);
        EXPECT_GE(p.memory(), 4 * (p.V.size() + 2 * 10000));
    }
}

// Agrees with brute force plus a bound of the tail, to 1e-9 as the header
// promises.
TEST(Series, AgreesWithBruteForce) {
    for (int r : {1, 2, 15}) {
        for (double s : {1e-8, 1e-4, 0.01, 0.3, 1.0, 4.0, 100.0, 1e6}) {
            const ArrayXd lambda = ArrayXd::Constant(r, s / r);
            long double sum = 0;
            double k = 1, m = 0;
            while (m < 100000 && k > 1e-18) {
                m++;
                k = std::pow(1 + m * m * s / r, -0.5 * r);
                sum += k / (4 * m * m - 1);
            }
            const double factor = 8 / (pi * pi), tail = k / (4 * m + 2);
            const double rest = double(0.5L - sum), share = series_of(lambda);
            EXPECT_GE(share, factor * (rest - tail) - 1e-9) << r << ", " << s;
            EXPECT_LE(share, factor * rest + 1e-9) << r << ", " << s;
        }
    }
    for (double s : {1e-8, 1e-4, 0.01, 1.0, 100.0}) {
        const auto [low, high] = series({"gaussian"}, std::sqrt(s));
        EXPECT_NEAR(gaussian_share(s), (low + high) / 2, high - low + 1e-9);
    }
}

// k_b and the expected distance, computed from the singular values of X - Y.
TEST(BilinearShiftInvariantHash, KernelOfAPair) {
    const double gamma = 1.7;
    for (auto [d_w, d_v, shuffle] :
         {std::tuple(1, 6, false), {6, 1, true}, {5, 9, true}, {9, 5, false}}) {
        const Hash hash(d_w, d_v, 64, gamma, 5, true, 1234, shuffle);
        for (double length : {0.01, 0.3, 1.0, 3.0}) {
            const Form form = length == 1 ? Form::rank_one : Form::spread;
            const Pair pair(d_w, d_v, length, form, 5);
            const float *x = pair.x.data(), *y = pair.y.data();
            const ArrayXd lambda = gamma * pair.eigenvalues(bilinear_of(hash));
            const double k = hash.bilinear_kernel(x, y);
            EXPECT_NEAR(k, product(lambda, 1), 1e-12);
            EXPECT_EQ(k, hash.bilinear_kernel(y, x));
            EXPECT_NEAR(pair.share(hash), series_of(lambda), 1e-9);
            EXPECT_EQ(hash.bilinear_kernel(x, x), 1);
            EXPECT_NEAR(hash.expected_hamming_of_pair(x, x), 0, 1e-7);
        }
    }
}

// Lemma 1 and theorem 2 under their conditions: sqrt(gamma) |x| and sqrt(gamma)
// |y| are at most 0.8, so that the difference is at most 1.6, and no eigenvalue
// exceeds 0.28 times the sum of the others.
TEST(BilinearShiftInvariantHash, BoundsOfThePaper) {
    const double gamma = 9;
    for (auto [d_w, d_v] : {std::pair<int, int>{15, 60}, {25, 25}, {40, 20}}) {
        const Hash hash(d_w, d_v, 64, gamma, 5, false, 1234, false);
        for (double r : {0.01, 0.1, 0.5, 0.8, 1.2, 1.599}) {
            const Pair pair(
                    d_w, d_v, r / std::sqrt(gamma), Form::spread, 100 + d_w);
            const ArrayXd lambda = gamma * pair.eigenvalues(bilinear_of(hash));
            ASSERT_LE(lambda.sum(), 1.6 * 1.6);
            ASSERT_LE(lambda[0], 0.28 * (lambda.sum() - lambda[0]));
            const double u = std::exp(-lambda.sum() / 2);
            const double k = hash.bilinear_kernel(pair.x.data(), pair.y.data());
            EXPECT_GE(k, u * (1 - 1e-12));
            EXPECT_LE(k, std::pow(u, 0.79) * (1 + 1e-12));
            const double h = pair.share(hash);
            EXPECT_GE(h, 4 / (pi * pi) * (1 - std::pow(u, 0.79)) - 1e-9);
            EXPECT_LE(h, 0.5 * std::sqrt(1 - u) + 1e-9);
            EXPECT_LE(h, 4 / (pi * pi) * (1 - 2 * u / 3) + 1e-9);
        }
    }
}

// The bounds hold for every difference. One eigenvalue, and equal ones, attain
// them.
TEST(BilinearShiftInvariantHash, HammingBounds) {
    const double gamma = 2;
    const Hash hash(5, 9, 64, gamma, 5, true, 1234, false);
    for (double length : {0.01, 0.3, 1.0, 3.0}) {
        const double s = gamma * length * length;
        const auto [lower, upper] = hash.hamming_bounds(std::exp(-s / 2));
        for (Form form : {Form::spread, Form::rank_one}) {
            const double h = 64 * Pair(5, 9, length, form, 5).share(hash);
            EXPECT_GE(h, lower * (1 - 1e-6));
            EXPECT_LE(h, upper * (1 + 1e-6));
            if (form == Form::rank_one) {
                EXPECT_NEAR(h, lower, 1e-5 * h);
            }
        }
        const double equal = series_of(ArrayXd::Constant(5, s / 5));
        EXPECT_NEAR(upper, 64 * equal, 1e-6 * upper);
        EXPECT_LE(upper, 64 * 0.5 * std::sqrt(1 - std::exp(-s / 2)));
    }
    EXPECT_NEAR(hash.hamming_bounds(0).first, 64 * 4 / (pi * pi), 1e-6);
    EXPECT_NEAR(hash.hamming_bounds(1).second, 0, 1e-6);
    for (double bad : {-0.1, 1.1, double(NAN)}) {
        EXPECT_TRUE(throws([&] { hash.hamming_bounds(bad); }, "kernel value"));
    }
}

/// Returns the covariance for a difference with these eigenvalues.
double covariance_of(const ArrayXd& lambda) {
    const int q = int(lambda.size());
    const Hash hash(q, q, 64, 1, 5, false, 1234, false);
    std::vector<float> x(q * q), zero(q * q);
    for (int i = 0; i < q; i++) {
        x[i * q + i] = float(std::sqrt(lambda[i]));
    }
    return hash.covariance_of_pair(x.data(), zero.data());
}

// With a single eigenvalue s, bits differ given w with the probability of SIK
// at a phase of variance s z^2, z normal, and the covariance is the variance of
// this probability. The trapezoidal rule has an error of less than 1e-6 at a
// kink of slope 1. With many eigenvalues, lemma 5 is evaluated term by term.
TEST(BilinearShiftInvariantHash, CovarianceOfAPair) {
    for (double s : {1e-4, 0.1, 0.64, 2.25, 30.0}) {
        double one = 0, two = 0;
        const double step = 0.003;
        for (double z = 0; z < 8; z += step) {
            const double share = gaussian_share(s * z * z);
            const double weight = (z > 0 ? 2 : 1) * step *
                    std::exp(-z * z / 2) / std::sqrt(2 * pi);
            one += weight * share;
            two += weight * share * share;
        }
        const double found = covariance_of(ArrayXd::Constant(1, s));
        EXPECT_NEAR(found, two - one * one, 3e-6) << s;
        EXPECT_GT(found, 0);
    }
    for (double s : {0.1, 1.0, 4.0, 100.0}) {
        const ArrayXd lambda = ArrayXd::LinSpaced(9, 0.5, 1.5) * s / 9;
        double sum = 0;
        for (int m = 1; m <= 300; m++) {
            for (int n = 1; n <= 300; n++) {
                sum += (product(lambda, std::hypot(m, n)) -
                        product(lambda, m) * product(lambda, n)) /
                        ((4.0 * m * m - 1) * (4.0 * n * n - 1));
            }
        }
        EXPECT_NEAR(covariance_of(lambda), 64 / std::pow(pi, 4) * sum, 1e-6);
    }
    const Hash hash(2, 3, 64, 1);
    const std::vector<float> x = normal_vectors(1, 6, 1);
    EXPECT_NEAR(hash.covariance_of_pair(x.data(), x.data()), 0, 1e-6);
}

// Theorem 3 under the conditions of lemma 1, for the most uneven spectra of a
// given sum and for even ones.
TEST(BilinearShiftInvariantHash, CovarianceBound) {
    for (double s : {1e-3, 0.05, 0.3, 0.64, 1.0, 1.5, 2.0, 2.56}) {
        const double bound = Hash::covariance_bound(std::exp(-s / 2));
        const double most = 0.28 / 1.28 * s; // 0.28 times the others
        ArrayXd uneven = ArrayXd::Constant(5, most);
        uneven[4] = s - 4 * most;
        EXPECT_LE(covariance_of(uneven), bound) << s;
        EXPECT_LE(covariance_of(ArrayXd::Constant(5, s / 5)), bound) << s;
        EXPECT_LE(covariance_of(ArrayXd::Constant(20, s / 20)), bound) << s;
    }
    for (double u = 0; u <= 1; u += 0.125) {
        double a = 0, b = 0; // sums to 1 / 2 if u is 1
        for (int m = 1; m < 1000; m++) {
            a += std::pow(u, 0.79 * m * m) / (4.0 * m * m - 1);
            b += std::pow(u, double(m) * m) / (4.0 * m * m - 1);
        }
        const double covariance = 64 / std::pow(pi, 4) * (a * a - b * b);
        EXPECT_NEAR(Hash::covariance_bound(u), covariance, 2e-9);
    }
    for (double bad : {-0.1, 1.1, double(NAN)}) {
        EXPECT_TRUE(
                throws([&] { Hash::covariance_bound(bad); }, "kernel value"));
    }
}

// Given all w, bits of different v are independent and differ with the
// probability of SIK at the distance |(X - Y)' w|. Hoeffding's bound for trials
// that are not alike applies for every distribution of w.
//
// Distribution of w: blocks of w are independent. Components of a structured w
// are not quite normal numbers; normalised distances move by less than 0.002,
// even for single rows of X, which see a single component.
TEST(BilinearShiftInvariantHash, HammingFollowsTheSeries) {
    const int nbits = 8192;
    const double gamma = 4;
    for (auto [d_w, d_v, structured] :
         {std::tuple(28, 4, true), {2, 4, true}, {15, 15, false}}) {
        const Hash hash(d_w, d_v, nbits, gamma, 50, structured, 5, false);
        const BilinearProjection& p = bilinear_of(hash);
        const std::vector<int> outputs = outputs_of_different_v(p);
        const size_t D = block_size(p), blocks = p.k_w / D;
        MatrixXd W(p.k_w, d_w);
        for (int j = 0; j < p.k_w; j++) {
            W.row(j) = row_w(p, j);
        }
        const double n = double(outputs.size());
        for (double length : {0.2, 0.5, 10.0}) {
            for (Form form : {Form::spread, Form::rank_one, Form::one_row}) {
                SCOPED_TRACE(
                        std::to_string(d_w) + " rows, length " +
                        std::to_string(length));
                const Pair pair(d_w, d_v, length, form, d_w);
                const MatrixXd WX = W * pair.difference(p);
                std::vector<double> share, means(blocks);
                for (int j = 0; j < p.k_w; j++) {
                    const double square = WX.row(j).squaredNorm();
                    share.push_back(gaussian_share(gamma * square));
                }
                const std::vector<bool> differ =
                        differing_bits(hash, pair.x, pair.y);
                double count = 0, given = 0;
                for (int j : outputs) {
                    count += differ[j];
                    given += share[p.pair_w[j]];
                }
                EXPECT_NEAR(count / n, given / n, hoeffding(n));
                for (size_t j = 0; j < blocks * D; j++) {
                    means[j / D] += share[j] / double(D);
                }
                const Moments m(means);
                EXPECT_NEAR(m.mean, pair.share(hash), m.mean_error() + 0.002);
                EXPECT_LT(m.mean_error(), 0.03);
                if (!structured) { // independent w
                    const Moments given_w(share);
                    EXPECT_NEAR(
                            given_w.variance,
                            hash.covariance_of_pair(
                                    pair.x.data(), pair.y.data()),
                            given_w.variance_error() + 1e-6);
                }
            }
        }
    }
}

// K is exp(-s / 2), and the r equal eigenvalues are s / r. |dh / dk_b| is at
// least 8 / (3 pi^2), and |dk_b / dK| at least 1 / (1 + s / r). h is a sum of
// fewer than 10,000 terms, whose rounding moves it by at most 10,000 / 2^53,
// and terms below 1e-16 are dropped.
TEST(BilinearShiftInvariantHash, EstimatesInvertExpectedDistances) {
    const double error = 10000 * 0x1p-53 + 1e-16, most = 64 * 4 / (pi * pi);
    for (auto [d_w, d_v] : {std::pair<int, int>{1, 10}, {9, 2}, {28, 28}}) {
        const int r = std::min(d_w, d_v);
        const Hash hash(d_w, d_v, 64, 0, 5, true, 1234, false);
        for (double k : {1e-12, 0.1, 0.5, 0.95, 1 - 1e-6}) {
            SCOPED_TRACE(std::to_string(r) + ", K = " + std::to_string(k));
            const double h = hash.expected_hamming(k), s = -2 * std::log(k);
            EXPECT_NEAR(h / 64, series_of(ArrayXd::Constant(r, s / r)), 1e-9);
            const double slope = 3 * pi * pi / 8 * (1 + s / r);
            EXPECT_NEAR(hash.kernel_estimate(h), k, slope * error);
        }
        EXPECT_NEAR(hash.expected_hamming(0), most, 1e-12);
        EXPECT_EQ(hash.kernel_estimate(0), 1);
        EXPECT_EQ(hash.kernel_estimate(64), 0);
    }
}

TEST(BilinearShiftInvariantHash, Gamma) {
    const int d = 63, n = 200;
    const std::vector<float> x = normal_vectors(n, d, 1, 0.3);
    const std::vector<float> twice = scaled(x, 2);
    for (bool structured : {false, true}) {
        // 4 gamma is 2 x, exactly so in binary
        const Hash four(7, 9, 256, 4, 5, structured),
                one(7, 9, 256, 1, 5, structured);
        EXPECT_EQ(codes_of(four, x), codes_of(one, twice));
        EXPECT_NEAR(
                four.bilinear_kernel(&x[0], &x[d]),
                one.bilinear_kernel(&twice[0], &twice[d]),
                1e-13);
    }
    // the automatic bandwidth is SIK's, and works as if it had been given
    Hash hash(7, 9, 64);
    const auto pair = [&] { hash.bilinear_kernel(&x[0], &x[d]); };
    const auto share = [&] { hash.expected_hamming_of_pair(&x[0], &x[d]); };
    EXPECT_TRUE(throws(pair, "not trained"));
    EXPECT_TRUE(throws(share, "not trained"));
    hash.train(n, x.data());
    ShiftInvariantHash sik(d, 64, GaussianKernel(0));
    sik.train(n, x.data());
    EXPECT_EQ(hash.kernel->gamma, sik.kernel->gamma);
    EXPECT_GT(hash.kernel->gamma, 0);
    const Hash given(7, 9, 64, hash.kernel->gamma);
    EXPECT_EQ(codes_of(given, x), codes_of(hash, x));
    const std::vector<float> bad(d, NAN);
    EXPECT_TRUE(throws([&] { hash.bilinear_kernel(&x[0], bad.data()); }));
}

TEST(Strings, Good) {
    using Case = std::tuple<std::string, int, std::string>;
    for (const auto& [text, d, expected] :
         {Case("BSIK64(gamma=1)", 63, "7x9 m=5 structured shuffled"),
          {"BSIK64(auto,gamma=1)", 64, "8x8 m=5 structured shuffled"},
          {"BSIK8(6x2,m=2,gamma=1,w=dense)", 12, "6x2 m=2 shuffled"},
          {"BSIK8(shape=2x6,gamma=1,shuffle=0)", 12, "2x6 m=5 structured"},
          {"RHBE24(proj=bilinear,shape=auto,center=1)",
           63,
           "7x9 m=5 structured shuffled"},
          {"RHBE8(proj=bilinear,shape=6x2,m=7,w=dense,shuffle=0)",
           12,
           "6x2 m=7"}}) {
        const auto hash = kernel_hash_factory(d, text);
        const BilinearProjection& p = bilinear_of(*hash);
        EXPECT_EQ(
                std::to_string(p.d_w) + "x" + std::to_string(p.d_v) +
                        " m=" + std::to_string(p.m) +
                        (p.structured ? " structured" : "") +
                        (p.source.empty() ? "" : " shuffled"),
                expected)
                << text;
        kernel_hash_factory(d, hash->description())->check_identical(*hash);
    }
    kernel_hash_factory(784, "BSIK72(56x14,m=2,gamma=.25,seed=9,w=dense)")
            ->check_identical(Hash(56, 14, 72, 0.25, 2, false, 9));
    kernel_hash_factory(784, "BSIK64")->check_identical(Hash(28, 28, 64));
}

TEST(Strings, Bad) {
    for (const auto& [text, name] :
         {std::pair<std::string, std::string>("BSIK64(28x29)", "812"),
          {"BSIK64(65536x65536)", "4294967296"},
          {"BSIK64(0x5)", "'0x5'"},
          {"BSIK64(28x)", "'28x'"},
          {"BSIK64(28x28x1)", "'28x28x1'"},
          {"BSIK64(-28x-28)", "'-28x-28'"},
          {"BSIK64(28x28,28x28)", "'28x28'"},
          {"BSIK64(m=1001)", "'1001' of m"},
          {"BSIK0", "0"},
          {"BSIK64(w=fast)", "structured, dense"},
          {"BSIK64(proj=dense)", "'proj'"},
          {"RHBE64(shape=28x28)", "'shape'"},
          {"RHBE64(proj=dense,m=5)", "'m'"},
          {"RHBE64(proj=fast)", "bilinear"}}) {
        EXPECT_TRUE(
                throws([&text = text] { kernel_hash_factory(784, text); },
                       text,
                       name));
    }
    for (const auto& [rows, columns, bits, factor, name] :
         {std::tuple(0, 3, 8, 1, "0 x 3"),
          {3, -1, 8, 1, "3 x -1"},
          {1 << 16, 1 << 16, 8, 1, "65536 x 65536"},
          {3, 3, 0, 1, "0"},
          {3, 3, 8, 0, "m "},
          {3, 3, 8, 1001, "1001"}}) {
        const int d_w = rows, d_v = columns, k = bits, m = factor;
        EXPECT_TRUE(throws(
                [=] { BilinearProjection(d_w, d_v, k, m, true, 1); }, name));
        EXPECT_TRUE(throws([=] { Hash(d_w, d_v, k, 1, m); }, name));
    }
    EXPECT_NO_THROW(BilinearProjection(3, 3, 8, 1000, true, 1));
    EXPECT_TRUE(throws([] { Hash(3, 3, 64, -1); }, "-1"));
}

// Damaged files that do not fit are refused.
TEST(Files, Damage) {
    const BilinearProjection p(3, 4, 16, 2, true, 1, 1, true);
    const auto read = [](const BilinearProjection& damaged) {
        faiss::VectorIOWriter writer;
        write_fields(damaged, &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        // previous content is replaced
        BilinearProjection read(3, 3, 9, 1, false, 1);
        read_fields(read, &reader);
        return read;
    };
    const std::vector<float> x = normal_vectors(5, 12, 1);
    EXPECT_TRUE(same_bits(applied(read(p), x), applied(p, x)));
    BilinearProjection damaged = p;
    const auto is_refused = [&](auto& field, auto bad) {
        const auto kept = std::exchange(field, bad);
        EXPECT_TRUE(throws([&] { read(damaged); })) << bad;
        field = kept;
    };
    for (int bad : {-1, p.k_w, 1 << 30}) {
        is_refused(damaged.pair_w[7], bad);
        is_refused(damaged.pair_v[7], bad);
    }
    for (int bad : {12, -13, 1 << 30}) {
        is_refused(damaged.source[7], bad);
    }
    is_refused(damaged.signs[7], 0.5f);
    is_refused(damaged.norms[7], NAN);
    is_refused(damaged.k_v, p.k_v - 1);
    is_refused(damaged.m, 0);
    is_refused(damaged.d_w, 4);
    read(damaged);

    // a projection of another shape
    Hash hash(3, 4, 16, 1);
    hash.projection = Hash(4, 3, 16, 1).projection;
    EXPECT_TRUE(throws([&] { reread(hash); }, "shape"));
}

} // namespace
