// Bilinear projections and the codes made from them: the inner loops under
// every instruction set, the distribution of the random numbers, and the theory
// of Kim and Choi 2015.

#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/projections/BilinearProjection.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/impl/io.h>

#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "core/field_files.h"
#include "hashes/hamming_series.h"
#include "simd/bilinear.h"
#include "simd/hadamard.h"
#include "testing_data.h"
#include "testing_indexes.h"
#include "testing_targets.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using namespace testing_targets;
using faiss_ext_test::codes_of;
using faiss_ext_test::throws;
using testing_theory::float_unit;
using testing_theory::hoeffding;
using testing_theory::KernelCase;
using testing_theory::kolmogorov_smirnov;
using testing_theory::kolmogorov_smirnov_limit;
using testing_theory::log_failure;
using testing_theory::pi;
using testing_theory::plausible;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

BilinearProjection& projection_of(const ProjectionHash& hash) {
    return dynamic_cast<BilinearProjection&>(*hash.projection);
}

bool is_structured(const BilinearShiftInvariantHash& hash) {
    return hash.proj.w == ProjectionChoice::Rows::structured;
}

/// Sylvester's matrix of order d
double hadamard(size_t i, size_t j) {
    return std::popcount(i & j) % 2 ? -1 : 1;
}

/// y = H S_3 H S_2 H S_1 x with explicit matrices.
std::vector<double> rounds(
        size_t d,
        const float* signs,
        std::vector<double> x) {
    for (size_t round = 0; round < 3; round++) {
        std::vector<double> y(d);
        for (size_t i = 0; i < d; i++) {
            for (size_t j = 0; j < d; j++) {
                y[i] += hadamard(i, j) * signs[round * d + j] * x[j];
            }
        }
        x = y;
    }
    return x;
}

size_t padded_power(const BilinearProjection& p) {
    return std::max<size_t>(256, std::bit_ceil(size_t(p.d_w)));
}

/// w_j by explicit matrices: row j of H S_3 H S_2 H S_1, scaled.
std::vector<double> row_w(const BilinearProjection& p, size_t j) {
    if (!p.structured) {
        return std::vector<double>(
                p.W.begin() + j * p.d_w, p.W.begin() + (j + 1) * p.d_w);
    }
    const size_t D = padded_power(p);
    const float* signs = &p.signs[3 * D * (j / D)];
    std::vector<double> row(D);
    for (size_t k = 0; k < D; k++) {
        row[k] = hadamard(j % D, k);
    }
    for (int round = 2; round >= 0; round--) {
        for (size_t k = 0; k < D; k++) {
            row[k] *= signs[round * D + k];
        }
        if (round > 0) {
            std::vector<double> next(D);
            for (size_t i = 0; i < D; i++) {
                for (size_t k = 0; k < D; k++) {
                    next[i] += hadamard(i, k) * row[k];
                }
            }
            row = next;
        }
    }
    row.resize(p.d_w);
    for (double& v : row) {
        v *= p.norms[j];
    }
    return row;
}

/// Outputs of which no two share a w or a v: their pairs do not depend on the
/// values of w and v, so that (dense) these outputs are independent.
std::vector<int> independent_outputs(const BilinearProjection& p) {
    std::vector<bool> w(p.k_w), v(p.k_v);
    std::vector<int> outputs;
    for (int j = 0; j < p.d_out; j++) {
        if (!w[p.pair_w[j]] && !v[p.pair_v[j]]) {
            w[p.pair_w[j]] = v[p.pair_v[j]] = true;
            outputs.push_back(j);
        }
    }
    return outputs;
}

/// Outputs of which no two share a v: independent, given all w.
std::vector<int> outputs_of_different_v(const BilinearProjection& p) {
    std::vector<bool> v(p.k_v);
    std::vector<int> outputs;
    for (int j = 0; j < p.d_out; j++) {
        if (!v[p.pair_v[j]]) {
            v[p.pair_v[j]] = true;
            outputs.push_back(j);
        }
    }
    return outputs;
}

/// Couples of outputs that share a w, and nothing with the other couples.
std::vector<std::pair<int, int>> couples(const BilinearProjection& p) {
    std::vector<int> first(p.k_w, -1);
    std::vector<bool> done(p.k_w), v(p.k_v);
    std::vector<std::pair<int, int>> found;
    for (int j = 0; j < p.d_out; j++) {
        const int w = p.pair_w[j];
        if (done[w] || v[p.pair_v[j]]) {
            continue;
        }
        if (first[w] < 0) {
            first[w] = j;
        } else if (!v[p.pair_v[first[w]]]) {
            v[p.pair_v[j]] = v[p.pair_v[first[w]]] = true;
            done[w] = true;
            found.emplace_back(first[w], j);
        } else {
            first[w] = j;
        }
    }
    return found;
}

std::vector<float> apply(
        const BilinearProjection& p,
        size_t n,
        const std::vector<float>& x) {
    std::vector<float> y(n * p.d_out, nan_value);
    p.apply(n, x.data(), y.data());
    return y;
}

/** The outputs for one vector in double, from matrix(), and a bound on the
 * error of apply (u: unit roundoff; c: column of X; T = t_c, its product with
 * w; N: d_v padded).
 *
 * A dot product of N terms in any order errs by (N + 4) u of the sum of its
 * absolute terms. Dense: T errs by (d_w + 5) u sum |w_k x_kc| (runs of 256, d_w
 * <= 256), and an entry of matrix() by u. Structured: butterflies are
 * orthogonal but for a factor, and each level errs by u of the result, so that
 * T errs by (3 log2 D + 2) u |w| |x_c|_2, in D dimensions; the w in matrix()
 * are whole numbers up to a factor, and err by 2 u.
 */
struct ExactOutputs {
    std::vector<double> value, bound;

    ExactOutputs(
            const BilinearProjection& p,
            const std::vector<float>& A,
            const float* x) {
        const double N = p.padded_d_v(), D = double(padded_power(p));
        std::vector<double> length(p.d_v); // of the columns of X
        for (int k = 0; k < p.d_in; k++) {
            double& of_column = length[k % p.d_v];
            of_column = std::hypot(of_column, double(x[k]));
        }
        for (int j = 0; j < p.d_out; j++) {
            double sum = 0, absolute = 0;
            for (int k = 0; k < p.d_in; k++) {
                const double term = double(A[size_t(j) * p.d_in + k]) * x[k];
                sum += term;
                absolute += std::abs(term);
            }
            double error = (N + 4 + 3 + p.d_w + 5) * absolute;
            if (p.structured) {
                const double w = p.norms[p.pair_w[j]] * std::pow(D, 1.5);
                double vx = 0;
                for (int c = 0; c < p.d_v; c++) {
                    vx += std::abs(
                                  p.V[size_t(p.pair_v[j]) * p.padded_d_v() +
                                      c]) *
                            length[c];
                }
                error = (N + 4 + 3 + 3 * std::log2(D) + 2) * w * vx;
            }
            value.push_back(sum);
            bound.push_back(1.001 * float_unit * error);
        }
    }
};

/// 8/pi^2 sum (1 - k(m)) / (4 m^2 - 1) term by term, and what the tail may add.
template <class F>
std::pair<double, double> brute_force(F&& kernel, int limit = 200000) {
    long double sum = 0;
    double k = 1;
    int m = 0;
    while (m < limit && k > 1e-18) {
        m++;
        k = kernel(double(m));
        sum += k / (4.0 * m * m - 1);
    }
    const double factor = 8 / (pi * pi), tail = k / (4.0 * m + 2);
    const double rest = double(0.5L - sum);
    return {factor * (rest - tail) - 1e-12, factor * rest + 1e-12};
}

double product(const std::vector<double>& lambda, double m) {
    double p = 1;
    for (double v : lambda) {
        p /= std::sqrt(1 + m * m * v);
    }
    return p;
}

/// The expected share at a phase of variance s: SIK's series.
double gaussian_share(double s) {
    if (s == 0) {
        return 0;
    }
    const auto [low, high] =
            testing_theory::series(KernelCase{"gaussian"}, std::sqrt(s));
    return (low + high) / 2;
}

/// |(X - Y)' w|^2: the variance of w' (X - Y) v, given w
double variance_given(
        const std::vector<double>& w,
        const std::vector<float>& x,
        const std::vector<float>& y,
        int d_v) {
    double sum = 0;
    for (int c = 0; c < d_v; c++) {
        double t = 0;
        for (size_t k = 0; k < w.size(); k++) {
            t += w[k] * (double(x[k * d_v + c]) - y[k * d_v + c]);
        }
        sum += t * t;
    }
    return sum;
}

/// Eigenvalues of D D', by Jacobi rotations.
std::vector<double> gram_eigenvalues(
        const std::vector<float>& x,
        const std::vector<float>& y,
        int d_w,
        int d_v,
        double gamma) {
    std::vector<std::vector<double>> a(d_w, std::vector<double>(d_w));
    for (int i = 0; i < d_w; i++) {
        for (int j = 0; j < d_w; j++) {
            for (int c = 0; c < d_v; c++) {
                a[i][j] += gamma * (double(x[i * d_v + c]) - y[i * d_v + c]) *
                        (double(x[j * d_v + c]) - y[j * d_v + c]);
            }
        }
    }
    for (int sweep = 0; sweep < 30; sweep++) {
        for (int p = 0; p < d_w; p++) {
            for (int q = p + 1; q < d_w; q++) {
                const double t =
                        0.5 * std::atan2(2 * a[p][q], a[p][p] - a[q][q]);
                const double c = std::cos(t), s = std::sin(t);
                for (int k = 0; k < d_w; k++) {
                    const double b = a[p][k], e = a[q][k];
                    a[p][k] = c * b + s * e;
                    a[q][k] = -s * b + c * e;
                }
                for (int k = 0; k < d_w; k++) {
                    const double b = a[k][p], e = a[k][q];
                    a[k][p] = c * b + s * e;
                    a[k][q] = -s * b + c * e;
                }
            }
        }
    }
    std::vector<double> lambda;
    for (int i = 0; i < d_w; i++) {
        lambda.push_back(std::max(a[i][i], 0.0));
    }
    return lambda;
}

bool bit(const std::vector<uint8_t>& codes, size_t i, size_t nbits, size_t j) {
    return codes[i * nbits / 8 + j / 8] >> (j % 8) & 1;
}

/// Whether bit j of the first two codes differs.
bool differs(const std::vector<uint8_t>& codes, size_t nbits, size_t j) {
    return bit(codes, 0, nbits, j) != bit(codes, 1, nbits, j);
}

std::vector<float> joined(std::vector<float> x, const std::vector<float>& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
}

/// A pair of random matrices at a distance of `length`; if spread, of many
/// singular values of a size, else the difference has rank 1.
std::pair<std::vector<float>, std::vector<float>> pair_of(
        int d_w,
        int d_v,
        double length,
        bool spread,
        uint64_t seed) {
    const std::vector<float> x = normal_vectors(1, d_w * d_v, seed, 0.1);
    std::vector<float> diff = normal_vectors(1, d_w * d_v, seed + 1);
    if (!spread) {
        const std::vector<float> a = normal_vectors(1, d_w, seed + 2);
        for (int k = 0; k < d_w * d_v; k++) {
            diff[k] = a[k / d_v] * diff[k % d_v];
        }
    }
    double norm = 0;
    for (float v : diff) {
        norm += double(v) * v;
    }
    std::vector<float> y = x;
    for (int k = 0; k < d_w * d_v; k++) {
        y[k] += float(length / std::sqrt(norm) * diff[k]);
    }
    return {x, y};
}

double squared_distance(
        const std::vector<float>& x,
        const std::vector<float>& y) {
    double sum = 0;
    for (size_t k = 0; k < x.size(); k++) {
        sum += (double(x[k]) - y[k]) * (double(x[k]) - y[k]);
    }
    return sum;
}

std::vector<uint8_t> bytes_of(const KernelHash& hash) {
    faiss::VectorIOWriter writer;
    faiss_ext::write_VectorTransform(&hash, &writer);
    return writer.data;
}

std::unique_ptr<faiss::VectorTransform> from_bytes(
        const std::vector<uint8_t>& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    return faiss_ext::read_VectorTransform(&reader);
}

struct Shape {
    int d_w, d_v;
};

const std::vector<Shape> shapes = {
        {1, 1},
        {1, 40},
        {40, 1},
        {2, 3},
        {7, 9},
        {16, 16},
        {28, 28},
        {33, 17},
        {250, 16}};

class EveryTarget : public ::testing::TestWithParam<int64_t> {
   protected:
    Target guard{GetParam()};
};

} // namespace

// Whole numbers, for which every order of additions is exact; then real ones:
// a level of butterflies errs by one unit of the result, whose length is known,
// so that 3 log2 d levels err by 3 log2 d units of d^(3/2) |x|.
TEST_P(EveryTarget, HadamardRounds) {
    for (size_t d = 1; d <= 512; d *= 2) {
        const std::vector<float> noise = normal_vectors(3 * d, 1, d);
        std::vector<float> signs;
        for (float v : noise) {
            signs.push_back(v < 0 ? -1.0f : 1.0f);
        }
        const std::vector<float> x = normal_vectors(16, d, d + 1);
        const size_t stride = d % 3 == 1 ? 16 : 32;
        std::vector<float> side(16 * d), whole(16 * d);
        for (size_t i = 0; i < 16; i++) {
            for (size_t k = 0; k < d; k++) {
                side[16 * k + i] = x[i * d + k];
                // below 2^24 after three rounds: d^3 / 8, or one number alone
                whole[16 * k + i] = d <= 64
                        ? float(int((7 * k + 3 * i) % 9) - 4)
                        : float(k == i);
            }
        }
        std::vector<float> out(stride * d), out_whole(stride * d), work(16 * d);
        simd::hadamard_rounds_of_panel(
                d, signs.data(), side.data(), work.data(), out.data(), stride);
        simd::hadamard_rounds_of_panel(
                d,
                signs.data(),
                whole.data(),
                work.data(),
                out_whole.data(),
                stride);
        for (size_t i = 0; i < 16; i++) {
            std::vector<double> column(d), column_whole(d);
            double length = 0, grown = 0;
            for (size_t k = 0; k < d; k++) {
                column[k] = side[16 * k + i];
                column_whole[k] = whole[16 * k + i];
                length += column[k] * column[k];
            }
            column = rounds(d, signs.data(), column);
            column_whole = rounds(d, signs.data(), column_whole);
            const double bound = 1.001 * 3 * std::log2(double(d)) * float_unit *
                    std::pow(double(d), 1.5) * std::sqrt(length);
            for (size_t k = 0; k < d; k++) {
                ASSERT_NEAR(out[stride * k + i], column[k], bound) << d;
                ASSERT_EQ(out_whole[stride * k + i], column_whole[k]) << d;
                grown += double(out[stride * k + i]) * out[stride * k + i];
            }
            const double expected = length * std::pow(double(d), 3);
            EXPECT_NEAR(
                    std::sqrt(grown),
                    std::sqrt(expected),
                    std::sqrt(double(d)) * bound + 1e-12 * expected);
        }
    }
}

// A lane adds at most d terms, at most 4 additions join the lanes, and a term
// has one rounding (none with fused multiply-adds). What is behind the results
// stays.
TEST_P(EveryTarget, SelectedDots) {
    for (size_t d : {16, 32, 48, 256, 1024}) {
        const size_t nv = 9;
        const std::vector<float> v = normal_vectors(nv, d, d);
        for (size_t rows = 0; rows <= 9; rows++) {
            for (size_t count = 0; count <= 9; count++) {
                const size_t t_stride = d + rows, y_stride = count + 3;
                const std::vector<float> t =
                        normal_vectors(rows * t_stride + 1, 1, d + 1);
                std::vector<int32_t> ids;
                for (size_t j = 0; j < count; j++) {
                    ids.push_back(int32_t(j * 5 % 7 + (j == 3 ? 2 : 0)));
                }
                ids.resize(count + simd::ids_ahead);
                std::vector<float> y(rows * y_stride, 42);
                simd::selected_dots(
                        rows,
                        t.data(),
                        t_stride,
                        2,
                        count,
                        ids.data(),
                        v.data(),
                        d,
                        y.data(),
                        y_stride);
                for (size_t r = 0; r < rows; r++) {
                    for (size_t j = 0; j < count; j++) {
                        double sum = 0, absolute = 0;
                        for (size_t k = 0; k < d; k++) {
                            const double term = 2 *
                                    double(t[r * t_stride + k]) *
                                    v[ids[j] * d + k];
                            sum += term;
                            absolute += std::abs(term);
                        }
                        const float found = y[r * y_stride + j];
                        ASSERT_NEAR(
                                found,
                                sum,
                                1.001 * (double(d) + 5) * float_unit * absolute)
                                << rows << " x " << count << ", d = " << d;
                        // the bits are those of the pair alone
                        float alone = 42;
                        simd::selected_dots(
                                1,
                                &t[r * t_stride],
                                d,
                                2,
                                1,
                                &ids[j],
                                v.data(),
                                d,
                                &alone,
                                1);
                        ASSERT_EQ(found, alone);
                    }
                    for (size_t j = count; j < y_stride; j++) {
                        ASSERT_EQ(y[r * y_stride + j], 42);
                    }
                }
            }
        }
    }
}

// Each output is that of the vector alone, bit for bit, and that of the matrix
// up to rounding.
TEST_P(EveryTarget, ApplyAgreesWithTheMatrix) {
    for (bool structured : {false, true}) {
        for (const Shape& s : shapes) {
            for (auto [k, m] :
                 {std::pair<int, int>{1, 1}, {24, 1}, {150, 2}, {40, 7}}) {
                const BilinearProjection p(s.d_w, s.d_v, k, m, structured, 3);
                ASSERT_EQ(p.d_in, s.d_w * s.d_v);
                ASSERT_EQ(p.d_out, k);
                const std::vector<float> A = p.matrix();
                ASSERT_EQ(A.size(), size_t(k) * p.d_in);
                const std::vector<float> x = normal_vectors(9, p.d_in, k);
                const std::vector<float> all = apply(p, 9, x);
                for (size_t i = 0; i < (s.d_w < 100 ? 9 : 2); i++) {
                    const ExactOutputs exact(p, A, &x[i * p.d_in]);
                    for (int j = 0; j < k; j++) {
                        ASSERT_NEAR(
                                all[i * k + j], exact.value[j], exact.bound[j])
                                << s.d_w << "x" << s.d_v << ", k = " << k
                                << ", m = " << m;
                    }
                }
                for (size_t n = 1; n < 9; n++) {
                    const std::vector<float> last(
                            x.end() - n * p.d_in, x.end());
                    ASSERT_TRUE(same_bits(
                            apply(p, n, last),
                            std::vector<float>(all.end() - n * k, all.end())))
                            << n;
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Targets,
        EveryTarget,
        ::testing::ValuesIn(targets()),
        [](const auto& info) {
            return std::string(hwy::TargetName(info.param));
        });

// matrix() is w v' with the w of the definition, which takes three explicit
// Hadamard matrices. Its w err by the rounding of the length alone, and the
// product with v is rounded once more.
TEST(BilinearProjection, MatrixIsMadeOfPairs) {
    for (bool structured : {false, true}) {
        for (const Shape& s : shapes) {
            const int k = 40;
            const BilinearProjection p(s.d_w, s.d_v, k, 2, structured, 8);
            const std::vector<float> A = p.matrix();
            for (int j = 0; j < k; j++) {
                const std::vector<double> w = row_w(p, p.pair_w[j]);
                const float* v = &p.V[size_t(p.pair_v[j]) * p.padded_d_v()];
                for (int i = 0; i < p.d_in; i++) {
                    const double expected = w[i / s.d_v] * v[i % s.d_v];
                    ASSERT_NEAR(
                            A[size_t(j) * p.d_in + i],
                            expected,
                            2.01 * float_unit * std::abs(expected));
                }
            }
        }
    }
}

TEST(BilinearProjection, PairsAreDifferentAndInRange) {
    for (int k : {1, 2, 8, 24, 64, 400, 1000, 6400}) {
        for (int m : {1, 2, 5, 10}) {
            const BilinearProjection p(4, 5, k, m, true, k + m);
            EXPECT_EQ(p.k_w, int(std::ceil(m * std::sqrt(double(k)) - 1e-9)));
            EXPECT_EQ(p.k_v, m > 1 ? p.k_w : (k + p.k_w - 1) / p.k_w);
            ASSERT_EQ(int(p.pair_w.size()), k);
            ASSERT_EQ(int(p.pair_v.size()), k);
            std::set<std::pair<int, int>> pairs;
            std::vector<int> of_w(p.k_w), of_v(p.k_v);
            for (int j = 0; j < k; j++) {
                ASSERT_TRUE(p.pair_w[j] >= 0 && p.pair_w[j] < p.k_w);
                ASSERT_TRUE(p.pair_v[j] >= 0 && p.pair_v[j] < p.k_v);
                pairs.emplace(p.pair_w[j], p.pair_v[j]);
                of_w[p.pair_w[j]]++;
                of_v[p.pair_v[j]]++;
            }
            EXPECT_EQ(int(pairs.size()), k);
            if (p.k_w * p.k_v == k) { // m = 1 and k square: all there are
                EXPECT_EQ(m, 1);
                EXPECT_EQ(
                        int(of_w.end() -
                            std::find(of_w.begin(), of_w.end(), p.k_v)),
                        p.k_w);
            }
            // draws without replacement: Hoeffding's bound holds (1963,
            // section 6)
            for (int n : of_w) {
                EXPECT_TRUE(plausible(n, k, 1.0 / p.k_w, 1.0 / p.k_w));
            }
            for (int n : of_v) {
                EXPECT_TRUE(plausible(n, k, 1.0 / p.k_v, 1.0 / p.k_v));
            }
        }
    }
}

// Given all earlier pairs, the next one is any of the K - j that are left, and
// at most k_v - 1 of them share the w of the one before. By Azuma's inequality
// for sums of indicators less their conditional expectations, k log(1 / p) / 2
// is the square of what may come on top. In order of w, almost all neighbours
// would share one.
TEST(BilinearProjection, NeighboursShareNothingInParticular) {
    for (auto [k, m] :
         {std::pair<int, int>{6400, 1}, {6400, 5}, {10000, 2}, {8192, 1}}) {
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
            // no order: ups are balanced by the same bound, both ways, with
            // the neighbours taken in couples that do not overlap
            EXPECT_NEAR(up, (k - 1 - shared) / 2.0, 3 * slack);
        }
    }
}

// Normal numbers, by Kolmogorov and Smirnov; v is scaled.
TEST(BilinearProjection, EntriesAreNormal) {
    const auto normal = [](double v) {
        return 0.5 * std::erfc(-v / std::sqrt(2));
    };
    const double scale = 0.37;
    const BilinearProjection p(40, 50, 10000, 10, false, 6, scale);
    EXPECT_LT(
            kolmogorov_smirnov({p.W.begin(), p.W.end()}, normal),
            kolmogorov_smirnov_limit(p.W.size()));
    std::vector<double> v;
    for (int i = 0; i < p.k_v; i++) {
        for (int k = 0; k < p.padded_d_v(); k++) {
            const float entry = p.V[i * p.padded_d_v() + k];
            if (k < 50) {
                v.push_back(entry / scale);
            } else {
                EXPECT_EQ(entry, 0);
            }
        }
    }
    EXPECT_LT(
            kolmogorov_smirnov(v, normal), kolmogorov_smirnov_limit(v.size()));
    // one correlation of w and v, and of rows one after the other: a mean of
    // products of signs
    double wv = 0, rows = 0;
    for (int i = 0; i + 40 < int(p.W.size()); i++) {
        rows += (p.W[i] < 0) == (p.W[i + 40] < 0) ? 1 : -1;
    }
    for (int i = 0; i < p.k_w; i++) {
        wv += (p.W[i * 40] < 0) == (v[i * 50] < 0) ? 1 : -1;
    }
    EXPECT_NEAR(
            rows / double(p.W.size() - 40), 0, hoeffding(p.W.size() / 2, 2));
    EXPECT_NEAR(wv / p.k_w, 0, hoeffding(p.k_w, 2));
}

// |w|^2 is chi-square: for D = 2 h degrees its distribution is 1 - exp(-x / 2)
// sum_{i < h} (x / 2)^i / i!.
TEST(BilinearProjection, LengthsAreChi) {
    for (int d_w : {1, 2, 7, 28}) {
        const BilinearProjection p(d_w, 2, 10000, 100, true, 6);
        const int D = int(padded_power(p));
        std::vector<double> squares;
        double mean = 0;
        for (float norm : p.norms) {
            EXPECT_GT(norm, 0);
            squares.push_back(double(norm) * norm * std::pow(D, 3));
            mean += squares.back() / p.k_w;
        }
        EXPECT_LT(
                kolmogorov_smirnov(
                        squares,
                        [&](double x) {
                            if (D == 1) {
                                return std::erf(std::sqrt(x / 2));
                            }
                            double term = std::exp(-x / 2), sum = 0;
                            for (int i = 0; i < D / 2; i++) {
                                sum += term;
                                term *= x / 2 / (i + 1);
                            }
                            return 1 - sum;
                        }),
                kolmogorov_smirnov_limit(squares.size()))
                << D;
        // of variance 2 D; Laurent and Massart 2000, lemma 1, for the sum of
        // n D squares
        const double n = double(p.k_w) * D, x = -log_failure();
        EXPECT_NEAR(mean * p.k_w, n, 2 * std::sqrt(n * x) + 2 * x + 1e-6 * n);
        for (float s : p.signs) {
            ASSERT_EQ(std::abs(s), 1);
        }
        double sum = 0;
        for (float s : p.signs) {
            sum += s;
        }
        const double count = double(p.signs.size());
        EXPECT_NEAR(sum / count, 0, hoeffding(count, 2));
    }
}

// The w of a block are orthogonal if d_w = D. Entries of matrix() err by 2 u,
// and so products of rows by 4 u of |a| |b|, divided by |v . v'|.
TEST(BilinearProjection, RowsOfABlockAreOrthogonal) {
    for (int d_w : {256, 512}) {
        const int k = 600, d_v = 3;
        const BilinearProjection p(d_w, d_v, k, 40, true, 9);
        const std::vector<float> A = p.matrix();
        int same_block = 0, other_block = 0;
        for (int i = 0; i < k; i++) {
            for (int j = 0; j < i; j++) {
                if (p.pair_v[i] != p.pair_v[j]) {
                    continue;
                }
                double ij = 0, ii = 0, jj = 0;
                for (int c = 0; c < p.d_in; c++) {
                    const double a = A[i * p.d_in + c], b = A[j * p.d_in + c];
                    ij += a * b;
                    ii += a * a;
                    jj += b * b;
                }
                const double cosine = ij / std::sqrt(ii * jj);
                if (p.pair_w[i] / d_w == p.pair_w[j] / d_w) {
                    EXPECT_NEAR(cosine, 0, 5 * float_unit);
                    same_block++;
                } else {
                    other_block += std::abs(cosine) > 1e-3;
                }
            }
        }
        EXPECT_GT(same_block, 20);
        // rows of two blocks of 2 are diagonals and sides of a square
        if (k / d_w > d_w) {
            EXPECT_GT(other_block, d_w == 32 ? 0 : 20);
        }
    }
}

TEST(BilinearProjection, SeedsAndCopies) {
    for (bool structured : {false, true}) {
        const BilinearProjection p(6, 7, 100, 3, structured, 5, 0.5);
        const BilinearProjection same(6, 7, 100, 3, structured, 5, 0.5);
        const std::vector<float> x = normal_vectors(5, 42, 1);
        const std::vector<float> y = apply(p, 5, x), A = p.matrix();
        EXPECT_TRUE(same_bits(apply(same, 5, x), y));
        EXPECT_TRUE(same_bits(same.matrix(), A));
        for (int64_t seed : {6L, 5L + (1L << 32), -5L, 0L}) {
            const BilinearProjection other(6, 7, 100, 3, structured, seed, 0.5);
            EXPECT_NE(other.V, p.V);
            EXPECT_NE(other.pair_w, p.pair_w);
            EXPECT_NE(
                    structured ? other.norms : other.W,
                    structured ? p.norms : p.W);
        }
        // twice the scale is exact
        const BilinearProjection twice(6, 7, 100, 3, structured, 5, 1);
        std::vector<float> y2 = y;
        for (float& v : y2) {
            v *= 2;
        }
        EXPECT_TRUE(same_bits(apply(twice, 5, x), y2));

        const std::unique_ptr<Projection> copy = p.clone();
        EXPECT_NE(dynamic_cast<BilinearProjection*>(copy.get()), nullptr);
        std::vector<float> from_copy(y.size());
        copy->apply(5, x.data(), from_copy.data());
        EXPECT_TRUE(same_bits(from_copy, y));
        EXPECT_TRUE(same_bits(copy->matrix(), A));

        faiss::VectorIOWriter writer;
        write_fields(p, &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        BilinearProjection read;
        read_fields(read, &reader);
        EXPECT_EQ(reader.rp, writer.data.size());
        EXPECT_TRUE(same_bits(apply(read, 5, x), y));
        EXPECT_TRUE(same_bits(read.matrix(), A));
        EXPECT_EQ(read.m, 3);
        EXPECT_EQ(read.structured, structured);
        EXPECT_EQ(read.d_in, 42);
        // it reads over what was there
        BilinearProjection full(3, 3, 9, 1, !structured, 1);
        faiss::VectorIOReader again;
        again.data = writer.data;
        read_fields(full, &again);
        EXPECT_TRUE(same_bits(apply(full, 5, x), y));
    }
}

TEST(BilinearProjection, NearlySquare) {
    const std::vector<std::pair<int, int>> cases = {
            {1, 1},
            {2, 1},
            {7, 1},
            {12, 3},
            {36, 6},
            {48, 6},
            {784, 28},
            {64000, 250},
            {1000003, 1},
            {1 << 30, 1 << 15}};
    for (auto [d, d_w] : cases) {
        EXPECT_EQ(BilinearProjection::nearly_square(d), d_w) << d;
    }
    for (int d = 1; d < 500; d++) {
        int best = 1;
        for (int s = 1; s * s <= d; s++) {
            best = d % s == 0 ? s : best;
        }
        EXPECT_EQ(BilinearProjection::nearly_square(d), best) << d;
    }
}

TEST(BilinearProjection, BadArguments) {
    const auto make = [](int d_w, int d_v, int k, int m) {
        return [=] { BilinearProjection(d_w, d_v, k, m, true, 1); };
    };
    EXPECT_TRUE(throws(make(0, 3, 8, 1), "shape 0 x 3"));
    EXPECT_TRUE(throws(make(3, -1, 8, 1), "shape 3 x -1"));
    EXPECT_TRUE(throws(make(3, 3, 0, 1), "0 outputs"));
    EXPECT_TRUE(throws(make(3, 3, 8, 0), "m = 0"));
    EXPECT_TRUE(throws(make(3, 3, 8, 1001), "m = 1001"));
    EXPECT_TRUE(throws(make(1 << 16, 1 << 16, 8, 1), "too large"));
    EXPECT_NO_THROW(make(3, 3, 8, 1000)());
}

// Memory is what the header says, but for the object itself and the padding.
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

// Brute force with a bound of the tail.
TEST(Series, AgreesWithBruteForce) {
    for (int r : {1, 2, 15}) {
        for (double s : {1e-8, 1e-4, 0.01, 0.3, 1.0, 4.0, 100.0, 1e6}) {
            const std::vector<double> lambda(r, s / r);
            const auto kernel = [&](double m) { return product(lambda, m); };
            const auto [low, high] = brute_force(kernel);
            const double share = expected_distance(kernel);
            // 1e-9 is what the header promises
            EXPECT_GE(share, low - 1e-9) << r << ", " << s;
            EXPECT_LE(share, high + 1e-9) << r << ", " << s;
            EXPECT_NEAR(
                    inverse_distance(
                            0.2,
                            [&](double t) {
                                return expected_distance([&](double m) {
                                    return product({t}, m);
                                });
                            }),
                    inverse_distance(
                            0.2,
                            [&](double t) {
                                return expected_distance([&](double m) {
                                    return std::pow(1 + m * m * t, -0.5);
                                });
                            }),
                    1e-6);
        }
    }
}

// 2/pi E |sin(Z / 2)|, Z = w' D v. With two equal eigenvalues s^2, Z is the sum
// of two products of normal numbers, which has Laplace's density exp(-|z| / s)
// / (2 s), and the mean is in closed form. For pairs of eigenvalues the
// characteristic function splits into partial fractions of such terms. With one
// eigenvalue the density is K_0(|z| / s) / (pi s).
TEST(Series, IsTheMeanOfTheSine) {
    const auto laplace = [](double s) {
        return 2 / pi * (1 / (2 * s)) / std::tanh(pi / s) /
                (0.25 + 1 / (s * s));
    };
    for (double s : {0.01, 0.2, 1.0, 3.0, 20.0}) {
        const std::vector<double> two = {s * s, s * s};
        EXPECT_NEAR(
                expected_distance([&](double m) { return product(two, m); }),
                laplace(s),
                2e-9);
        const double q = 0.4 * s, a = s * s / (s * s - q * q);
        const std::vector<double> four = {s * s, s * s, q * q, q * q};
        EXPECT_NEAR(
                expected_distance([&](double m) { return product(four, m); }),
                a * laplace(s) + (1 - a) * laplace(q),
                5e-9);
    }
    for (double s : {0.1, 1.0, 4.0}) {
        // over (0, 60 s), where K_0 has fallen to 1e-27, in pieces of length
        // h, at most 2 pi / 64, by Simpson's rule in z = t^3, which takes the
        // logarithm at 0 to t^2 log t; |sin| has its kinks at multiples of 2
        // pi, so each period is on its own
        double sum = 0;
        for (double begin = 0; begin < 60 * s; begin += 2 * pi) {
            const double end = std::min(begin + 2 * pi, 60 * s);
            const int steps = 400;
            const double t0 = std::cbrt(begin), t1 = std::cbrt(end);
            const double h = (t1 - t0) / steps;
            const auto f = [&](double t) {
                const double z = t * t * t;
                return t <= 0 ? 0
                              : std::abs(std::sin(z / 2)) *
                                testing_theory::power_bessel_k(0, 0, z / s) /
                                (pi * s) * 3 * t * t;
            };
            for (int i = 0; i <= steps; i++) {
                const int weight = i == 0 || i == steps ? 1 : 2 + 2 * (i % 2);
                sum += h / 3 * weight * f(t0 + i * h);
            }
        }
        EXPECT_NEAR(
                expected_distance(
                        [&](double m) { return product({s * s}, m); }),
                2 / pi * 2 * sum,
                1e-6); // Simpson's error, seen from half the steps
    }
}

// k_b against eigenvalues by Jacobi's method, and against the mean of
// cosines: 2 e is the range of a cosine.
TEST(BilinearShiftInvariantHash, KernelOfAPair) {
    for (auto [d_w, d_v] :
         {std::pair<int, int>{1, 6}, {6, 1}, {5, 9}, {9, 5}, {15, 15}}) {
        const double gamma = 1.7;
        const BilinearShiftInvariantHash hash(
                d_w, d_v, 64, gamma, 5, true, 1234, false);
        for (double length : {0.01, 0.3, 1.0, 3.0}) {
            const auto [x, y] = pair_of(d_w, d_v, length, length != 1, 5);
            const std::vector<double> lambda =
                    gram_eigenvalues(x, y, d_w, d_v, gamma);
            const double k = hash.bilinear_kernel(x.data(), y.data());
            EXPECT_NEAR(k, product(lambda, 1), 1e-12);
            const auto [low, high] =
                    brute_force([&](double m) { return product(lambda, m); });
            const double expected =
                    hash.expected_hamming_of_pair(x.data(), y.data()) / 64;
            EXPECT_GE(expected, low - 1e-9);
            EXPECT_LE(expected, high + 1e-9);
            EXPECT_EQ(k, hash.bilinear_kernel(y.data(), x.data()));
        }
        const std::vector<float> x = normal_vectors(1, d_w * d_v, 1);
        EXPECT_EQ(hash.bilinear_kernel(x.data(), x.data()), 1);
        EXPECT_NEAR(hash.expected_hamming_of_pair(x.data(), x.data()), 0, 1e-7);
    }
    for (int d : {15, 25}) {
        const BilinearProjection p(d, d, 16384, 100, false, 3);
        const std::vector<int> outputs = independent_outputs(p);
        ASSERT_GT(outputs.size(), 5000u);
        const BilinearShiftInvariantHash hash(
                d, d, 64, 1, 5, true, 1234, false);
        for (double length : {0.5, 2.0}) {
            for (bool spread : {true, false}) {
                const auto [x, y] = pair_of(d, d, length, spread, 7);
                std::vector<float> diff(x.size());
                for (size_t k = 0; k < x.size(); k++) {
                    diff[k] = x[k] - y[k];
                }
                const std::vector<float> z = apply(p, 1, diff);
                double mean = 0;
                for (int j : outputs) {
                    mean += std::cos(double(z[j])) / double(outputs.size());
                }
                EXPECT_NEAR(
                        mean,
                        hash.bilinear_kernel(x.data(), y.data()),
                        hoeffding(double(outputs.size()), 2) + 1e-4);
            }
        }
    }
}

// Theorem 1 and 2, where their conditions hold: sqrt(gamma) |x - y| <= 0.8 and
// no eigenvalue above 0.28 times the sum of the others.
TEST(BilinearShiftInvariantHash, BoundsOfTheKernel) {
    int covered = 0;
    for (auto [d_w, d_v] : {std::pair<int, int>{15, 60}, {25, 25}, {40, 20}}) {
        for (double gamma : {0.04, 1.0, 9.0}) {
            const BilinearShiftInvariantHash hash(
                    d_w, d_v, 64, gamma, 5, true, 1234, false);
            for (double r : {0.01, 0.1, 0.3, 0.5, 0.7, 0.799}) {
                const auto [x, y] = pair_of(
                        d_w, d_v, r / std::sqrt(gamma), true, 100 + d_w);
                const std::vector<double> lambda =
                        gram_eigenvalues(x, y, d_w, d_v, gamma);
                double sum = 0;
                for (double v : lambda) {
                    sum += v;
                }
                const double largest =
                        *std::max_element(lambda.begin(), lambda.end());
                ASSERT_LE(sum, 0.64);
                ASSERT_LE(largest, 0.28 * (sum - largest));
                const double kg = std::exp(-gamma * squared_distance(x, y) / 2);
                const double kb = hash.bilinear_kernel(x.data(), y.data());
                EXPECT_GE(kb, kg * (1 - 1e-12));
                EXPECT_LE(kb, std::pow(kg, 0.79) * (1 + 1e-12));
                const double h =
                        hash.expected_hamming_of_pair(x.data(), y.data()) / 64;
                EXPECT_GE(h, hash.lower_bound(kg) - 1e-9);
                EXPECT_LE(h, hash.upper_bound(kg) + 1e-9);
                covered++;
            }
        }
    }
    EXPECT_EQ(covered, 54);
    using Hash = BilinearShiftInvariantHash;
    for (double u = 0; u <= 1; u += 0.125) {
        EXPECT_NEAR(
                Hash::lower_bound(u),
                4 / (pi * pi) * (1 - std::pow(u, 0.79)),
                1e-15);
        EXPECT_EQ(Hash::upper_bound(u), ShiftInvariantHash::upper_bound(u));
        long double a = 0, b = 0;
        for (int m = 1; m < 100000 && u < 1; m++) {
            const double weight = 1 / (4.0 * m * m - 1);
            const double x = std::pow(u, 0.79 * m * m) * weight;
            const double y = std::pow(u, double(m) * m) * weight;
            a += x;
            b += y;
            if (x < 1e-20) {
                break;
            }
        }
        EXPECT_NEAR(
                Hash::covariance_bound(u),
                64 / std::pow(pi, 4) * double(a * a - b * b),
                2e-9);
    }
    EXPECT_NEAR(Hash::covariance_bound(1), 0, 2e-9);
    EXPECT_EQ(Hash::covariance_bound(0), 0);
    for (double bad : {-0.1, 1.1, double(nan_value)}) {
        for (auto f :
             {Hash::lower_bound, Hash::upper_bound, Hash::covariance_bound}) {
            EXPECT_TRUE(throws([&] { f(bad); }, "kernel value"));
        }
    }
}

// Bits with a w and a v of their own are independent: Hoeffding's bound. Near 0
// and where gradients are steep the phases' rounding may turn a bit: each of
// the two codes has a phase of error e from a threshold with probability 4 e.
TEST(BilinearShiftInvariantHash, HammingOfDenseFollowsTheSeries) {
    const int nbits = 32768;
    for (int d : {15, 25}) {
        const BilinearShiftInvariantHash hash(
                d, d, nbits, 1, 100, false, 5, false);
        const std::vector<int> outputs =
                independent_outputs(projection_of(hash));
        ASSERT_GT(outputs.size(), 10000u);
        const double n = double(outputs.size());
        for (double length : {0.01, 0.1, 0.4, 0.8, 1.5, 4.0}) {
            for (bool spread : {true, false}) {
                const auto [x, y] = pair_of(d, d, length, spread, d);
                const std::vector<uint8_t> codes = codes_of(hash, joined(x, y));
                double count = 0;
                for (int j : outputs) {
                    count += differs(codes, nbits, j);
                }
                const double h =
                        hash.expected_hamming_of_pair(x.data(), y.data()) /
                        nbits;
                EXPECT_TRUE(plausible(count, n, h, h, 2 * 4e-5 * n))
                        << length << ": " << count / n << ", expected " << h;
                EXPECT_NEAR(count / n, h, hoeffding(n));
            }
        }
    }
}

// Given all w, bits of different v are independent and differ with the
// probability of SIK at the distance |(X - Y)' w|: Hoeffding's bound for trials
// that are not alike, whatever the law of w.
//
// The law itself: blocks of w are independent, so that the mean over all w
// deviates by 6 standard errors of the blocks' means once in 5e8. A component
// of a structured w has the fourth moment 3 (1 + 8 / (3 D^2)), D >= 16, not 3;
// shares move by no more than half of that, for differences that
// are not in a single row (see below).
TEST(BilinearShiftInvariantHash, HammingOfStructuredFollowsTheSeries) {
    const int nbits = 8192;
    for (int d : {15, 25}) {
        const BilinearShiftInvariantHash hash(
                d, d, nbits, 1, 50, true, 5, false);
        const BilinearProjection& p = projection_of(hash);
        const std::vector<int> outputs = outputs_of_different_v(p);
        const size_t D = padded_power(p), blocks = p.k_w / D;
        std::vector<std::vector<double>> w;
        for (int j = 0; j < p.k_w; j++) {
            w.push_back(row_w(p, j));
        }
        const double n = double(outputs.size());
        for (double length : {0.1, 0.8, 3.0}) {
            for (bool spread : {true, false}) {
                const auto [x, y] = pair_of(d, d, length, spread, d);
                std::vector<double> share;
                for (const std::vector<double>& row : w) {
                    share.push_back(
                            gaussian_share(variance_given(row, x, y, d)));
                }
                const std::vector<uint8_t> codes = codes_of(hash, joined(x, y));
                double count = 0, given = 0;
                for (int j : outputs) {
                    count += differs(codes, nbits, j);
                    given += share[p.pair_w[j]];
                }
                EXPECT_NEAR(count / n, given / n, hoeffding(n)) << length;

                double mean = 0, square = 0;
                for (size_t b = 0; b < blocks; b++) {
                    double sum = 0;
                    for (size_t i = 0; i < D; i++) {
                        sum += share[b * D + i] / double(D);
                    }
                    mean += sum / double(blocks);
                    square += sum * sum / double(blocks);
                }
                const double error =
                        std::sqrt((square - mean * mean) / double(blocks));
                const double h =
                        hash.expected_hamming_of_pair(x.data(), y.data()) /
                        nbits;
                EXPECT_NEAR(
                        mean, h, 6 * error + h * 4 / 3 / double(D * D) + 1e-9)
                        << length;
                EXPECT_LT(error, 0.004);
            }
        }
    }
}

// The same for differences in one row of X: the law of one component of w,
// which must be that of a normal number for lemma 2 to hold. (A component that
// is 0 does not see the row.)
TEST(BilinearShiftInvariantHash, StructuredSeesSingleRowsAsTheSeriesSays) {
    for (int d_w : {2, 8, 28}) {
        const int d_v = 4, nbits = 8192;
        const BilinearShiftInvariantHash hash(
                d_w, d_v, nbits, 1, 50, true, 5, false);
        const BilinearProjection& p = projection_of(hash);
        const size_t D = padded_power(p), blocks = p.k_w / D;
        for (double length : {1.0, 4.0, 20.0}) {
            const std::vector<float> x(d_w * d_v);
            std::vector<float> y = x;
            y[0] = float(length);
            double mean = 0, square = 0;
            for (size_t b = 0; b < blocks; b++) {
                double sum = 0;
                for (size_t i = 0; i < D; i++) {
                    const std::vector<double> w = row_w(p, int(b * D + i));
                    sum += gaussian_share(variance_given(w, x, y, d_v)) /
                            double(D);
                }
                mean += sum / double(blocks);
                square += sum * sum / double(blocks);
            }
            const double error =
                    std::sqrt((square - mean * mean) / double(blocks));
            EXPECT_NEAR(
                    mean,
                    hash.expected_hamming_of_pair(x.data(), y.data()) / nbits,
                    6 * error + 0.002)
                    << d_w << "x" << d_v << ", |x - y| = " << length;
        }
    }
}

// Two bits that share a w: given w they are independent, so that their
// covariance is the variance over w of the share given w. For a difference of
// rank 1 that is an integral over one normal number.
TEST(BilinearShiftInvariantHash, CovarianceOfBits) {
    const int d = 15, nbits = 65536;
    const double length = 1.5;
    const auto [x, y] = pair_of(d, d, length, false, 3);
    double mean = 0, square = 0, mass = 0;
    for (double g = -8; g <= 8; g += 1.0 / 64) {
        const double weight = std::exp(-g * g / 2);
        const double h = gaussian_share(squared_distance(x, y) * g * g);
        mass += weight;
        mean += weight * h;
        square += weight * h * h;
    }
    mean /= mass;
    const double covariance = square / mass - mean * mean;
    EXPECT_GT(covariance, 0.01);

    double n = 0, first = 0, both = 0, apart_n = 0, apart = 0, apart_first = 0;
    for (int seed = 0; seed < 3; seed++) {
        const BilinearShiftInvariantHash hash(
                d, d, nbits, 1, 50, false, seed, false);
        const std::vector<uint8_t> codes = codes_of(hash, joined(x, y));
        for (auto [i, j] : couples(projection_of(hash))) {
            n++;
            first += differs(codes, nbits, i);
            both += differs(codes, nbits, i) && differs(codes, nbits, j);
        }
        const std::vector<int> outputs =
                independent_outputs(projection_of(hash));
        for (size_t i = 0; i + 1 < outputs.size(); i += 2) {
            const bool a = differs(codes, nbits, outputs[i]);
            apart_n++;
            apart_first += a;
            apart += a && differs(codes, nbits, outputs[i + 1]);
        }
    }
    EXPECT_GT(n, 8000);
    EXPECT_GT(apart_n, 8000);
    EXPECT_NEAR(first / n, mean, hoeffding(n));
    EXPECT_NEAR(both / n, mean * mean + covariance, hoeffding(n));
    EXPECT_NEAR(apart / apart_n, mean * mean, hoeffding(apart_n));
    EXPECT_NEAR(apart_first / apart_n, mean, hoeffding(apart_n));
    // sharing is seen: 20,000 couples would not have that by chance
    EXPECT_GT(both / n - apart / apart_n, 0);
}

// Theorem 3, where its conditions hold: the variance over w of the share given
// w is the covariance. The estimate from 4,000 w errs by a few percent.
TEST(BilinearShiftInvariantHash, CovarianceIsBelowItsBound) {
    const int d = 25;
    const BilinearProjection p(d, d, 1600, 100, false, 3);
    for (double length : {0.1, 0.3, 0.6, 0.79}) {
        const auto [x, y] = pair_of(d, d, length, true, 125);
        const std::vector<double> lambda = gram_eigenvalues(x, y, d, d, 1);
        double sum = 0;
        for (double v : lambda) {
            sum += v;
        }
        const double largest = *std::max_element(lambda.begin(), lambda.end());
        ASSERT_LE(largest, 0.28 * (sum - largest));
        double mean = 0, square = 0;
        for (int j = 0; j < p.k_w; j++) {
            const double h =
                    gaussian_share(variance_given(row_w(p, j), x, y, d));
            mean += h / p.k_w;
            square += h * h / p.k_w;
        }
        const double u = std::exp(-squared_distance(x, y) / 2);
        const double covariance = square - mean * mean;
        EXPECT_GT(covariance, 0);
        EXPECT_LE(
                1.3 * covariance,
                BilinearShiftInvariantHash::covariance_bound(u))
                << length;
    }
}

// The variance of a Hamming distance is that of independent bits and the
// covariances, (p (1 - p) + (couples that share) 2 cov / k) / k; over S seeds
// its estimate has the standard error sqrt((kurtosis - 1) / S), of which 6.
TEST(BilinearShiftInvariantHash, VarianceFallsWithM) {
    const int d = 8, nbits = 144, S = 1000;
    const auto [x, y] = pair_of(d, d, 1.2, false, 4);
    double mean = 0, square = 0, mass = 0;
    for (double g = -8; g <= 8; g += 1.0 / 64) {
        const double weight = std::exp(-g * g / 2);
        const double h = gaussian_share(squared_distance(x, y) * g * g);
        mass += weight;
        mean += weight * h;
        square += weight * h * h;
    }
    mean /= mass;
    const double covariance = square / mass - mean * mean;
    double variance[2] = {};
    for (int i = 0; i < 2; i++) {
        const int m = i ? 5 : 1;
        std::vector<double> share;
        double average = 0;
        for (int seed = 0; seed < S; seed++) {
            const BilinearShiftInvariantHash hash(
                    d, d, nbits, 1, m, false, seed, false);
            const std::vector<uint8_t> codes = codes_of(hash, joined(x, y));
            int count = 0;
            for (int j = 0; j < nbits; j++) {
                count += differs(codes, nbits, j);
            }
            share.push_back(count / double(nbits));
            average += share.back() / S;
        }
        double second = 0, fourth = 0;
        for (double v : share) {
            second += std::pow(v - average, 2) / S;
            fourth += std::pow(v - average, 4) / S;
        }
        variance[i] = second;
        EXPECT_NEAR(average, mean, 6 * std::sqrt(second / S));
        // any two of the k pairs are any two of the k_w k_v
        const double K = 144.0 * m * m, side = 12.0 * m;
        const double sharing =
                nbits * (nbits - 1) / 2.0 * 2 * (side - 1) / (K - 1);
        const double expected =
                (mean * (1 - mean) + sharing * 2 * covariance / nbits) / nbits;
        const double kurtosis = fourth / (second * second);
        EXPECT_NEAR(
                second, expected, 6 * second * std::sqrt((kurtosis - 1) / S))
                << m;
        EXPECT_GT(second, mean * (1 - mean) / nbits);
    }
    EXPECT_LT(variance[1], 0.7 * variance[0]);
}

// K is exp(-s / 2), and s / r the eigenvalue that all r share. |dh / dk_b| is
// at least 8 / (3 pi^2), and |dk_b / dK| at least 1 / (1 + s / r); h is a sum
// of less than 10,000 terms, whose rounding moves it by 10,000 / 2^53 at most,
// and terms below 1e-16 are dropped.
TEST(BilinearShiftInvariantHash, EstimatesInvertExpectedDistances) {
    for (auto [d_w, d_v] :
         {std::pair<int, int>{1, 10}, {10, 1}, {2, 9}, {28, 28}}) {
        const int nbits = 64, r = std::min(d_w, d_v);
        const BilinearShiftInvariantHash hash(
                d_w, d_v, nbits, 0, 5, true, 1234, false);
        double before = HUGE_VAL;
        for (double k :
             {0.0,
              1e-12,
              1e-6,
              0.001,
              0.1,
              0.3,
              0.5,
              0.8,
              0.95,
              0.999,
              1 - 1e-6,
              1.0}) {
            const double h = hash.expected_hamming(k);
            EXPECT_LT(h, before);
            before = h;
            const double s = -2 * std::log(k);
            if (k > 0) {
                const auto [low, high] = brute_force(
                        [&](double m) {
                            return std::pow(1 + m * m * s / r, -r / 2.0);
                        },
                        30000);
                EXPECT_GE(h / nbits, low - 1e-9);
                EXPECT_LE(h / nbits, high + 1e-9);
            }
            EXPECT_NEAR(
                    hash.kernel_estimate(h),
                    k,
                    3 * pi * pi / 8 * (1 + std::min(s, 80.0) / r) *
                            (10000 * 0x1p-53 + 1e-16))
                    << d_w << "x" << d_v << ", K = " << k;
        }
        EXPECT_NEAR(hash.expected_hamming(1), 0, 1e-9 * nbits);
        EXPECT_NEAR(hash.expected_hamming(0), nbits * 4 / (pi * pi), 1e-12);
        EXPECT_EQ(hash.kernel_estimate(0), 1);
        EXPECT_EQ(hash.kernel_estimate(nbits), 0);
        for (double bad : {-0.01, 1.01, double(nan_value)}) {
            EXPECT_TRUE(
                    throws([&] { hash.expected_hamming(bad); },
                           "expected a value from 0 to 1"));
        }
        for (double bad : {-1.0, nbits + 0.5, double(nan_value)}) {
            EXPECT_TRUE(throws([&] { hash.kernel_estimate(bad); }));
        }
    }
}

// The bit without a cosine is that of the definition, up to the rounding of the
// projection, the offset, the fold and the threshold.
TEST(BilinearShiftInvariantHash, MarginsAreThoseOfTheCosine) {
    for (bool structured : {false, true}) {
        for (const Shape& s : shapes) {
            if (s.d_w > 100) {
                continue;
            }
            const int nbits = 400;
            const BilinearShiftInvariantHash hash(
                    s.d_w, s.d_v, nbits, 0.3, 5, structured, 7, false);
            const size_t n = 5, d = hash.d_in;
            const std::vector<float> x = normal_vectors(n, d, d);
            std::vector<float> margins(n * nbits);
            hash.apply_noalloc(n, x.data(), margins.data());
            const std::vector<uint8_t> codes = codes_of(hash, x);
            const std::vector<float> A = hash.projection->matrix();
            size_t doubtful = 0;
            for (size_t i = 0; i < n; i++) {
                const ExactOutputs exact(projection_of(hash), A, &x[i * d]);
                for (int j = 0; j < nbits; j++) {
                    const double u = exact.value[j] + hash.offset[j];
                    const double t = hash.threshold[j];
                    const double value = t - std::abs(u - std::round(u));
                    const double bound =
                            exact.bound[j] + float_unit * (std::abs(u) + 3);
                    const float margin = margins[i * nbits + j];
                    ASSERT_NEAR(margin, value, bound);
                    ASSERT_EQ(bit(codes, i, nbits, j), margin >= 0);
                    if (std::abs(value) > bound) {
                        ASSERT_EQ(
                                margin >= 0,
                                std::cos(2 * pi * u) - std::cos(2 * pi * t) >=
                                        0);
                    } else {
                        doubtful++;
                    }
                }
            }
            EXPECT_LT(doubtful, 0.01 * n * nbits);
        }
    }
}

TEST(BilinearShiftInvariantHash, OffsetsAndThresholdsAreUniform) {
    const BilinearShiftInvariantHash hash(3, 3, 65536, 1, 5, true, 1234, false);
    std::vector<double> t;
    for (float v : hash.threshold) {
        t.push_back(-std::cos(2 * pi * v));
    }
    EXPECT_LT(
            kolmogorov_smirnov(
                    {hash.offset.begin(), hash.offset.end()},
                    [](double v) { return std::clamp(v, 0.0, 1.0); }),
            kolmogorov_smirnov_limit(65536));
    EXPECT_LT(
            kolmogorov_smirnov(
                    t,
                    [](double v) { return std::clamp((v + 1) / 2, 0., 1.); }),
            kolmogorov_smirnov_limit(65536));
}

// 4 gamma is 2 x, exactly so in binary.
TEST(BilinearShiftInvariantHash, GammaScales) {
    const std::vector<float> x = normal_vectors(20, 63, 1, 0.3);
    std::vector<float> twice = x;
    for (float& v : twice) {
        v *= 2;
    }
    for (bool structured : {false, true}) {
        const BilinearShiftInvariantHash a(
                7, 9, 256, 4, 5, structured, 1234, false);
        const BilinearShiftInvariantHash b(
                7, 9, 256, 1, 5, structured, 1234, false);
        EXPECT_EQ(codes_of(a, x), codes_of(b, twice));
        EXPECT_NE(codes_of(a, x), codes_of(b, x));
        EXPECT_NEAR(
                a.bilinear_kernel(&x[0], &x[63]),
                b.bilinear_kernel(&twice[0], &twice[63]),
                1e-13);
    }
}

TEST(BilinearShiftInvariantHash, AutomaticGammaIsThatOfSik) {
    const int d = 12;
    const std::vector<float> x = normal_vectors(1000, d, 1);
    BilinearShiftInvariantHash hash(3, 4, 64, 0, 5, true, 1234, false);
    EXPECT_FALSE(hash.is_trained);
    EXPECT_TRUE(throws([&] { codes_of(hash, x); }, "not trained"));
    EXPECT_TRUE(
            throws([&] { hash.bilinear_kernel(&x[0], &x[d]); }, "not trained"));
    EXPECT_TRUE(
            throws([&] { hash.expected_hamming_of_pair(&x[0], &x[d]); },
                   "not trained"));
    EXPECT_TRUE(throws([&] { hash.train(0, x.data()); }));
    std::vector<float> bad = x;
    bad[17] = nan_value;
    EXPECT_TRUE(throws([&] { hash.train(1000, bad.data()); }));
    EXPECT_FALSE(hash.is_trained);
    hash.train(1000, x.data());
    ShiftInvariantHash sik(d, 64, GaussianKernel(0));
    sik.train(1000, x.data());
    EXPECT_EQ(hash.kernel->gamma, sik.kernel->gamma);
    EXPECT_GT(hash.kernel->gamma, 0);
    // as if it had been given; and trained once for all
    const BilinearShiftInvariantHash given(
            3, 4, 64, hash.kernel->gamma, 5, true, 1234, false);
    EXPECT_EQ(codes_of(given, x), codes_of(hash, x));
    const std::vector<uint8_t> before = codes_of(hash, x);
    hash.train(500, x.data());
    EXPECT_EQ(codes_of(hash, x), before);
    EXPECT_TRUE(
            throws([&] { hash.bilinear_kernel(&x[0], &bad[d]); })); // bad[17]
}

TEST(BilinearShiftInvariantHash, Strings) {
    using Hash = BilinearShiftInvariantHash;
    const auto make = [](const std::string& s, int d = 784) {
        auto hash = kernel_hash_factory(d, s);
        EXPECT_NE(dynamic_cast<Hash*>(hash.get()), nullptr) << s;
        return std::unique_ptr<Hash>(dynamic_cast<Hash*>(hash.release()));
    };
    auto h = make("BSIK6400(28x28,m=5)");
    EXPECT_EQ(h->nbits, 6400);
    EXPECT_EQ(std::pair(h->proj.d_w, h->proj.d_v), std::pair(28, 28));
    EXPECT_EQ(h->proj.m, 5);
    EXPECT_TRUE(is_structured(*h));
    EXPECT_FALSE(h->is_trained);
    EXPECT_EQ(h->seed, 1234);
    for (const std::string s : {"BSIK64", "BSIK64(auto)"}) {
        h = make(s, 63);
        EXPECT_EQ(std::pair(h->proj.d_w, h->proj.d_v), std::pair(7, 9)) << s;
        EXPECT_EQ(h->proj.m, 5);
    }
    h = make("BSIK72(56x14,m=2,gamma=0.25,seed=9,w=dense)");
    EXPECT_EQ(std::pair(h->proj.d_w, h->proj.d_v), std::pair(56, 14));
    EXPECT_EQ(h->kernel->gamma, 0.25);
    EXPECT_EQ(h->seed, 9);
    EXPECT_FALSE(is_structured(*h));
    EXPECT_TRUE(h->is_trained);
    EXPECT_FALSE(projection_of(*h).structured);
    EXPECT_EQ(projection_of(*h).m, 2);
    const std::vector<float> x = normal_vectors(4, 784, 1);
    EXPECT_EQ(codes_of(*h, x), codes_of(Hash(56, 14, 72, .25, 2, false, 9), x));
    EXPECT_EQ(
            codes_of(*make("BSIK64(gamma=0.01,w=structured)"), x),
            codes_of(Hash(28, 28, 64, 0.01), x));
    EXPECT_NE(
            codes_of(*make("BSIK64(gamma=0.01,seed=1)"), x),
            codes_of(Hash(28, 28, 64, 0.01), x));
    EXPECT_FALSE(make("BSIK64(auto,gamma=auto)")->is_trained);
    make("BSIK64(shape=56x14)")->check_identical(*make("BSIK64(56x14)"));
    for (const std::string s :
         {"BSIK64(shape=56x14,m=2,w=dense,shuffle=0,gamma=0.25,seed=9)",
          "BSIK64"}) {
        h = make(s);
        make(h->description())->check_identical(*h);
    }

    const std::vector<std::pair<std::string, std::string>> bad = {
            {"BSIK64(28x29)", "28x29 has 812 components, the vectors have 784"},
            {"BSIK64(0x5)", "invalid shape '0x5'"},
            {"BSIK64(28x)", "invalid shape '28x'"},
            {"BSIK64(x28)", "invalid shape 'x28'"},
            {"BSIK64(28)", "invalid shape '28'"},
            {"BSIK64(axb)", "invalid shape 'axb'"},
            {"BSIK64(28x28x1)", "invalid shape '28x28x1'"},
            {"BSIK64(-28x-28)", "invalid shape"},
            {"BSIK64(65536x65536)", "4294967296 components"},
            {"BSIK64(m=0)", "'0' of m"},
            {"BSIK64(m=1001)", "'1001' of m"},
            {"BSIK63", "63"},
            {"BSIK64(n=3)", "unknown key 'n'"},
            {"BSIK64(shape=28x29)", "812 components"},
            {"BSIK64(28x28,28x28)", "unknown argument '28x28'"},
            {"BSIK64(w=fast)", "structured, dense"},
            {"BSIK64(proj=dense)", "unknown key 'proj'"},
            {"BSIK64(gamma=-1)", "-1"},
            {"BSIK64(seed=-1)", "-1"}};
    for (const auto& [s, part] : bad) {
        const std::string message =
                message_of([&] { kernel_hash_factory(784, s); });
        EXPECT_TRUE(contains(message, part)) << s << ": " << message;
        EXPECT_TRUE(contains(message, s)) << message;
    }
    EXPECT_TRUE(throws([] { Hash(3, 3, 64, 1, 0); }, "m is 0"));
    EXPECT_TRUE(throws([] { Hash(3, 3, 64, 1, 1001); }, "m is 1001"));
    EXPECT_TRUE(throws([] { Hash(3, 3, 60, 1); }, "60"));
    EXPECT_TRUE(throws([] { Hash(0, 3, 64, 1); }));
    EXPECT_TRUE(throws([] { Hash(1 << 16, 1 << 16, 64, 1); }));
    EXPECT_TRUE(throws([] { Hash(3, 3, 64, -1); }));
}

TEST(HyperplaneHash, BilinearStrings) {
    const auto shape_of = [](const KernelHash& hash) {
        const auto& rhbe = dynamic_cast<const HyperplaneHash&>(hash);
        const auto& p =
                dynamic_cast<const BilinearProjection&>(*rhbe.projection);
        return std::tuple(p.d_w, p.d_v, p.m, p.d_out);
    };
    EXPECT_EQ(
            shape_of(*kernel_hash_factory(
                    784, "RHBE4096(proj=bilinear,shape=28x28,m=7)")),
            std::tuple(28, 28, 7, 4096));
    EXPECT_EQ(
            shape_of(*kernel_hash_factory(63, "RHBE24(proj=bilinear)")),
            std::tuple(7, 9, 5, 24));
    EXPECT_EQ(
            shape_of(*kernel_hash_factory(
                    63, "RHBE24(proj=bilinear,shape=auto,center=1,seed=3)")),
            std::tuple(7, 9, 5, 24));
    const std::vector<std::pair<std::string, std::string>> bad = {
            {"RHBE64(proj=bilinear,shape=28x29)", "has 812 components"},
            {"RHBE64(proj=bilinear,shape=28)", "invalid shape '28'"},
            {"RHBE64(proj=bilinear,m=0)", "'0' of m"},
            {"RHBE64(proj=bilinear,m=1001)", "'1001' of m"},
            {"RHBE64(shape=28x28)", "unknown key 'shape'"},
            {"RHBE64(m=5)", "unknown key 'm'"},
            {"RHBE64(proj=fast)", "bilinear"},
            {"RHBE64(proj=structured,shape=28x28)", "unknown key 'shape'"},
            {"RHBE64(proj=dense,m=5)", "unknown key 'm'"},
            {"RHBE60(proj=bilinear)", "60"}};
    for (const auto& [s, part] : bad) {
        EXPECT_TRUE(throws([&] { kernel_hash_factory(784, s); }, part)) << s;
    }
}

// Given all w, bits of different v are independent, and differ with the
// probability of the angle between X' w and Y' w over pi.
TEST(HyperplaneHash, BilinearHammingTellsTheMeanAngle) {
    const int d_w = 12, d_v = 10, nbits = 8192;
    for (bool structured : {false, true}) {
        const HyperplaneHash hash(
                ClonePtr<Projection>(
                        BilinearProjection(d_w, d_v, nbits, 50, structured, 3)),
                false,
                3);
        EXPECT_TRUE(hash.is_trained);
        const auto& p =
                dynamic_cast<const BilinearProjection&>(*hash.projection);
        const std::vector<int> outputs = outputs_of_different_v(p);
        const double n = double(outputs.size());
        for (double length : {0.01, 0.2, 1.0, 5.0}) {
            for (bool spread : {true, false}) {
                const auto [x, y] = pair_of(d_w, d_v, length, spread, 3);
                const std::vector<uint8_t> codes = codes_of(hash, joined(x, y));
                double count = 0, expected = 0;
                for (int j : outputs) {
                    const std::vector<double> w = row_w(p, p.pair_w[j]);
                    double xy = 0, xx = 0, yy = 0;
                    for (int c = 0; c < d_v; c++) {
                        double a = 0, b = 0;
                        for (int k = 0; k < d_w; k++) {
                            a += w[k] * x[k * d_v + c];
                            b += w[k] * y[k * d_v + c];
                        }
                        xy += a * b;
                        xx += a * a;
                        yy += b * b;
                    }
                    expected += std::acos(std::clamp(
                                        xy / std::sqrt(xx * yy), -1.0, 1.0)) /
                            pi;
                    count += differs(codes, nbits, j);
                }
                EXPECT_NEAR(count / n, expected / n, hoeffding(n)) << length;
            }
        }
    }
}

// Zeros, and the mean itself, are on every hyperplane: all bits are 1.
TEST(HyperplaneHash, BilinearEdges) {
    const auto hash = kernel_hash_factory(63, "RHBE64(proj=bilinear)");
    const std::vector<float> zero(63);
    EXPECT_EQ(codes_of(*hash, zero), std::vector<uint8_t>(8, 0xff));
    std::vector<float> bad = zero;
    bad[62] = nan_value;
    EXPECT_TRUE(throws([&] { codes_of(*hash, bad); }));
    const auto sik = kernel_hash_factory(63, "BSIK64(gamma=1)");
    EXPECT_TRUE(throws([&] { codes_of(*sik, bad); }));
    bad[62] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(throws([&] { codes_of(*sik, bad); }));
    // a zero's phase is its offset
    const auto& b = dynamic_cast<const BilinearShiftInvariantHash&>(*sik);
    const std::vector<uint8_t> code = codes_of(*sik, zero);
    for (int j = 0; j < 64; j++) {
        const double r = std::abs(b.offset[j] - std::round(b.offset[j]));
        EXPECT_EQ(bit(code, 0, 64, j), r <= b.threshold[j]);
    }

    const auto centred =
            kernel_hash_factory(63, "RHBE64(proj=bilinear,center=1)");
    EXPECT_FALSE(centred->is_trained);
    EXPECT_TRUE(throws([&] { codes_of(*centred, zero); }, "not trained"));
    const std::vector<float> one = normal_vectors(1, 63, 3);
    centred->train(1, one.data());
    EXPECT_EQ(codes_of(*centred, one), std::vector<uint8_t>(8, 0xff));
    const auto& c = dynamic_cast<const HyperplaneHash&>(*centred);
    std::vector<float> threshold(64);
    c.projection->apply(1, one.data(), threshold.data());
    EXPECT_TRUE(same_bits(threshold, c.threshold));
}

namespace {

const std::vector<std::string> all_strings = {
        "BSIK16(3x4,m=2)",
        "BSIK16(4x3,w=dense,m=1)",
        "BSIK16(gamma=0.5)",
        "RHBE16(proj=bilinear,shape=4x3,m=2)",
        "RHBE16(proj=bilinear,center=1,m=1)"};

} // namespace

TEST(BilinearHashes, CopiesAndFiles) {
    const std::vector<float> x = normal_vectors(300, 12, 3);
    for (const std::string& s : all_strings) {
        for (bool trained : {false, true}) {
            const auto hash = kernel_hash_factory(12, s);
            if (trained) {
                hash->train(300, x.data());
            }
            const auto copy = hash->clone();
            const auto read = from_bytes(bytes_of(*hash));
            auto* other = dynamic_cast<KernelHash*>(read.get());
            ASSERT_NE(other, nullptr);
            EXPECT_EQ(bytes_of(*copy), bytes_of(*hash));
            EXPECT_EQ(bytes_of(*other), bytes_of(*hash));
            copy->check_identical(*hash);
            other->check_identical(*hash);
            EXPECT_EQ(copy->is_trained, hash->is_trained);
            // what was untrained trains to the same
            hash->train(300, x.data());
            copy->train(300, x.data());
            other->train(300, x.data());
            EXPECT_EQ(codes_of(*copy, x), codes_of(*hash, x)) << s;
            EXPECT_EQ(codes_of(*other, x), codes_of(*hash, x)) << s;
            // a copy is on its own
            if (auto* bsik =
                        dynamic_cast<BilinearShiftInvariantHash*>(hash.get())) {
                const std::vector<uint8_t> codes = codes_of(*copy, x);
                auto& V = projection_of(*bsik).V;
                std::fill(V.begin(), V.end(), 1.0f);
                EXPECT_NE(codes_of(*hash, x), codes) << s;
                EXPECT_EQ(codes_of(*copy, x), codes) << s;
            }
        }
    }
}

TEST(BilinearHashes, TruncatedAndDamagedFiles) {
    const std::vector<float> x = normal_vectors(100, 12, 3);
    for (const std::string& s : all_strings) {
        for (bool trained : {false, true}) {
            const auto hash = kernel_hash_factory(12, s);
            if (trained) {
                hash->train(100, x.data());
            }
            const std::vector<uint8_t> bytes = bytes_of(*hash);
            int errors = 0;
            for (size_t i = 0; i < bytes.size(); i++) {
                const std::vector<uint8_t> part(
                        bytes.begin(), bytes.begin() + i);
                ASSERT_TRUE(throws([&] { from_bytes(part); }))
                        << i << " of " << bytes.size();
                for (int change : {1, 0x40, 0x80, 0xff}) {
                    std::vector<uint8_t> damaged = bytes;
                    damaged[i] = uint8_t(damaged[i] ^ change);
                    std::unique_ptr<faiss::VectorTransform> read;
                    try {
                        read = from_bytes(damaged);
                    } catch (const faiss::FaissException&) {
                        errors++;
                        continue;
                    }
                    auto* other = dynamic_cast<KernelHash*>(read.get());
                    ASSERT_NE(other, nullptr) << i;
                    if (other->is_trained) {
                        codes_of(*other, std::vector<float>(other->d_in, 0.5f));
                    }
                }
            }
            EXPECT_GT(errors, 20) << s;
        }
    }
}

// A hash that cannot be trained, or whose pairs are out of range, is refused
// where it is read.
TEST(BilinearHashes, PairsOutOfRangeAreRefused) {
    BilinearProjection p(3, 4, 16, 2, true, 1);
    for (bool right : {false, true}) {
        for (int bad : {-1, p.k_w, 1 << 30}) {
            BilinearProjection damaged = p;
            (right ? damaged.pair_v : damaged.pair_w)[7] = bad;
            faiss::VectorIOWriter writer;
            write_fields(damaged, &writer);
            faiss::VectorIOReader reader;
            reader.data = writer.data;
            BilinearProjection read;
            EXPECT_TRUE(throws([&] { read_fields(read, &reader); }, "damaged"));
        }
    }
}

TEST(BilinearHashes, DoNotDependOnThreadsAndBatches) {
    for (const std::string s :
         {"BSIK136(gamma=0.1)",
          "BSIK1000(gamma=0.1,w=dense)",
          "RHBE200(proj=bilinear,m=1)"}) {
        const int d = 33 * 17;
        const size_t n = 200;
        const std::vector<float> x = normal_vectors(n, d, 2);
        std::vector<uint8_t> one;
        {
            const ThreadCount threads(1);
            const auto hash = kernel_hash_factory(d, s);
            for (size_t i = 0; i < n; i++) {
                const std::vector<uint8_t> code = codes_of(
                        *hash, {x.begin() + i * d, x.begin() + (i + 1) * d});
                one.insert(one.end(), code.begin(), code.end());
            }
        }
        const ThreadCount threads(4);
        EXPECT_EQ(codes_of(*kernel_hash_factory(d, s), x), one) << s;
    }
}

TEST(BilinearHashes, InIndexes) {
    const ThreadCount threads(1);
    const int d = 12;
    const idx_t n = 500;
    const std::vector<float> xb =
            faiss_ext_test::clustered_vectors(n, d, 20, 0.1f, 1);
    const std::vector<float> xq =
            faiss_ext_test::near_vectors(xb, 20, d, 0.05f, 2);
    for (const std::string scheme :
         {"BSIK64(4x3,gamma=2)",
          "BSIK136(w=dense,m=1)", // no square
          "BSIK104",
          "RHBE72(proj=bilinear,m=2)",
          "RHBE64(proj=bilinear,shape=3x4,m=1,center=1)"}) {
        const auto hash = kernel_hash_factory(d, scheme);
        hash->train(n, xb.data());
        const auto codes = codes_of(*hash, xb), queries = codes_of(*hash, xq);
        faiss::IndexBinaryFlat by_hand(hash->nbits);
        by_hand.add(n, codes.data());
        const auto expected = faiss_ext_test::search(by_hand, queries, 5);

        auto index = faiss_ext::index_factory(d, scheme + ",BFlat");
        EXPECT_EQ(
                index->is_trained, kernel_hash_factory(d, scheme)->is_trained);
        index->train(n, xb.data());
        index->add(n, xb.data());
        const auto found = faiss_ext_test::search(*index, xq, 5);
        EXPECT_EQ(found.labels, expected.labels) << scheme;
        for (size_t i = 0; i < found.distances.size(); i++) {
            EXPECT_EQ(found.distances[i], expected.distances[i]);
        }
        faiss_ext_test::expect_same(
                faiss_ext_test::search(
                        *faiss_ext::clone_index(index.get()), xq, 5),
                found);
        faiss::VectorIOWriter writer;
        faiss_ext::write_index(index.get(), &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        const std::unique_ptr<faiss::Index> read(
                faiss_ext::read_index(&reader));
        faiss_ext_test::expect_same(
                faiss_ext_test::search(*read, xq, 5), found);

        auto binary = faiss_ext::index_binary_factory(d, scheme + ",BFlat");
        auto& of_hash =
                dynamic_cast<faiss_ext::IndexBinaryKernelHash&>(*binary);
        of_hash.train(n, xb.data());
        of_hash.add(n, xb.data());
        faiss_ext_test::expect_same(
                faiss_ext_test::search(of_hash, xq, 5), expected);
    }
}
