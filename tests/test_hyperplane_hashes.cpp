// HyperplaneHash (RHBE) and SignCauchyHash (SCR) against their theory.

#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/SignCauchyHash.h>

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

#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

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

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

const Projection& projection_of(const KernelHash& hash) {
    if (const auto* rhbe = dynamic_cast<const HyperplaneHash*>(&hash)) {
        return *rhbe->projection;
    }
    return *dynamic_cast<const SignCauchyHash&>(hash).projection;
}

std::vector<float> threshold_of(const KernelHash& hash) {
    const auto* rhbe = dynamic_cast<const HyperplaneHash*>(&hash);
    return rhbe ? rhbe->threshold : std::vector<float>();
}

std::vector<float> margins_of(
        const KernelHash& hash,
        const std::vector<float>& x) {
    std::vector<float> margins(x.size() / hash.d_in * hash.nbits);
    hash.apply_noalloc(x.size() / hash.d_in, x.data(), margins.data());
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

/// The margins of a vector in double; the library's projection errs by at most
/// product_error, and its subtraction by one unit.
struct ExactMargins {
    std::vector<double> value, bound;

    ExactMargins(
            const KernelHash& hash,
            const std::vector<float>& matrix,
            const float* x) {
        const std::vector<float> threshold = threshold_of(hash);
        const Projection& projection = projection_of(hash);
        const size_t d = hash.d_in;
        const double length = testing_projections::length(x, d);
        for (int i = 0; i < hash.nbits; i++) {
            double sum = 0, absolute = 0;
            for (size_t k = 0; k < d; k++) {
                const double term = double(matrix[i * d + k]) * x[k];
                sum += term;
                absolute += std::abs(term);
            }
            double error = testing_projections::product_error(
                    projection, i, absolute, length);
            if (!threshold.empty()) {
                sum -= threshold[i];
                error += float_unit * (absolute + std::abs(threshold[i]));
            }
            value.push_back(sum);
            bound.push_back(error);
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

double cosine(const double* x, const double* y, size_t d) {
    double xy = 0, xx = 0, yy = 0;
    for (size_t k = 0; k < d; k++) {
        xy += x[k] * y[k];
        xx += x[k] * x[k];
        yy += y[k] * y[k];
    }
    return xy / std::sqrt(xx * yy);
}

double normalized_angle(double c) {
    return std::acos(std::clamp(c, -1.0, 1.0)) / pi;
}

/// chi2 of the L1-normalised vectors
double chi2(const float* x, const float* y, size_t d) {
    double sx = 0, sy = 0, sum = 0;
    for (size_t k = 0; k < d; k++) {
        sx += x[k];
        sy += y[k];
    }
    for (size_t k = 0; k < d; k++) {
        const double a = x[k] / sx, b = y[k] / sy;
        sum += a + b > 0 ? 2 * a * b / (a + b) : 0;
    }
    return sum;
}

/// Integral by the double exponential rule, for integrands that are smooth
/// inside and may have logarithms at the ends; pieces of length up to 1.
double integral(
        const std::function<double(double)>& f,
        double begin,
        double end) {
    const double half = (end - begin) / 2, h = 1.0 / 8;
    double sum = 0;
    for (int i = -28; i <= 28; i++) {
        const double t = i * h, s = pi / 2 * std::sinh(t);
        const double weight =
                pi / 2 * std::cosh(t) / (std::cosh(s) * std::cosh(s));
        sum += weight * f(begin + half + half * std::tanh(s));
    }
    return sum * h * half;
}

/** The probability that sum c_i x_i and sum c_i y_i have different signs, c_i
 * independent Cauchy.
 *
 * The two sums have the characteristic function phi(s, t) = exp(-sum |s x_i + t
 * y_i|). With sign(u) = 1 / pi int sin(s u) / s ds, the expected product of the
 * signs is -2 / pi^2 int_0^inf int_0^inf (phi(s, t) - phi(s, -t)) / (s t) ds
 * dt. In polar coordinates the radius integrates to a logarithm (Frullani), and
 * with e^v = t / s
 *
 *     E = 2 / pi^2 int ln(A / B) dv, A = sum x_i + e^v y_i, B = sum |x_i - e^v
 *     y_i|, over all v,
 *
 * and the probability is (1 - E) / 2. ln(A / B) = log1p((A - B) / B) with A - B
 * = 2 sum min(x_i, e^v y_i); it falls as exp(-|v|) for vectors of the same
 * mass. B has kinks where e^v = x_i / y_i.
 */
double cauchy_probability(const float* x, const float* y, size_t d) {
    double sx = 0, sy = 0;
    for (size_t k = 0; k < d; k++) {
        sx += x[k];
        sy += y[k];
    }
    std::vector<double> cuts;
    for (int v = -40; v <= 40; v++) {
        cuts.push_back(v);
    }
    for (size_t k = 0; k < d; k++) {
        if (x[k] > 0 && y[k] > 0) {
            const double v = std::log(x[k] / sx * sy / y[k]);
            if (std::abs(v) < 40) {
                cuts.push_back(v);
            }
        }
    }
    std::sort(cuts.begin(), cuts.end());
    const auto f = [&](double v) {
        const double e = std::exp(v);
        double apart = 0, common = 0;
        for (size_t k = 0; k < d; k++) {
            const double a = x[k] / sx, b = e * y[k] / sy;
            apart += std::abs(a - b);
            common += std::min(a, b);
        }
        return std::log1p(2 * common / std::max(apart, 1e-300));
    };
    double sum = 0;
    for (size_t i = 0; i + 1 < cuts.size(); i++) {
        if (cuts[i + 1] - cuts[i] > 1e-12) {
            sum += integral(f, cuts[i], cuts[i + 1]);
        }
    }
    return (1 - 2 / (pi * pi) * sum) / 2;
}

struct Scheme {
    std::string text; ///< with % for the number of bits
    bool histograms;  ///< takes no negative components

    std::unique_ptr<KernelHash> make(int d, int nbits) const {
        std::string s = text;
        s.replace(s.find('%'), 1, std::to_string(nbits));
        return kernel_hash_factory(d, s);
    }

    std::vector<float> vectors(size_t n, size_t d, uint64_t seed) const {
        return histograms ? uniform_vectors(n, d, seed)
                          : normal_vectors(n, d, seed);
    }
};

const std::vector<Scheme> schemes = {
        {"RHBE%", false},
        {"RHBE%(center=1,seed=3)", false},
        {"RHBE%(proj=dense)", false},
        {"RHBE%(center=1,seed=3,proj=dense)", false},
        {"SCR%", true},
        {"SCR%(seed=3)", true}};

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

/// Vectors from near to far from the first.
std::vector<float> angles(size_t d, uint64_t seed) {
    std::vector<float> x = normal_vectors(6, d, seed);
    for (double share : {0.001, 0.01, 0.05, 0.2, 0.5, 0.9}) {
        for (size_t k = 0; k < d; k++) {
            x.push_back(float((1 - share) * x[k] + share * x[3 * d + k]));
        }
    }
    for (size_t k = 0; k < d; k++) { // opposite, or almost
        x.push_back(-x[k]);
    }
    for (size_t k = 0; k < d; k++) {
        x.push_back(-x[k] + 0.05f * x[2 * d + k]);
    }
    return x;
}

} // namespace

TEST(BothHashes, MarginsAreProjections) {
    for (const Scheme& scheme : schemes) {
        for (auto [d, nbits] :
             {std::pair<int, int>{1, 8}, {7, 24}, {16, 1032}, {300, 64}}) {
            const auto hash = scheme.make(d, nbits);
            std::vector<float> x = scheme.vectors(9, d, d);
            x[0] = 0;
            hash->train(9, x.data());
            const std::vector<float> matrix = projection_of(*hash).matrix();
            const std::vector<float> margins = margins_of(*hash, x);
            const std::vector<uint8_t> codes = codes_of(*hash, x);
            for (size_t i = 0; i < 9; i++) {
                const ExactMargins exact(*hash, matrix, &x[i * d]);
                for (int j = 0; j < nbits; j++) {
                    const float margin = margins[i * nbits + j];
                    ASSERT_NEAR(margin, exact.value[j], exact.bound[j])
                            << scheme.text << ", d = " << d;
                    ASSERT_EQ(
                            bit(&codes[i * hash->code_size()], j), margin >= 0);
                }
            }
        }
    }
}

TEST(BothHashes, DoNotDependOnThreadsAndBatches) {
    for (const Scheme& scheme : schemes) {
        for (auto [d, nbits, n] :
             {std::tuple<int, int, size_t>{1, 8, 1000},
              {20, 1032, 700},
              {300, 256, 500}}) {
            const std::vector<float> x = scheme.vectors(n, d, 1);
            std::unique_ptr<KernelHash> hash;
            std::vector<float> one(n * nbits);
            std::vector<uint8_t> codes;
            {
                const ThreadCount threads(1);
                hash = scheme.make(d, nbits);
                hash->train(n, x.data());
                for (size_t i = 0; i < n; i++) {
                    hash->apply_noalloc(1, &x[i * d], &one[i * nbits]);
                }
                codes = codes_of(*hash, x);
            }
            const ThreadCount threads(4);
            const auto other = scheme.make(d, nbits);
            other->train(n, x.data());
            other->check_identical(*hash);
            EXPECT_TRUE(same_bits(
                    projection_of(*hash).matrix(),
                    projection_of(*other).matrix()));
            EXPECT_TRUE(same_bits(threshold_of(*hash), threshold_of(*other)));
            EXPECT_TRUE(same_bits(margins_of(*other, x), one));
            EXPECT_EQ(codes_of(*other, x), codes);
        }
    }
}

// A row depends on the seed and its number alone. (With proj=structured as
// well: rows of a smaller last transform are those of the large one.)
TEST(BothHashes, RowsAndSeeds) {
    for (const Scheme& scheme : schemes) {
        const auto small = scheme.make(10, 16), large = scheme.make(10, 64);
        std::vector<float> b = projection_of(*large).matrix();
        b.resize(160);
        EXPECT_EQ(projection_of(*small).matrix(), b);
        small->check_identical(*scheme.make(10, 16));
    }
    EXPECT_TRUE(
            throws([] { HyperplaneHash(10, 16, false, -1); }, "seed is -1"));
    EXPECT_TRUE(throws([] { SignCauchyHash(10, 16, -1); }, "seed is -1"));
    for (int64_t seed : {int64_t(0), int64_t(6), int64_t(5) << 32, INT64_MAX}) {
        for (bool structured : {false, true}) {
            const HyperplaneHash a(10, 16, false, seed, proj_of(structured));
            const HyperplaneHash b(10, 16, false, 5, proj_of(structured));
            EXPECT_NE(projection_of(a).matrix(), projection_of(b).matrix());
        }
        EXPECT_NE(
                projection_of(SignCauchyHash(10, 16, seed)).matrix(),
                projection_of(SignCauchyHash(10, 16, 5)).matrix());
    }
}

// proj=dense: independent entries.
TEST(BothHashes, DistributionOfEntries) {
    const HyperplaneHash rhbe(200, 256, false, 5, proj_dense);
    const SignCauchyHash scr(200, 256, 5);
    const std::vector<float> a = projection_of(rhbe).matrix(),
                             c = projection_of(scr).matrix();
    EXPECT_LT(
            testing_theory::kolmogorov_smirnov(
                    {a.begin(), a.end()},
                    [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; }),
            testing_theory::kolmogorov_smirnov_limit(a.size()));
    EXPECT_LT(
            testing_theory::kolmogorov_smirnov(
                    {c.begin(), c.end()},
                    [](double x) { return 0.5 + std::atan(x) / pi; }),
            testing_theory::kolmogorov_smirnov_limit(c.size()));
    for (const std::vector<float>* m : {&a, &c}) {
        for (float v : *m) {
            ASSERT_TRUE(std::isfinite(v));
        }
        // signs of neighbours in a row and in a column agree in half of the
        // disjoint pairs
        for (size_t shift : {size_t(1), size_t(200)}) {
            size_t agree = 0, total = 0;
            for (size_t i = 0; i + 2 * shift <= m->size(); i += 2 * shift) {
                for (size_t k = i; k < i + shift; k++) {
                    agree += ((*m)[k] > 0) == ((*m)[k + shift] > 0);
                    total++;
                }
            }
            EXPECT_TRUE(plausible(agree, total, 0.5, 0.5)) << shift;
        }
    }
}

// Powers of two change no rounding, so that they change no bit.
TEST(BothHashes, ScaleDoesNotMatter) {
    for (const Scheme& scheme : schemes) {
        const auto hash = scheme.make(17, 512);
        const std::vector<float> x = scheme.vectors(20, 17, 3);
        hash->train(20, x.data());
        if (!threshold_of(*hash).empty()) {
            continue;
        }
        const std::vector<uint8_t> codes = codes_of(*hash, x);
        for (int power : {-50, -1, 1, 80}) {
            std::vector<float> scaled = x;
            for (float& v : scaled) {
                v = std::ldexp(v, power);
            }
            EXPECT_EQ(codes_of(*hash, scaled), codes) << scheme.text;
        }
    }
}

TEST(BothHashes, RowsOfZeros) {
    const std::vector<float> zeros(20);
    for (bool structured : {false, true}) {
        EXPECT_EQ(
                codes_of(
                        HyperplaneHash(20, 64, false, 1, proj_of(structured)),
                        zeros),
                std::vector<uint8_t>(8, 255));
    }
    EXPECT_EQ(
            codes_of(SignCauchyHash(20, 64), zeros),
            std::vector<uint8_t>(8, 255));
    for (bool structured : {false, true}) {
        HyperplaneHash centered(20, 64, true, 1234, proj_of(structured));
        centered.train(30, normal_vectors(30, 20, 1).data());
        const std::vector<uint8_t> codes = codes_of(centered, zeros);
        for (int j = 0; j < 64; j++) {
            EXPECT_EQ(bit(codes.data(), j), centered.threshold[j] <= 0);
        }
    }
}

TEST(BothHashes, BadInput) {
    for (const Scheme& scheme : schemes) {
        const auto hash = scheme.make(4, 16);
        const std::vector<float> good = scheme.vectors(5, 4, 1);
        hash->train(5, good.data());
        const std::vector<uint8_t> codes = codes_of(*hash, good);
        for (float value : {nan_value, infinity, -infinity, -0.5f, -1e-45f}) {
            std::vector<float> x = good;
            x[14] = value;
            if (!scheme.histograms && std::isfinite(value)) {
                codes_of(*hash, x); // negative components are welcome
                continue;
            }
            for (const std::function<void()>& call :
                 {std::function<void()>([&] { codes_of(*hash, x); }),
                  std::function<void()>([&] { margins_of(*hash, x); })}) {
                const std::string error = message_of(call);
                EXPECT_TRUE(contains(error, "component 2 of vector 3"))
                        << error;
                EXPECT_TRUE(contains(
                        error,
                        scheme.histograms ? "expected a finite number >= 0"
                                          : "expected a finite number"))
                        << error;
            }
        }
        uint8_t code[2];
        EXPECT_TRUE(throws([&] { hash->encode(1, nullptr, code); }, "null"));
        EXPECT_TRUE(throws([&] { hash->encode(-1, nullptr, code); }, "-1"));
        EXPECT_EQ(codes_of(*hash, good), codes);
    }
    for (int nbits : {0, -8, 12}) {
        EXPECT_TRUE(throws([&] { HyperplaneHash(4, nbits); }, "bits"));
        EXPECT_TRUE(throws([&] { SignCauchyHash(4, nbits); }, "bits"));
    }
    for (int d : {0, -1}) {
        EXPECT_TRUE(throws([&] { HyperplaneHash(d, 8); }, "dimension"));
        EXPECT_TRUE(throws([&] { SignCauchyHash(d, 8); }, "dimension"));
    }
}

// KernelHash: every function that takes vectors refuses bad ones, even where
// there is nothing to train.
TEST(BothHashes, TrainingChecksVectors) {
    for (const Scheme& scheme : schemes) {
        for (float value : {nan_value, infinity, -0.5f}) {
            if (std::isfinite(value) && !scheme.histograms) {
                continue;
            }
            const auto hash = scheme.make(4, 16);
            std::vector<float> x = scheme.vectors(5, 4, 1);
            x[14] = value;
            EXPECT_TRUE(
                    throws([&] { hash->train(5, x.data()); },
                           "component 2 of vector 3"))
                    << scheme.text << ", " << value;
        }
    }
}

TEST(BothHashes, Strings) {
    kernel_hash_factory(5, "RHBE256(center=1,seed=3,proj=dense)")
            ->check_identical(HyperplaneHash(5, 256, true, 3, proj_dense));
    kernel_hash_factory(5, "RHBE256(center=1,seed=3,proj=structured)")
            ->check_identical(HyperplaneHash(5, 256, true, 3));
    kernel_hash_factory(5, "RHBE256")
            ->check_identical(
                    HyperplaneHash(5, 256, false, 1234, proj_structured));
    kernel_hash_factory(5, "SCR1024(seed=3)")
            ->check_identical(SignCauchyHash(5, 1024, 3));
    kernel_hash_factory(5, "SCR1024")
            ->check_identical(SignCauchyHash(5, 1024, 1234));
    const std::vector<std::vector<std::string>> cases = {
            {"RHBE", "expected the number of bits"},
            {"RHBE(center=1)", "expected the number of bits"},
            {"RHBE12", "invalid number of bits '12'"},
            {"RHBE64(gaussian)", "unknown argument 'gaussian'", "center="},
            {"RHBE64(foo=1)", "unknown key 'foo'", "seed="},
            {"RHBE64(center=2)", "'2' of center"},
            {"RHBE64(center=yes)", "'yes' of center"},
            {"RHBE64(seed=-1)", "'-1' of seed"},
            {"RHBE64(proj=sparse)",
             "'sparse' of proj",
             "structured",
             "dense",
             "bilinear"},
            {"RHBE64()", "expected an argument"},
            {"SCR", "expected the number of bits"},
            {"SCR20", "invalid number of bits '20'"},
            {"SCR64(chi2)", "unknown argument 'chi2'", "seed="},
            {"SCR64(center=1)", "unknown key 'center'", "seed="},
            {"SCR64(seed=1.5)", "'1.5' of seed"},
            {"SCR64(proj=dense)", "unknown key 'proj'"}};
    for (const auto& c : cases) {
        const std::string error =
                message_of([&] { kernel_hash_factory(8, c[0]); });
        for (const std::string& part : c) {
            EXPECT_TRUE(contains(error, part))
                    << "'" << part << "' is missing: " << error;
        }
    }
}

TEST(BothHashes, CopiesGiveTheSameCodes) {
    for (const Scheme& scheme : schemes) {
        for (bool trained : {false, true}) {
            const auto hash = scheme.make(6, 40);
            const std::vector<float> x = scheme.vectors(20, 6, 3);
            if (trained) {
                hash->train(20, x.data());
            }
            const auto read = from_bytes(bytes_of(*hash));
            const auto clone = hash->clone();
            for (faiss::VectorTransform* other :
                 {read.get(),
                  static_cast<faiss::VectorTransform*>(clone.get())}) {
                auto& copy = dynamic_cast<KernelHash&>(*other);
                hash->check_identical(copy);
                EXPECT_EQ(copy.is_trained, hash->is_trained);
                EXPECT_EQ(copy.nbits, 40);
                EXPECT_EQ(copy.d_out, 40);
                EXPECT_EQ(threshold_of(copy), threshold_of(*hash));
                EXPECT_EQ(
                        projection_of(copy).matrix(),
                        projection_of(*hash).matrix());
                const auto reference = hash->clone();
                reference->train(20, x.data());
                copy.train(20, x.data());
                EXPECT_EQ(codes_of(copy, x), codes_of(*reference, x));
            }
        }
    }
    const SignCauchyHash scr(4, 16);
    const HyperplaneHash rhbe(4, 16);
    EXPECT_TRUE(throws([&] { scr.check_identical(rhbe); }, "differ"));
    EXPECT_TRUE(throws([&] { rhbe.check_identical(scr); }, "differ"));
    EXPECT_TRUE(
            throws([&] { rhbe.check_identical(HyperplaneHash(4, 16, true)); }));
    EXPECT_TRUE(throws([&] {
        rhbe.check_identical(HyperplaneHash(4, 16, false, 1234, proj_dense));
    }));
    EXPECT_TRUE(throws([&] { scr.check_identical(SignCauchyHash(4, 24)); }));
}

TEST(BothHashes, TruncatedAndDamagedFiles) {
    for (const Scheme& scheme : schemes) {
        for (bool trained : {false, true}) {
            const auto hash = scheme.make(3, 16);
            const std::vector<float> x = scheme.vectors(20, 3, 3);
            if (trained) {
                hash->train(20, x.data());
            }
            const std::vector<uint8_t> bytes = bytes_of(*hash);
            int objects = 0, errors = 0;
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
                    objects++;
                    auto* other = dynamic_cast<KernelHash*>(read.get());
                    ASSERT_NE(other, nullptr) << i;
                    if (other->is_trained) {
                        codes_of(*other, std::vector<float>(other->d_in, 0.5f));
                    }
                }
            }
            EXPECT_GT(objects, 0);
            EXPECT_GT(errors, 20);
        }
    }
}

TEST(BothHashes, InIndexes) {
    const ThreadCount threads(1);
    const int d = 12;
    const std::vector<float> xb = clustered_histograms(500, d, 20, 30, 1);
    const std::vector<float> xq = clustered_histograms(20, d, 20, 30, 1);
    for (const std::string scheme :
         {"RHBE64",
          "RHBE64(center=1)",
          "RHBE64(proj=dense)",
          "RHBE64(center=1,proj=dense)",
          "SCR64"}) {
        const auto hash = kernel_hash_factory(d, scheme);
        hash->train(500, xb.data());
        const auto codes = codes_of(*hash, xb), queries = codes_of(*hash, xq);
        for (const std::string storage : {"BFlat", "BHash3x12"}) {
            const std::unique_ptr<faiss::IndexBinary> by_hand(
                    faiss::index_binary_factory(64, storage.c_str()));
            by_hand->add(500, codes.data());
            const auto expected = faiss_ext_test::search(*by_hand, queries, 5);
            auto index = faiss_ext::index_factory(d, scheme + "," + storage);
            EXPECT_EQ(index->is_trained, !contains(scheme, "center=1"));
            index->train(500, xb.data());
            index->add(500, xb.data());
            const auto found = faiss_ext_test::search(*index, xq, 5);
            EXPECT_EQ(found.labels, expected.labels);
            faiss_ext_test::expect_same(
                    faiss_ext_test::search(
                            *faiss_ext::clone_index(index.get()), xq, 5),
                    found);
        }
    }
}

// Charikar: two vectors differ in a bit with probability theta / pi, but for
// bits that rounding decides; bits are independent with proj=dense.
TEST(HyperplaneHash, HammingTellsTheAngle) {
    for (size_t d : {2, 17, 64}) {
        const int nbits = 16384;
        const HyperplaneHash hash(int(d), nbits, false, 100 + d, proj_dense);
        const std::vector<float> matrix = projection_of(hash).matrix();
        const std::vector<float> x = angles(d, d);
        const std::vector<double> wide(x.begin(), x.end());
        const size_t n = x.size() / d;
        const std::vector<uint8_t> codes = codes_of(hash, x);
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < n; i++) {
            doubtful.push_back(
                    ExactMargins(hash, matrix, &x[i * d]).doubtful());
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double c = cosine(&wide[i * d], &wide[j * d], d);
                const double p = normalized_angle(c);
                const size_t ham = hamming(
                        &codes[i * nbits / 8], &codes[j * nbits / 8], nbits);
                const size_t unsure = doubtful[i] + doubtful[j];
                EXPECT_TRUE(plausible(ham, nbits, p, p, unsure))
                        << ham << " bits, p = " << p;
                EXPECT_NEAR(
                        ham / double(nbits),
                        p,
                        hoeffding(nbits) + unsure / double(nbits));
                EXPECT_NEAR(hash.expected_hamming(c), nbits * p, 1e-8);
                // cos changes by at most its argument
                EXPECT_NEAR(
                        hash.kernel_estimate(ham),
                        c,
                        pi * (hoeffding(nbits) + unsure / double(nbits)));
            }
        }
    }
}

TEST(HyperplaneHash, EstimatesInvertExpectedDistances) {
    const HyperplaneHash hash(3, 256);
    double before = 257;
    for (double c = -1; c <= 1; c += 1.0 / 32) {
        const double expected = hash.expected_hamming(c);
        EXPECT_LT(expected, before);
        before = expected;
        EXPECT_NEAR(expected, 256 * std::acos(c) / pi, 1e-12 * 256);
        EXPECT_NEAR(hash.kernel_estimate(expected), c, 1e-12);
    }
    EXPECT_EQ(hash.expected_hamming(1), 0);
    EXPECT_EQ(hash.expected_hamming(-1), 256);
    for (double bad : {-1.01, 1.01, double(nan_value)}) {
        EXPECT_TRUE(
                throws([&] { hash.expected_hamming(bad); },
                       "expected a value from -1 to 1"));
    }
    for (double bad : {-1.0, 256.5, double(nan_value)}) {
        EXPECT_TRUE(throws([&] { hash.kernel_estimate(bad); }));
    }
}

namespace {

std::vector<float> training_vectors(size_t n, size_t d) {
    std::vector<float> x = normal_vectors(n, d, 1);
    for (size_t i = 0; i < x.size(); i++) {
        x[i] += 2 + 0.1f * float(i % d);
    }
    return x;
}

std::vector<double> mean_of(const std::vector<float>& x, size_t d) {
    std::vector<double> mean(d);
    for (size_t i = 0; i < x.size(); i++) {
        mean[i % d] += x[i] / double(x.size() / d);
    }
    return mean;
}

/// The threshold of bit j in double, and a bound of its error: that of the
/// product, and a rounding of the mean.
std::pair<double, double> threshold_of_mean(
        const KernelHash& hash,
        const std::vector<float>& matrix,
        const std::vector<double>& mean,
        int j) {
    const size_t d = mean.size();
    double sum = 0, absolute = 0;
    for (size_t k = 0; k < d; k++) {
        const double term = matrix[j * d + k] * mean[k];
        sum += term;
        absolute += std::abs(term);
    }
    return {sum,
            testing_projections::product_error(
                    projection_of(hash),
                    j,
                    absolute,
                    testing_projections::length(mean.data(), d)) +
                    2 * float_unit * absolute};
}

} // namespace

// center=1: the thresholds are the projections of the mean, of which the
// library rounds each component to float.
TEST(HyperplaneHash, ThresholdsAreThoseOfTheMean) {
    const size_t d = 10, n_train = 3000;
    const int nbits = 4096;
    const std::vector<float> train = training_vectors(n_train, d);
    const std::vector<double> mean = mean_of(train, d);
    for (bool structured : {false, true}) {
        HyperplaneHash hash(d, nbits, true, 3, proj_of(structured));
        EXPECT_FALSE(hash.is_trained);
        EXPECT_TRUE(throws([&] { codes_of(hash, train); }, "not trained"));
        EXPECT_TRUE(throws([&] { hash.train(0, train.data()); }, "no vectors"));
        EXPECT_FALSE(hash.is_trained);
        hash.train(n_train, train.data());
        ASSERT_EQ(int(hash.threshold.size()), nbits);
        const std::vector<float> matrix = projection_of(hash).matrix();
        for (int j = 0; j < nbits; j++) {
            const auto [sum, bound] = threshold_of_mean(hash, matrix, mean, j);
            ASSERT_NEAR(hash.threshold[j], sum, bound);
        }
        // what is trained stays as it is
        const HyperplaneHash before = hash;
        hash.train(10, train.data());
        hash.check_identical(before);
        HyperplaneHash plain(d, 64, false, 1234, proj_of(structured));
        EXPECT_TRUE(plain.is_trained);
        plain.train(10, train.data());
        plain.check_identical(
                HyperplaneHash(d, 64, false, 1234, proj_of(structured)));
    }
}

// The angle is that as seen from the mean; bits are independent with
// proj=dense.
TEST(HyperplaneHash, CenterTellsTheAngleFromTheMean) {
    const size_t d = 10, n_train = 3000;
    const int nbits = 16384;
    const std::vector<float> train = training_vectors(n_train, d);
    const std::vector<double> mean = mean_of(train, d);
    HyperplaneHash hash(d, nbits, true, 3, proj_dense);
    hash.train(n_train, train.data());
    const std::vector<float> matrix = projection_of(hash).matrix();
    std::vector<double> threshold_bound;
    for (int j = 0; j < nbits; j++) {
        threshold_bound.push_back(
                threshold_of_mean(hash, matrix, mean, j).second);
    }
    std::vector<float> x = angles(d, 7);
    const size_t n = x.size() / d;
    std::vector<double> seen(x.size());
    for (size_t i = 0; i < x.size(); i++) {
        x[i] += float(mean[i % d]);
        seen[i] = x[i] - mean[i % d];
    }
    const std::vector<uint8_t> codes = codes_of(hash, x);
    std::vector<size_t> doubtful;
    for (size_t i = 0; i < n; i++) {
        ExactMargins exact(hash, matrix, &x[i * d]);
        for (int j = 0; j < nbits; j++) {
            exact.bound[j] += threshold_bound[j];
        }
        doubtful.push_back(exact.doubtful());
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            const double p =
                    normalized_angle(cosine(&seen[i * d], &seen[j * d], d));
            const size_t ham = hamming(
                    &codes[i * nbits / 8], &codes[j * nbits / 8], nbits);
            EXPECT_TRUE(plausible(ham, nbits, p, p, doubtful[i] + doubtful[j]))
                    << ham << " bits, p = " << p;
        }
    }
}

// Margins of the training vectors have mean 0, so that no bit is constant, and
// bits are better balanced than without.
TEST(HyperplaneHash, CenterBalancesTheBits) {
    const size_t d = 20, n = 2000;
    const int nbits = 256;
    const std::vector<float> x = uniform_vectors(n, d, 3);
    for (bool structured : {false, true}) {
        double imbalance[2] = {};
        for (bool center : {false, true}) {
            HyperplaneHash hash(d, nbits, center, 1234, proj_of(structured));
            hash.train(n, x.data());
            const std::vector<uint8_t> codes = codes_of(hash, x);
            for (int j = 0; j < nbits; j++) {
                size_t ones = 0;
                for (size_t i = 0; i < n; i++) {
                    ones += bit(&codes[i * nbits / 8], j);
                }
                imbalance[center] += std::abs(ones / double(n) - 0.5) / nbits;
                if (center) {
                    EXPECT_TRUE(ones > 0 && ones < n);
                }
            }
        }
        EXPECT_LT(imbalance[1], imbalance[0] / 4);
    }
}

// A sample of at most 65,536 vectors: by Hoeffding, who covers draws without
// replacement, the mean of components in [0, 1] is near that of all.
TEST(HyperplaneHash, ManyTrainingVectors) {
    const size_t d = 2, n = 70000;
    const std::vector<float> x = uniform_vectors(n, d, 3);
    const std::vector<double> mean = mean_of(x, d);
    for (bool structured : {false, true}) {
        HyperplaneHash hash(d, 64, true, 1234, proj_of(structured));
        hash.train(n, x.data());
        const std::vector<float> A = projection_of(hash).matrix();
        for (int j = 0; j < 64; j++) {
            const auto [sum, bound] = threshold_of_mean(hash, A, mean, j);
            // the mean of the sample differs from that of all, and so does
            // the error of its product, which is a share of at most 1e-4
            const double moved = (std::abs(A[j * 2]) + std::abs(A[j * 2 + 1])) *
                    hoeffding(65536);
            EXPECT_NEAR(hash.threshold[j], sum, bound + 1.0001 * moved);
        }
    }
}

// The reference itself: for one component signs never differ; for two the
// margins differ in sign where c_1 / c_2 is between -x_2 / x_1 and -y_2 / y_1,
// and the quotient of two Cauchy numbers has the density ln(r^2) / (pi^2 (r^2 -
// 1)): with r = exp(t), t / (pi^2 sinh t) dt.
TEST(SignCauchyHash, ReferenceOfTwoComponents) {
    const float one[] = {1};
    EXPECT_NEAR(cauchy_probability(one, one, 1), 0, 1e-9);
    for (auto [a, b] :
         {std::pair<float, float>{0.1f, 0.2f},
          {0.5f, 0.5f},
          {0.01f, 0.99f},
          {0.3f, 0.9f}}) {
        const float x[] = {a, 1 - a}, y[] = {b, 1 - b};
        const double p = std::log(x[1] / double(x[0]));
        const double q = std::log(y[1] / double(y[0]));
        const auto f = [](double t) {
            return std::abs(t) < 1e-6 ? 1 / (pi * pi)
                                      : t / (pi * pi * std::sinh(t));
        };
        double expected = 0;
        for (int i = 0; i < 16; i++) {
            expected += integral(
                    f, q + (p - q) * i / 16, q + (p - q) * (i + 1) / 16);
        }
        EXPECT_NEAR(cauchy_probability(x, y, 2), std::abs(expected), 1e-9);
    }
    // nothing in common: independent signs
    const float x[] = {1, 0, 0}, y[] = {0, 0.5f, 0.5f};
    EXPECT_NEAR(cauchy_probability(x, y, 3), 0.5, 1e-12);
}

/// How far acos(chi2) / pi is from the probability, at most: see
/// LargestErrorOfTheApproximation.
constexpr double scr_error = 0.035;

// All pairs of a grid of vectors of two components, and those of three with one
// in common, x = (c, 1 - c, 0) and y = (c, 0, 1 - c). It is near vectors, of a
// kernel value of 0.95, for which acos(chi2) / pi is too large by most.
TEST(SignCauchyHash, LargestErrorOfTheApproximation) {
    double low = 0, high = 0;
    const auto see = [&](const float* x, const float* y, size_t d) {
        const double error =
                cauchy_probability(x, y, d) - normalized_angle(chi2(x, y, d));
        low = std::min(low, error);
        high = std::max(high, error);
    };
    for (float s = -9; s <= 9; s += 0.75f) {
        for (float t = -9; t < s; t += 0.75f) {
            const float a = 1 / (1 + std::exp(-s)), b = 1 / (1 + std::exp(-t));
            const float x[] = {a, 1 - a}, y[] = {b, 1 - b};
            see(x, y, 2);
        }
    }
    for (float c = 0.04f; c < 1; c += 0.04f) {
        const float x[] = {c, 1 - c, 0}, y[] = {c, 0, 1 - c};
        see(x, y, 3);
    }
    EXPECT_GT(low, -scr_error);
    EXPECT_LT(high, scr_error);
    EXPECT_LT(low, -0.03); // no identity
}

// Hamming distances against the exact probability, within Hoeffding's bound,
// and against acos(chi2) / pi within that and the error of the approximation.
TEST(SignCauchyHash, HammingTellsChi2) {
    for (size_t d : {1, 2, 5, 20, 100}) {
        const int nbits = 8192;
        const SignCauchyHash hash(int(d), nbits, 100 + d);
        const std::vector<float> matrix = projection_of(hash).matrix();
        std::vector<float> x = clustered_histograms(6, d, 6, 30, d);
        for (double share : {0.01, 0.1, 0.4}) {
            for (size_t k = 0; k < d; k++) {
                x.push_back(float((1 - share) * x[k] + share * x[3 * d + k]));
            }
        }
        const size_t n = x.size() / d;
        for (size_t k = 0; k < d; k++) { // another mass
            x[d + k] *= 5;
        }
        const std::vector<uint8_t> codes = codes_of(hash, x);
        std::vector<size_t> doubtful;
        for (size_t i = 0; i < n; i++) {
            doubtful.push_back(
                    ExactMargins(hash, matrix, &x[i * d]).doubtful());
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double p = cauchy_probability(&x[i * d], &x[j * d], d);
                const double k = chi2(&x[i * d], &x[j * d], d);
                const size_t ham = hamming(
                        &codes[i * nbits / 8], &codes[j * nbits / 8], nbits);
                const size_t unsure = doubtful[i] + doubtful[j];
                const std::string what = "d = " + std::to_string(d) + ": " +
                        std::to_string(ham) +
                        " bits, p = " + std::to_string(p) + ", by chi2 " +
                        std::to_string(normalized_angle(k));
                EXPECT_TRUE(plausible(ham, nbits, p - 1e-9, p + 1e-9, unsure))
                        << what;
                if (d == 1) {
                    EXPECT_EQ(ham, 0u);
                }
                const double error = std::abs(p - normalized_angle(k));
                EXPECT_LT(error, scr_error) << what;
                EXPECT_NEAR(
                        ham / double(nbits),
                        normalized_angle(k),
                        hoeffding(nbits) + scr_error + unsure / double(nbits))
                        << what;
                EXPECT_NEAR(
                        hash.expected_hamming(k),
                        nbits * normalized_angle(k),
                        1e-8);
            }
        }
    }
}

TEST(SignCauchyHash, EstimatesInvertExpectedDistances) {
    const SignCauchyHash hash(3, 256);
    double before = 257;
    for (double k = 0; k <= 1; k += 1.0 / 32) {
        const double expected = hash.expected_hamming(k);
        EXPECT_LT(expected, before);
        before = expected;
        EXPECT_NEAR(expected, 256 * std::acos(k) / pi, 1e-10);
        EXPECT_NEAR(hash.kernel_estimate(expected), k, 1e-12);
    }
    EXPECT_EQ(hash.expected_hamming(1), 0);
    EXPECT_EQ(hash.expected_hamming(0), 128);
    // chi2 is not negative
    EXPECT_EQ(hash.kernel_estimate(200), 0);
    EXPECT_EQ(hash.kernel_estimate(256), 0);
    for (double bad : {-0.01, 1.01, double(nan_value)}) {
        EXPECT_TRUE(
                throws([&] { hash.expected_hamming(bad); },
                       "expected a value from 0 to 1"));
    }
    for (double bad : {-1.0, 256.5, double(nan_value)}) {
        EXPECT_TRUE(throws([&] { hash.kernel_estimate(bad); }));
    }
    EXPECT_TRUE(hash.is_trained);
}
