// AdditiveKernelHash against its theory: margins, angles of explicit maps and
// the kernels behind them, computed here in double precision.

#include <faiss_ext/hashes/AdditiveKernelHash.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>

#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing_data.h"
#include "testing_indexes.h"
#include "testing_klsh.h"
#include "testing_projections.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using faiss_ext_test::codes_of;
using faiss_ext_test::throws;
using testing_klsh::clustered_histograms;
using testing_projections::proj_dense;
using testing_projections::proj_of;
using testing_projections::proj_structured;
using testing_theory::float_unit;
using testing_theory::hoeffding;
using testing_theory::pi;
using testing_theory::plausible;
using Map = HomogeneousKernelMap;
using Window = AdditiveKernel::Window;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

std::unique_ptr<AdditiveKernelHash> make(int d, const std::string& text) {
    auto hash = kernel_hash_factory(d, text);
    return std::unique_ptr<AdditiveKernelHash>(
            &dynamic_cast<AdditiveKernelHash&>(*hash.release()));
}

std::vector<float> margins_of(
        const KernelHash& hash,
        const std::vector<float>& x) {
    const size_t n = x.size() / hash.d_in;
    std::vector<float> margins(n * hash.nbits);
    hash.apply_noalloc(n, x.data(), margins.data());
    return margins;
}

bool bit(const uint8_t* code, size_t j) {
    return code[j / 8] >> (j % 8) & 1;
}

size_t hamming(const uint8_t* a, const uint8_t* b, size_t nbits) {
    size_t count = 0;
    for (size_t j = 0; j < nbits; j++) {
        count += bit(a, j) != bit(b, j);
    }
    return count;
}

/// The map of a vector in double, and bounds of the library's errors: 1e-6 (j +
/// |j L log v|) of the amplitude (1e-6 for j = 0); with norm=l1 v itself has 4
/// roundings.
struct ExactMap {
    std::vector<double> value, bound;

    ExactMap(const Map& map, const float* x) {
        const size_t d = map.d_in;
        const bool l1 = map.norm == Map::Norm::l1;
        const double L = map.period > 0 ? 2 * pi / map.period : 0;
        double mass = 0;
        for (size_t k = 0; k < d; k++) {
            mass += std::abs(double(x[k]));
        }
        for (int c = 0; c < map.components(); c++) {
            const int j = (c + 1) / 2;
            for (size_t k = 0; k < d; k++) {
                const double v = std::abs(double(x[k])) / (l1 ? mass : 1);
                if (!(v >= 1e-37)) {
                    value.push_back(0);
                    bound.push_back(0);
                    continue;
                }
                const double angle = j * L * std::log(v);
                const double scale = map.amplitudes[j] * std::sqrt(v);
                value.push_back(
                        std::copysign(scale, x[k]) *
                        (c > 0 && c % 2 == 0 ? std::sin(angle)
                                             : std::cos(angle)));
                bound.push_back(
                        scale *
                        (1e-6 * (std::max(j, 1) + std::abs(angle)) +
                         (l1 ? 4 * float_unit * (1 + j * L) : 0)));
            }
        }
    }
};

/// what is added to a string
const std::vector<std::string> forms = {",proj=dense", ",proj=structured"};

/// The margins of a vector in double, from the map, the matrix and the
/// thresholds; a projection errs by at most product_error, and a subtraction by
/// one unit.
struct ExactMargins {
    std::vector<double> value, bound;

    ExactMargins(
            const AdditiveKernelHash& hash,
            const std::vector<float>& matrix,
            const float* x) {
        const ExactMap map(hash.map, x);
        const size_t d = hash.map.d_out;
        const double length = testing_projections::length(map.value.data(), d) +
                testing_projections::length(map.bound.data(), d);
        for (int i = 0; i < hash.nbits; i++) {
            double sum = 0, error = 0, absolute = 0;
            for (size_t k = 0; k < d; k++) {
                const double w = matrix[i * d + k];
                sum += w * map.value[k];
                absolute +=
                        std::abs(w) * (std::abs(map.value[k]) + map.bound[k]);
                error += std::abs(w) * map.bound[k];
            }
            if (!hash.threshold.empty()) {
                sum -= hash.threshold[i];
                error += float_unit * (absolute + std::abs(hash.threshold[i]));
            }
            value.push_back(sum);
            bound.push_back(
                    error +
                    testing_projections::product_error(
                            *hash.projection, i, absolute, length));
        }
    }

    size_t doubtful() const {
        size_t count = 0;
        for (size_t i = 0; i < value.size(); i++) {
            count += std::abs(value[i]) <= bound[i];
        }
        return count;
    }
};

double kernel_value(
        const std::string& kernel,
        const float* x,
        const float* y,
        size_t d) {
    double sum = 0;
    for (size_t k = 0; k < d; k++) {
        const double a = x[k], b = y[k];
        if (a == 0 || b == 0) {
            continue;
        }
        sum += kernel == "chi2"            ? 2 * a * b / (a + b)
                : kernel == "intersection" ? std::min(a, b)
                : kernel == "js"
                ? (a * std::log1p(b / a) + b * std::log1p(a / b)) /
                        std::log(4.0)
                : std::sqrt(a * b);
    }
    return sum;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); k++) {
        sum += a[k] * b[k];
    }
    return sum;
}

double normalized_angle(double cosine) {
    return std::acos(std::clamp(cosine, -1.0, 1.0)) / pi;
}

/// Histograms of many mutual angles: random ones, and mixtures of the first
/// with the others.
std::vector<float> test_histograms(size_t d, uint64_t seed) {
    std::vector<float> x = clustered_histograms(7, d, 7, 30, seed);
    for (double share : {0.001, 0.01, 0.05, 0.2, 0.5, 0.9}) {
        double sum = 0;
        for (size_t k = 0; k < d; k++) {
            x.push_back(float((1 - share) * x[k] + share * x[3 * d + k]));
            sum += x.back();
        }
        for (size_t k = 0; k < d; k++) {
            x[x.size() - d + k] = float(x[x.size() - d + k] / sum);
        }
    }
    return x;
}

struct Case {
    std::string kernel;
    int order;
};
const std::vector<Case> all_cases = {
        {"chi2", 1},
        {"chi2", 3},
        {"js", 1},
        {"intersection", 1},
        {"intersection", 10},
        {"hellinger", 0}};

std::string text_of(const Case& c, int nbits, const std::string& more = "") {
    return "AHK" + std::to_string(nbits) + "(" + c.kernel +
            ",order=" + std::to_string(c.order) + more + ")";
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

} // namespace

// For all shapes, from less than a panel of the matrix to several blocks of
// vectors.
TEST(Margins, AreProjectionsOfTheMap) {
    for (const Case& c : all_cases) {
        for (auto [d, nbits] :
             {std::pair<int, int>{1, 8},
              {2, 16},
              {5, 24},
              {16, 64},
              {33, 1032},
              {300, 72}}) {
            for (const std::string more :
                 {"",
                  ",norm=l1",
                  ",center=1",
                  ",proj=dense",
                  ",norm=l1,proj=dense",
                  ",center=1,proj=dense"}) {
                const auto hash = make(d, text_of(c, nbits, more));
                std::vector<float> x = uniform_vectors(6, d, d);
                x[d - 1] = 0;
                x[d] = 1e-30f;
                hash->train(6, x.data());
                const std::vector<float> matrix = hash->projection->matrix();
                const std::vector<float> margins = margins_of(*hash, x);
                const std::vector<uint8_t> codes = codes_of(*hash, x);
                for (size_t i = 0; i < 6; i++) {
                    const ExactMargins exact(*hash, matrix, &x[i * d]);
                    for (int j = 0; j < nbits; j++) {
                        const float margin = margins[i * nbits + j];
                        ASSERT_NEAR(margin, exact.value[j], exact.bound[j])
                                << c.kernel << more << ", d = " << d;
                        ASSERT_EQ(
                                bit(&codes[i * hash->code_size()], j),
                                margin >= 0);
                    }
                }
            }
        }
    }
}

TEST(Margins, DoNotDependOnThreadsAndBatches) {
    for (auto [d, nbits, n] :
         {std::tuple<int, int, size_t>{1, 8, 1000},
          {20, 1032, 700},
          {300, 256, 500}}) {
        const std::vector<float> x = uniform_vectors(n, d, 1);
        for (const std::string more :
             {"",
              ",center=1,norm=l1",
              ",proj=dense",
              ",center=1,norm=l1,proj=dense"}) {
            const Case c = {"chi2", 2};
            std::unique_ptr<AdditiveKernelHash> hash, other;
            std::vector<float> one(n * nbits), all;
            std::vector<uint8_t> codes;
            {
                const ThreadCount threads(1);
                hash = make(d, text_of(c, nbits, more));
                hash->train(n, x.data());
                for (size_t i = 0; i < n; i++) {
                    hash->apply_noalloc(1, &x[i * d], &one[i * nbits]);
                }
                codes = codes_of(*hash, x);
            }
            const ThreadCount threads(4);
            other = make(d, text_of(c, nbits, more));
            other->train(n, x.data());
            other->check_identical(*hash);
            EXPECT_TRUE(same_bits(
                    hash->projection->matrix(), other->projection->matrix()));
            EXPECT_TRUE(same_bits(hash->threshold, other->threshold));
            EXPECT_EQ(hash->mean_value, other->mean_value);
            EXPECT_TRUE(same_bits(margins_of(*other, x), one));
            EXPECT_EQ(codes_of(*other, x), codes);
        }
    }
}

// Independent bits, proj=dense.
// Two vectors differ in a bit with the probability of the angle of their maps
// (exactly, but for bits that rounding may decide), which is near that of the
// kernel: with |K - Psi . Psi| <= delta the cosine is between (K - delta) and
// (K
// + delta) over |Psi|^2; and between the paper's bounds f and g. delta is the
// true one of these vectors, by the maps in double.
TEST(Theory, HammingTellsTheKernel) {
    const int nbits = 8192;
    const size_t d = 20;
    for (const Case& c : all_cases) {
        const auto hash = make(d, text_of(c, nbits, ",seed=7,proj=dense"));
        const std::vector<float> matrix = hash->projection->matrix();
        const std::vector<float> x = test_histograms(d, 5);
        const size_t n = x.size() / d;
        const std::vector<uint8_t> codes = codes_of(*hash, x);
        std::vector<ExactMap> maps;
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < n; i++) {
            maps.emplace_back(hash->map, &x[i * d]);
            doubtful.push_back(
                    ExactMargins(*hash, matrix, &x[i * d]).doubtful());
        }
        const double squared = hash->map.squared_norm();
        // masses are 1 but for rounding
        double delta = std::abs(1 - squared) + d * float_unit;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double k =
                        kernel_value(c.kernel, &x[i * d], &x[j * d], d);
                delta = std::max(
                        delta,
                        std::abs(k - dot(maps[i].value, maps[j].value)) +
                                d * float_unit);
            }
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double k =
                        kernel_value(c.kernel, &x[i * d], &x[j * d], d);
                const double cosine = dot(maps[i].value, maps[j].value) /
                        std::sqrt(dot(maps[i].value, maps[i].value) *
                                  dot(maps[j].value, maps[j].value));
                const double p = normalized_angle(cosine);
                const size_t unsure = doubtful[i] + doubtful[j];
                const size_t ham =
                        hamming(&codes[i * hash->code_size()],
                                &codes[j * hash->code_size()],
                                nbits);
                const std::string what = c.kernel + " of order " +
                        std::to_string(c.order) + ", k = " + std::to_string(k) +
                        ", " + std::to_string(ham) + " bits";
                EXPECT_TRUE(plausible(ham, nbits, p, p, unsure)) << what;
                EXPECT_NEAR(
                        ham / double(nbits),
                        p,
                        hoeffding(nbits) + unsure / double(nbits))
                        << what;
                EXPECT_TRUE(plausible(
                        ham,
                        nbits,
                        normalized_angle((k + delta) / squared),
                        normalized_angle((k - delta) / squared),
                        unsure))
                        << what;
                EXPECT_TRUE(plausible(
                        ham,
                        nbits,
                        AdditiveKernelHash::lower_bound(k, delta),
                        AdditiveKernelHash::upper_bound(k, delta),
                        unsure))
                        << what;
                // the estimate: the cosine changes by at most pi times the
                // error of the angle's share
                EXPECT_NEAR(
                        hash->kernel_estimate(ham),
                        std::max(cosine, 0.0),
                        pi * (hoeffding(nbits) + unsure / double(nbits)))
                        << what;
            }
        }
    }
}

// Independent seeds: the deviation of Ham / nbits is above e with probability
// at most 2 exp(-2 nbits e^2) for one pair, with proj=dense.
TEST(Theory, DeviationsOfOnePair) {
    const size_t d = 10;
    const int nbits = 64, trials = 1000;
    const std::vector<float> x = clustered_histograms(2, d, 2, 30, 3);
    const Map map(d, Chi2Kernel());
    const ExactMap a(map, &x[0]), b(map, &x[d]);
    const double p = normalized_angle(
            dot(a.value, b.value) /
            std::sqrt(dot(a.value, a.value) * dot(b.value, b.value)));
    size_t total = 0;
    std::vector<int> beyond(4);
    for (int seed = 0; seed < trials; seed++) {
        const AdditiveKernelHash hash(map, nbits, false, seed, proj_dense);
        const std::vector<uint8_t> codes = codes_of(hash, x);
        const size_t ham = hamming(&codes[0], &codes[8], nbits);
        total += ham;
        for (int i = 0; i < 4; i++) {
            beyond[i] += std::abs(ham / double(nbits) - p) > 0.1 + 0.04 * i;
        }
    }
    EXPECT_TRUE(plausible(total, double(nbits) * trials, p, p, 2));
    for (int i = 0; i < 4; i++) {
        const double e = 0.1 + 0.04 * i;
        EXPECT_TRUE(plausible(
                beyond[i], trials, 0, 2 * std::exp(-2 * nbits * e * e)))
                << beyond[i] << " beyond " << e;
    }
}

// For any map with |K - Psi . Psi| <= delta and |Psi|^2 from 1 - delta to 1 the
// angle is between f and g. (g is meant for u >= delta.)
TEST(Theory, BoundsOfThePaper) {
    for (double delta : {0.0, 0.001, 0.01, 0.05, 0.2}) {
        for (double u = delta; u <= 1; u += 1.0 / 64) {
            const double v = (u + delta) / (1 - delta), w = u - delta;
            EXPECT_NEAR(
                    AdditiveKernelHash::lower_bound(u, delta),
                    0.5 - v / pi - 3 / (5 * pi) * std::pow(v, 3),
                    1e-14);
            EXPECT_NEAR(
                    AdditiveKernelHash::upper_bound(u, delta),
                    0.5 - w / pi - std::pow(w, 3) / (6 * pi),
                    1e-14);
            for (double squared : {1 - delta, 1 - delta / 2, 1.0}) {
                for (double error : {-delta, 0.0, delta}) {
                    const double p = normalized_angle((u + error) / squared);
                    EXPECT_LE(
                            AdditiveKernelHash::lower_bound(u, delta),
                            p + 1e-15);
                    EXPECT_GE(
                            AdditiveKernelHash::upper_bound(u, delta),
                            p - 1e-15);
                }
            }
        }
    }
}

TEST(Theory, EstimatesInvertExpectedDistances) {
    for (const std::string more : {"", ",center=1"}) {
        const size_t d = 12;
        const auto hash = make(d, text_of({"chi2", 1}, 256, more));
        const std::vector<float> x = clustered_histograms(300, d, 3, 30, 1);
        hash->train(300, x.data());
        const double m = hash->mean_value;
        EXPECT_TRUE(more.empty() ? m == 0 : m > 0.1 && m < 0.99) << m;
        double before = 257;
        for (double k = 0; k <= 1; k += 1.0 / 32) {
            const double expected = 256 * normalized_angle((k - m) / (1 - m));
            const double got = hash->expected_hamming(k);
            EXPECT_NEAR(got, expected, 1e-10);
            EXPECT_LE(got, before); // constant where (k - m) / (1 - m) < -1
            before = got;
            if (k - m > m - 1) {
                EXPECT_NEAR(hash->kernel_estimate(got), k, 1e-7);
            }
        }
        EXPECT_EQ(hash->expected_hamming(1), 0);
        EXPECT_EQ(hash->kernel_estimate(0), 1);
        // beyond the range
        EXPECT_GE(hash->kernel_estimate(256), 0);
        EXPECT_NEAR(
                hash->kernel_estimate(256), std::max(0.0, 2 * m - 1), 1e-12);
        for (double bad : {-0.01, 1.01, double(nan_value)}) {
            EXPECT_TRUE(
                    throws([&] { hash->expected_hamming(bad); },
                           "expected a value from 0 to 1"));
        }
        for (double bad : {-1.0, 256.5, double(nan_value)}) {
            EXPECT_TRUE(throws([&] { hash->kernel_estimate(bad); }));
        }
    }
}

// Psi(c x) is sqrt(c) Psi(x) turned by the angles j L log c: the bits of x and
// c x differ with the share of the angle whose cosine is map_signature(log c) /
// squared_norm(), near K(log c). For Hellinger's kernel nothing turns. Bits are
// independent, proj=dense.
TEST(Scale, TurnsTheMap) {
    const size_t d = 20;
    const int nbits = 4096;
    const std::vector<float> x = clustered_histograms(1, d, 1, 30, 3);
    for (const Case& c : all_cases) {
        const auto hash = make(d, text_of(c, nbits, ",proj=dense"));
        const std::vector<float> matrix = hash->projection->matrix();
        const std::vector<uint8_t> codes = codes_of(*hash, x);
        const size_t unsure = ExactMargins(*hash, matrix, &x[0]).doubtful();
        for (int power : {-20, -2, 2, 4, 20}) {
            std::vector<float> scaled = x;
            for (float& v : scaled) {
                v = std::ldexp(v, power);
            }
            const size_t ham = hamming(
                    codes.data(), codes_of(*hash, scaled).data(), nbits);
            if (c.kernel == "hellinger") {
                EXPECT_EQ(ham, 0u); // powers of 4: exact
                continue;
            }
            const double p = normalized_angle(
                    hash->map.map_signature(power * std::log(2.0)) /
                    hash->map.squared_norm());
            EXPECT_TRUE(plausible(
                    ham,
                    nbits,
                    p,
                    p,
                    unsure +
                            ExactMargins(*hash, matrix, &scaled[0]).doubtful()))
                    << c.kernel << ", " << power << ": " << ham << " bits, p "
                    << p;
        }
    }
}

// norm=l1 takes a power of two out exactly, other scales up to the bits that
// rounding decides.
TEST(Scale, NormL1TakesItOut) {
    const size_t d = 20;
    const int nbits = 1024;
    const std::vector<float> x = clustered_histograms(8, d, 3, 30, 3);
    for (const Case& c : all_cases) {
        for (const std::string more :
             {"0", "1", "0,proj=dense", "1,proj=dense"}) {
            const auto hash =
                    make(d, text_of(c, nbits, ",norm=l1,center=" + more));
            hash->train(8, x.data());
            const std::vector<uint8_t> codes = codes_of(*hash, x);
            for (int power : {-80, -1, 1, 7, 90}) {
                std::vector<float> scaled = x;
                for (float& v : scaled) {
                    v = std::ldexp(v, power);
                }
                EXPECT_EQ(codes_of(*hash, scaled), codes) << power;
            }
            const std::vector<float> matrix = hash->projection->matrix();
            std::vector<float> scaled = x;
            for (float& v : scaled) {
                v *= 3;
            }
            const std::vector<uint8_t> others = codes_of(*hash, scaled);
            for (size_t i = 0; i < 8; i++) {
                const size_t at = i * hash->code_size();
                EXPECT_LE(
                        hamming(&codes[at], &others[at], nbits),
                        ExactMargins(*hash, matrix, &x[i * d]).doubtful() +
                                ExactMargins(*hash, matrix, &scaled[i * d])
                                        .doubtful());
            }
        }
    }
}

TEST(Scale, RowsOfZeros) {
    for (const Case& c : all_cases) {
        for (const std::string norm :
             {"none", "l1", "none,proj=dense", "l1,proj=dense"}) {
            const std::vector<float> zeros(30);
            const auto hash = make(15, text_of(c, 64, ",norm=" + norm));
            EXPECT_EQ(codes_of(*hash, zeros), std::vector<uint8_t>(16, 255));
            const auto centered =
                    make(15, text_of(c, 64, ",center=1,norm=" + norm));
            const std::vector<float> x = uniform_vectors(50, 15, 1);
            centered->train(50, x.data());
            const std::vector<uint8_t> codes = codes_of(*centered, zeros);
            for (int j = 0; j < 64; j++) {
                EXPECT_EQ(bit(&codes[0], j), centered->threshold[j] <= 0);
            }
            // all training vectors 0: the mean is 0
            const auto nothing =
                    make(15, text_of(c, 64, ",center=1,norm=" + norm));
            nothing->train(2, zeros.data());
            EXPECT_EQ(codes_of(*nothing, zeros), std::vector<uint8_t>(16, 255));
            EXPECT_EQ(nothing->mean_value, 0);
        }
    }
}

// The threshold is w . mu for the mean mu of the maps, of which the library
// rounds each component once to float; mean_value is |mu|^2 / mean |Psi|^2.
TEST(Center, ThresholdIsThatOfTheMean) {
    for (const Case& c : all_cases) {
        for (const std::string& form : forms) {
            const size_t d = 14, n = 2500;
            const auto hash = make(d, text_of(c, 96, ",center=1" + form));
            EXPECT_FALSE(hash->is_trained);
            const std::vector<float> x = clustered_histograms(n, d, 5, 30, 3);
            hash->train(n, x.data());
            EXPECT_TRUE(hash->is_trained);
            ASSERT_EQ(hash->threshold.size(), 96u);
            const size_t size = hash->map.d_out;
            std::vector<double> mean(size);
            std::vector<float> mapped(n * size);
            hash->map.apply_noalloc(n, x.data(), mapped.data());
            double squares = 0;
            for (size_t i = 0; i < n; i++) {
                for (size_t k = 0; k < size; k++) {
                    const double v = mapped[i * size + k];
                    mean[k] += v / n;
                    squares += v * v / n;
                }
            }
            const std::vector<float> matrix = hash->projection->matrix();
            for (int j = 0; j < 96; j++) {
                double sum = 0, absolute = 0;
                for (size_t k = 0; k < size; k++) {
                    sum += mean[k] * matrix[j * size + k];
                    absolute += std::abs(mean[k] * matrix[j * size + k]);
                }
                const double error = testing_projections::product_error(
                        *hash->projection,
                        j,
                        absolute,
                        testing_projections::length(mean.data(), size));
                EXPECT_NEAR(
                        hash->threshold[j],
                        sum,
                        error + 2 * float_unit * absolute);
            }
            // one rounding of each mean and of each |Psi|^2, and of their mean
            const double expected = dot(mean, mean) / squares;
            EXPECT_NEAR(hash->mean_value, expected, 6 * float_unit * expected);
        }
    }
}

// The margins of the training vectors have mean 0, so that no bit is constant;
// and bits are far better balanced than without.
TEST(Center, BalancesTheBits) {
    const size_t d = 20, n = 2000;
    const int nbits = 256;
    const std::vector<float> x = clustered_histograms(n, d, 10, 30, 3);
    for (const Case& c : all_cases) {
        for (const std::string& form : forms) {
            const auto imbalance = [&](const AdditiveKernelHash& hash) {
                const std::vector<uint8_t> codes = codes_of(hash, x);
                double sum = 0;
                for (int j = 0; j < nbits; j++) {
                    size_t ones = 0;
                    for (size_t i = 0; i < n; i++) {
                        ones += bit(&codes[i * hash.code_size()], j);
                    }
                    if (hash.center) {
                        EXPECT_TRUE(ones > 0 && ones < n) << "bit " << j;
                    }
                    sum += std::abs(ones / double(n) - 0.5);
                }
                return sum / nbits;
            };
            const auto plain = make(d, text_of(c, nbits, form));
            const auto centered =
                    make(d, text_of(c, nbits, ",center=1" + form));
            centered->train(n, x.data());
            EXPECT_LT(imbalance(*centered), imbalance(*plain) / 2) << c.kernel;
            const std::vector<float> margins = margins_of(*centered, x);
            const std::vector<float> matrix = centered->projection->matrix();
            const size_t size = centered->map.d_out;
            for (int j = 0; j < nbits; j++) {
                double sum = 0;
                for (size_t i = 0; i < n; i++) {
                    sum += margins[i * nbits + j] / double(n);
                }
                // the errors of two products, and three roundings: the sum of
                // |w| |Psi| is at most |w| |Psi|
                double w = 0;
                for (size_t k = 0; k < size; k++) {
                    w += double(matrix[j * size + k]) * matrix[j * size + k];
                }
                const double squared = centered->map.squared_norm();
                const double error = testing_projections::product_error(
                        *centered->projection,
                        j,
                        std::sqrt(w * squared),
                        std::sqrt(squared));
                EXPECT_NEAR(
                        sum, 0, 2 * (error + 1e-6 * std::sqrt(w * squared)));
            }
        }
    }
}

// Bits differ with the angle as seen from the mean: w . (Psi(x) - mu) >= 0;
// they are independent, proj=dense.
TEST(Center, HammingTellsTheAngleFromTheMean) {
    const size_t d = 20;
    const int nbits = 8192;
    const std::vector<float> train = clustered_histograms(500, d, 4, 30, 9);
    const std::vector<float> x = test_histograms(d, 5);
    const size_t n = x.size() / d;
    for (const Case& c : all_cases) {
        const auto hash = make(d, text_of(c, nbits, ",center=1,proj=dense"));
        hash->train(500, train.data());
        const std::vector<float> matrix = hash->projection->matrix();
        std::vector<double> mean(hash->map.d_out);
        for (size_t i = 0; i < 500; i++) {
            const ExactMap map(hash->map, &train[i * d]);
            for (size_t k = 0; k < mean.size(); k++) {
                mean[k] += map.value[k] / 500;
            }
        }
        std::vector<std::vector<double>> maps;
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < n; i++) {
            maps.push_back(ExactMap(hash->map, &x[i * d]).value);
            for (size_t k = 0; k < mean.size(); k++) {
                maps[i][k] -= mean[k];
            }
            ExactMargins exact(*hash, matrix, &x[i * d]);
            // the threshold is that of the true mean up to 1e-5 |w| |mu|, and
            // its projection's error
            for (int j = 0; j < nbits; j++) {
                exact.bound[j] *= 3;
            }
            doubtful.push_back(exact.doubtful());
        }
        const std::vector<uint8_t> codes = codes_of(*hash, x);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double p = normalized_angle(
                        dot(maps[i], maps[j]) /
                        std::sqrt(
                                dot(maps[i], maps[i]) * dot(maps[j], maps[j])));
                const size_t ham =
                        hamming(&codes[i * hash->code_size()],
                                &codes[j * hash->code_size()],
                                nbits);
                EXPECT_TRUE(
                        plausible(ham, nbits, p, p, doubtful[i] + doubtful[j]))
                        << c.kernel << ": " << ham << " bits, p = " << p;
            }
        }
    }
}

// What is trained stays as it is; without center there is nothing to train.
TEST(Center, TrainingAgainDoesNothing) {
    const size_t d = 6;
    const std::vector<float> x = uniform_vectors(40, d, 1);
    const std::vector<float> y = uniform_vectors(40, d, 2, 0, 9);
    for (const std::string& form : forms) {
        const auto hash = make(d, "AHK64(chi2,center=1" + form + ")");
        hash->train(40, x.data());
        const AdditiveKernelHash before = *hash;
        hash->train(40, y.data());
        hash->check_identical(before);
        EXPECT_EQ(codes_of(*hash, y), codes_of(before, y));
        const auto plain = make(d, "AHK64(chi2" + form + ")");
        const AdditiveKernelHash plain_before = *plain;
        EXPECT_TRUE(plain->is_trained);
        plain->train(40, x.data());
        plain->check_identical(plain_before);
        EXPECT_TRUE(plain->threshold.empty());
        EXPECT_EQ(plain->mean_value, 0);
        // and checks what it is given even so
        const std::vector<float> bad(d, -1);
        EXPECT_TRUE(throws([&] { plain->train(1, bad.data()); }, ">= 0"));
    }
}

// Equal training vectors: mean_value is 1 (or just below), and the expected
// distance of others half of the bits.
TEST(Center, EqualTrainingVectors) {
    const auto hash = make(4, "AHK64(chi2,center=1)");
    const std::vector<float> x(12, 0.25f);
    hash->train(3, x.data());
    EXPECT_NEAR(hash->mean_value, 1, 6 * float_unit);
    EXPECT_EQ(hash->expected_hamming(1), 0);
    EXPECT_TRUE(std::isfinite(hash->expected_hamming(0.5)));
    EXPECT_GE(hash->expected_hamming(0.5), 32);
    EXPECT_NEAR(hash->kernel_estimate(10), 1, 12 * float_unit);
}

// One factor for all vectors turns all maps alike: angles from the mean stay.
// The errors of the map grow with the logarithm, to 1e-6 (1 + L 90) < 1e-4, and
// enter twice.
TEST(Center, MeanOfVectorsOfAnySize) {
    const size_t d = 20, n = 200;
    const std::vector<float> x = clustered_histograms(n, d, 4, 30, 9);
    const auto hash = make(d, "AHK64(chi2,center=1)");
    hash->train(n, x.data());
    for (int power : {-60, -20, 20, 100, 120}) {
        std::vector<float> scaled = x;
        for (float& v : scaled) {
            v = std::ldexp(std::max(v, 1e-9f), power);
        }
        const auto other = make(d, "AHK64(chi2,center=1)");
        other->train(n, scaled.data());
        EXPECT_NEAR(other->mean_value, hash->mean_value, 5e-4) << power;
        for (float v : other->threshold) {
            EXPECT_TRUE(std::isfinite(v));
        }
    }
    // large components of many: |Psi|^2 is beyond the largest float
    const size_t wide = 150;
    std::vector<float> small = uniform_vectors(n, wide, 3, 0.5, 1);
    std::vector<float> large = small;
    for (float& v : large) {
        v = std::ldexp(v, 122);
    }
    const auto one = make(wide, "AHK64(chi2,center=1)");
    const auto two = make(wide, "AHK64(chi2,center=1)");
    one->train(n, small.data());
    two->train(n, large.data());
    EXPECT_NEAR(one->mean_value, two->mean_value, 5e-4);
}

// A sample of at most 65,536 vectors: by Hoeffding (who covers draws without
// replacement) its mean is near that of all, component by component, each of a
// range of at most twice the amplitude.
TEST(Center, ManyTrainingVectors) {
    const size_t d = 2, n = 70000;
    const std::vector<float> x = uniform_vectors(n, d, 3);
    for (const std::string& form : forms) {
        const auto hash = make(d, "AHK8(chi2,center=1" + form + ")");
        hash->train(n, x.data());
        const size_t size = hash->map.d_out;
        std::vector<float> mapped(n * size);
        hash->map.apply_noalloc(n, x.data(), mapped.data());
        std::vector<double> mean(size);
        for (size_t i = 0; i < mapped.size(); i++) {
            mean[i % size] += mapped[i] / double(n);
        }
        const std::vector<float> matrix = hash->projection->matrix();
        for (int j = 0; j < 8; j++) {
            double sum = 0, bound = 0, absolute = 0;
            for (size_t k = 0; k < size; k++) {
                const double w = matrix[j * size + k];
                const double a = hash->map.amplitudes[(k / d + 1) / 2];
                sum += w * mean[k];
                absolute += std::abs(w) * a;
                bound += std::abs(w) * a * (hoeffding(65536, 2) + 1e-6);
            }
            EXPECT_NEAR(
                    hash->threshold[j],
                    sum,
                    bound +
                            testing_projections::product_error(
                                    *hash->projection,
                                    j,
                                    absolute,
                                    std::sqrt(d * hash->map.squared_norm())));
        }
    }
}

// proj=dense: independent entries.
TEST(Matrix, EntriesAreNormal) {
    const Map map(100, Chi2Kernel());
    const AdditiveKernelHash hash(map, 256, false, 5, proj_dense);
    EXPECT_EQ(hash.projection->d_in, 300);
    EXPECT_EQ(hash.projection->d_out, 256);
    const std::vector<float> A = hash.projection->matrix();
    const auto cdf = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
    const std::vector<double> all(A.begin(), A.end());
    EXPECT_LT(
            testing_theory::kolmogorov_smirnov(all, cdf),
            testing_theory::kolmogorov_smirnov_limit(all.size()));
    // products of independent normal numbers, within a row and between rows:
    // signs agree in half of the pairs
    for (size_t shift : {size_t(1), size_t(300), size_t(301)}) {
        size_t agree = 0, total = 0;
        for (size_t i = 0; i + shift < A.size(); i += 2 * shift) {
            for (size_t k = i; k < std::min(i + shift, A.size() - shift); k++) {
                agree += (A[k] > 0) == (A[k + shift] > 0);
                total++;
            }
        }
        EXPECT_TRUE(plausible(agree, total, 0.5, 0.5)) << shift;
    }
}

// A row depends on the seed and its number alone.
TEST(Matrix, RowsAndSeeds) {
    const Map map(10, Chi2Kernel());
    for (bool structured : {false, true}) {
        const AdditiveKernelHash small(map, 16, false, 5, proj_of(structured)),
                large(map, 64, false, 5, proj_of(structured));
        const std::vector<float> a = small.projection->matrix();
        std::vector<float> b = large.projection->matrix();
        b.resize(a.size());
        EXPECT_EQ(a, b);
        small.check_identical(
                AdditiveKernelHash(map, 16, false, 5, proj_of(structured)));
        std::vector<std::vector<float>> drawn = {a};
        for (int64_t seed :
             {int64_t(0), int64_t(6), int64_t(5) << 32, INT64_MAX}) {
            const AdditiveKernelHash other(
                    map, 16, false, seed, proj_of(structured));
            EXPECT_EQ(other.seed, seed);
            EXPECT_TRUE(throws([&] { small.check_identical(other); }));
            drawn.push_back(other.projection->matrix());
            for (size_t i = 0; i + 1 < drawn.size(); i++) {
                EXPECT_NE(drawn[i], drawn.back()) << seed;
            }
        }
    }
}

TEST(Errors, Untrained) {
    const auto hash = make(4, "AHK16(chi2,center=1)");
    const std::vector<float> x = uniform_vectors(8, 4, 1);
    EXPECT_TRUE(throws([&] { codes_of(*hash, x); }, "not trained"));
    EXPECT_TRUE(throws([&] { margins_of(*hash, x); }, "not trained"));
    EXPECT_TRUE(throws([&] { hash->train(0, x.data()); }, "no vectors"));
    std::vector<float> bad = x;
    bad[6] = -0.5f;
    EXPECT_TRUE(throws(
            [&] { hash->train(8, bad.data()); }, "component 2 of vector 1"));
    EXPECT_FALSE(hash->is_trained);
    EXPECT_TRUE(hash->threshold.empty());
    hash->train(8, x.data());
    codes_of(*hash, x);
}

TEST(Errors, BadInput) {
    for (const std::string more : {"", ",norm=l1", ",negative=sign"}) {
        const auto hash = make(4, "AHK16(js" + more + ")");
        const bool sign = hash->map.negative == Map::Negative::sign;
        for (float value : {-1.0f, -1e-45f, nan_value, infinity, -infinity}) {
            std::vector<float> x = uniform_vectors(5, 4, 1);
            x[15] = value;
            if (sign && std::isfinite(value)) {
                codes_of(*hash, x);
                continue;
            }
            const std::string text = sign ? "expected a finite number"
                                          : "expected a finite number >= 0";
            for (const std::function<void()>& call :
                 {std::function<void()>([&] { codes_of(*hash, x); }),
                  std::function<void()>([&] { margins_of(*hash, x); }),
                  std::function<void()>([&] { hash->train(5, x.data()); })}) {
                const std::string error = message_of(call);
                EXPECT_TRUE(contains(error, text)) << error;
                EXPECT_TRUE(contains(error, "component 3 of vector 3"))
                        << error;
            }
        }
        uint8_t code[2];
        EXPECT_TRUE(throws([&] { hash->encode(1, nullptr, code); }, "null"));
        EXPECT_TRUE(throws([&] { hash->encode(-1, nullptr, code); }, "-1"));
        hash->encode(0, nullptr, code);
    }
}

TEST(Errors, Parameters) {
    const Map map(4, Chi2Kernel());
    for (int nbits : {0, -8, 12}) {
        EXPECT_TRUE(throws([&] { AdditiveKernelHash(map, nbits); }, "bits"));
    }
    // a map that was never made
    EXPECT_TRUE(throws([&] { AdditiveKernelHash(Map(), 8); }, "dimension"));
}

TEST(Strings, AllKeys) {
    const auto hash = make(
            5,
            "AHK512(intersection,order=3,center=1,seed=9,proj=dense,period=8,"
            "window=rectangular,degree=0.5,negative=sign,norm=l1)");
    EXPECT_EQ(hash->nbits, 512);
    EXPECT_EQ(hash->d_in, 5);
    EXPECT_EQ(hash->d_out, 512);
    EXPECT_TRUE(hash->center);
    EXPECT_FALSE(hash->is_trained);
    EXPECT_EQ(hash->seed, 9);
    EXPECT_EQ(hash->map.order, 3);
    EXPECT_EQ(hash->map.period, 8);
    EXPECT_EQ(hash->map.window, Window::rectangular);
    EXPECT_EQ(hash->map.degree, 0.5);
    EXPECT_EQ(hash->map.negative, Map::Negative::sign);
    EXPECT_EQ(hash->map.norm, Map::Norm::l1);
    hash->check_identical(
            AdditiveKernelHash(hash->map, 512, true, 9, proj_dense));
    make(5, "AHK64(chi2,seed=9,proj=structured)")
            ->check_identical(
                    AdditiveKernelHash(Map(5, Chi2Kernel()), 64, false, 9));

    const auto plain = make(5, "AHK1024(chi2)");
    EXPECT_EQ(plain->map.order, 1);
    EXPECT_FALSE(plain->center);
    EXPECT_EQ(plain->seed, 1234);
    EXPECT_TRUE(plain->is_trained);
    plain->check_identical(AdditiveKernelHash(Map(5, Chi2Kernel()), 1024));
    EXPECT_EQ(make(5, "AHK8(js)")->map.kernel->description(), "js");
    EXPECT_EQ(make(5, "AHK8(hellinger)")->map.d_out, 5);
}

TEST(Strings, Errors) {
    const std::vector<std::vector<std::string>> cases = {
            {"AHK(chi2)", "expected the number of bits"},
            {"AHK12(chi2)", "invalid number of bits '12'"},
            {"AHK64", "AHK needs an argument", "intersection"},
            {"AHK64()", "expected an argument"},
            {"AHK64(gaussian)", "unknown kernel 'gaussian'", "hellinger"},
            {"AHK64(nothing)", "unknown kernel 'nothing'", "chi2"},
            {"AHK64(chi2,foo=1)", "unknown key 'foo'", "center="},
            {"AHK64(chi2,gamma=1)", "unknown key 'gamma'", "order="},
            {"AHK64(chi2,js)", "unknown argument 'js'"},
            {"AHK64(chi2,order=-1)", "'-1' of order"},
            {"AHK64(chi2,order=101)", "'101' of order"},
            {"AHK64(chi2,order=1.5)", "'1.5' of order"},
            {"AHK64(chi2,center=2)", "'2' of center"},
            {"AHK64(chi2,seed=-1)", "'-1' of seed"},
            {"AHK64(chi2,proj=sparse)",
             "'sparse' of proj",
             "structured",
             "dense"},
            {"AHK64(chi2,proj=bilinear)", "'bilinear' of proj", "dense"},
            {"AHK64(chi2,norm=l2)", "'l2' of norm", "l1"},
            {"AHK64(chi2,window=x)", "'x' of window", "rectangular"},
            {"AHK64(chi2,negative=x)", "'x' of negative", "sign"},
            {"AHK64(chi2,degree=3)", "'3' of degree"},
            {"AHK64(chi2,period=nan)", "'nan' of period"},
            {"AHK64(chi2,center=1,center=1)", "center is given twice"}};
    for (const auto& c : cases) {
        const std::string error = message_of([&] { make(8, c[0]); });
        for (const std::string& part : c) {
            EXPECT_TRUE(contains(error, part))
                    << "'" << part << "' is missing: " << error;
        }
    }
}

namespace {

/// Hashes of every kind, and some vectors for each.
std::vector<std::unique_ptr<AdditiveKernelHash>> various_hashes() {
    std::vector<std::unique_ptr<AdditiveKernelHash>> all;
    all.push_back(make(3, "AHK8(chi2)"));
    all.push_back(make(3, "AHK24(hellinger,seed=77)"));
    all.push_back(make(2, "AHK16(js,order=2,window=rectangular,norm=l1)"));
    all.push_back(make(2, "AHK16(chi2,center=1,negative=sign)"));
    all.push_back(make(3, "AHK24(chi2,proj=dense)"));
    all.push_back(make(2, "AHK16(chi2,center=1,proj=dense)"));
    all.push_back(make(2, "AHK16(intersection,center=1)"));
    const std::vector<float> x = uniform_vectors(20, 2, 3);
    all.back()->train(20, x.data());
    return all;
}

} // namespace

TEST(Copies, GiveTheSameCodes) {
    for (auto& hash : various_hashes()) {
        const std::vector<float> x = uniform_vectors(20, hash->d_in, 5);
        const auto read = from_bytes(bytes_of(*hash));
        const AdditiveKernelHash copy = *hash;
        const auto clone = hash->clone();
        for (const faiss::VectorTransform* other :
             {static_cast<const faiss::VectorTransform*>(&copy),
              static_cast<const faiss::VectorTransform*>(clone.get()),
              static_cast<const faiss::VectorTransform*>(read.get())}) {
            auto& ahk = dynamic_cast<const AdditiveKernelHash&>(*other);
            hash->check_identical(ahk);
            EXPECT_NE(ahk.map.kernel.get(), hash->map.kernel.get());
            EXPECT_EQ(ahk.is_trained, hash->is_trained);
            EXPECT_EQ(ahk.center, hash->center);
            EXPECT_EQ(ahk.seed, hash->seed);
            EXPECT_EQ(ahk.mean_value, hash->mean_value);
            EXPECT_EQ(ahk.threshold, hash->threshold);
            EXPECT_EQ(ahk.d_out, ahk.nbits);
            EXPECT_EQ(ahk.map.d_out, hash->map.d_out);
            AdditiveKernelHash mine = *hash, theirs = ahk;
            mine.train(20, x.data());
            theirs.train(20, x.data());
            EXPECT_EQ(codes_of(mine, x), codes_of(theirs, x));
            EXPECT_EQ(margins_of(mine, x), margins_of(theirs, x));
        }
    }
}

TEST(Copies, DifferencesAreSeen) {
    const auto hash = make(4, "AHK16(chi2)");
    for (const char* text :
         {"AHK24(chi2)",
          "AHK16(js)",
          "AHK16(chi2,order=2)",
          "AHK16(chi2,center=1)",
          "AHK16(chi2,seed=1)",
          "AHK16(chi2,norm=l1)",
          "AHK16(chi2,negative=sign)",
          "AHK16(chi2,period=9)",
          "AHK16(chi2,proj=dense)",
          "RHBE16"}) {
        const auto other = kernel_hash_factory(4, text);
        EXPECT_TRUE(throws([&] { hash->check_identical(*other); })) << text;
    }
}

TEST(Copies, TruncatedFiles) {
    for (auto& hash : various_hashes()) {
        const std::vector<uint8_t> bytes = bytes_of(*hash);
        for (size_t size = 0; size < bytes.size(); size++) {
            const std::vector<uint8_t> part(
                    bytes.begin(), bytes.begin() + size);
            ASSERT_TRUE(throws([&] { from_bytes(part); }))
                    << size << " of " << bytes.size();
        }
    }
}

// What is read from a damaged file is an error or a hash that can be used.
TEST(Copies, DamagedFiles) {
    for (auto& hash : various_hashes()) {
        const std::vector<uint8_t> bytes = bytes_of(*hash);
        int objects = 0, errors = 0;
        for (size_t i = 0; i < bytes.size(); i++) {
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
                objects++;
                auto* ahk = dynamic_cast<AdditiveKernelHash*>(read.get());
                ASSERT_NE(ahk, nullptr) << i;
                if (ahk->is_trained) {
                    codes_of(*ahk, std::vector<float>(ahk->d_in, 0.5f));
                }
                const double expected = ahk->expected_hamming(0.5);
                EXPECT_TRUE(expected >= 0 && expected <= ahk->nbits);
            }
        }
        EXPECT_GT(objects, 0);
        EXPECT_GT(errors, 20);
    }
}

// What an index finds is what its storage finds for the codes.
TEST(Indexes, FindWhatTheCodesFind) {
    const ThreadCount threads(1);
    const int d = 12;
    const std::vector<float> xb = clustered_histograms(600, d, 20, 30, 1);
    const std::vector<float> xq = clustered_histograms(30, d, 20, 30, 1);
    for (const std::string scheme :
         {"AHK64(chi2)",
          "AHK64(chi2,proj=dense)",
          "AHK64(intersection,order=3,center=1)",
          "AHK64(js,norm=l1)"}) {
        const auto hash = make(d, scheme);
        hash->train(600, xb.data());
        const auto codes = codes_of(*hash, xb), queries = codes_of(*hash, xq);
        for (const std::string storage : {"BFlat", "BHash12", "BHash4x12"}) {
            const std::string text = scheme + "," + storage;
            const std::unique_ptr<faiss::IndexBinary> by_hand(
                    faiss::index_binary_factory(64, storage.c_str()));
            by_hand->add(600, codes.data());
            const auto expected = faiss_ext_test::search(*by_hand, queries, 5);

            auto made = faiss_ext::index_binary_factory(d, text);
            auto& binary = dynamic_cast<IndexBinaryKernelHash&>(*made);
            binary.train(600, xb.data());
            binary.add(600, xb.data());
            faiss_ext_test::expect_same(
                    faiss_ext_test::search(binary, xq, 5), expected);
            const auto clone = faiss_ext::clone_binary_index(&binary);
            faiss_ext_test::expect_same(
                    faiss_ext_test::search(
                            dynamic_cast<IndexBinaryKernelHash&>(*clone),
                            xq,
                            5),
                    expected);

            auto index = faiss_ext::index_factory(d, text);
            index->train(600, xb.data());
            index->add(600, xb.data());
            const auto found = faiss_ext_test::search(*index, xq, 5);
            EXPECT_EQ(found.labels, expected.labels);
            for (size_t i = 0; i < found.labels.size(); i++) {
                if (found.labels[i] >= 0) {
                    EXPECT_EQ(found.distances[i], float(expected.distances[i]));
                }
            }
            faiss::VectorIOWriter writer;
            faiss_ext::write_index(index.get(), &writer);
            faiss::VectorIOReader reader;
            reader.data = writer.data;
            faiss_ext_test::expect_same(
                    faiss_ext_test::search(
                            *faiss_ext::read_index(&reader), xq, 5),
                    found);
        }
    }
}
