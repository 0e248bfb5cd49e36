// Random Fourier features against the kernels that they stand for.

#include <faiss_ext/maps/RandomFourierMap.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/impl/io.h>

#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/MaternKernel.h>

#include "testing_data.h"
#include "testing_indexes.h"
#include "testing_projections.h"
#include "testing_theory.h"

using namespace faiss_ext;
using namespace testing_data;
using faiss_ext_test::throws;
using testing_projections::is_structured;
using testing_projections::proj_dense;
using testing_projections::proj_structured;
using testing_theory::KernelCase;

namespace {

std::vector<float> transformed(
        const faiss::VectorTransform& map,
        const std::vector<float>& x) {
    const size_t n = x.size() / map.d_in;
    std::vector<float> z(n * map.d_out, NAN);
    map.apply_noalloc(n, x.data(), z.data());
    return z;
}

std::unique_ptr<RandomFourierMap> make(int d, const std::string& text) {
    auto map = map_factory(d, text);
    return std::unique_ptr<RandomFourierMap>(
            &dynamic_cast<RandomFourierMap&>(*map.release()));
}

double dot(const std::vector<float>& z, size_t dims, size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < dims; k++) {
        sum += double(z[i * dims + k]) * z[j * dims + k];
    }
    return sum;
}

/// proj=dense, and proj=structured where the kernel has it
std::vector<ProjectionChoice::Kind> forms_of(const KernelCase& c) {
    return c.l1() ? std::vector{proj_dense}
                  : std::vector{proj_dense, proj_structured};
}

struct Kernels : testing::TestWithParam<KernelCase> {};

INSTANTIATE_TEST_SUITE_P(
        All,
        Kernels,
        testing::ValuesIn(testing_theory::kernel_cases()),
        [](const auto& info) { return testing_theory::case_name(info.param); });

} // namespace

// Component i is sqrt(2 / dims) cos(omega_i . x), component dims / 2 + i the
// sine, with the omega_i / 2 pi of the projection: in double, up to the
// rounding of the phases.
TEST_P(Kernels, ComponentsAreCosinesAndSines) {
    const KernelCase& c = GetParam();
    const size_t d = 10, n = 20;
    for (size_t dims : {2, 34, 256}) {
        for (auto proj : forms_of(c)) {
            const RandomFourierMap map(
                    int(d), int(dims), *c.make(0.4), 3, proj);
            ASSERT_EQ(map.d_out, int(dims));
            EXPECT_EQ(is_structured(map.proj), proj == proj_structured);
            const std::vector<float> x = normal_vectors(n, d, dims);
            const std::vector<float> z = transformed(map, x);
            const std::vector<float> A = map.projection->matrix();
            const double length = std::sqrt(2.0 / double(dims));
            for (size_t i = 0; i < n; i++) {
                EXPECT_NEAR(dot(z, dims, i, i), 1, 1e-6);
                for (size_t j = 0; j < dims / 2; j++) {
                    double turns = 0, absolute = 0;
                    for (size_t k = 0; k < d; k++) {
                        const double term = double(A[j * d + k]) * x[i * d + k];
                        turns += term;
                        absolute += std::abs(term);
                    }
                    const double phase = 2 * testing_theory::pi * turns;
                    const double bound = (1e-6 + 2e-5 * absolute) * length;
                    EXPECT_NEAR(
                            z[i * dims + j], length * std::cos(phase), bound);
                    EXPECT_NEAR(
                            z[i * dims + dims / 2 + j],
                            length * std::sin(phase),
                            bound);
                }
            }
        }
    }
}

// For one pair, P(|z(x) . z(y) - K| > e) <= 2 exp(-dims e^2 / 4) for dense
// ones; structured ones do no worse.
TEST_P(Kernels, InnerProductsAreWithinHoeffdingsBound) {
    const KernelCase& c = GetParam();
    const size_t d = 16, n = 24, dims = 16384;
    const double gamma = 0.7;
    const double enough = std::sqrt(
            4 * (std::log(2.0) - testing_theory::log_failure()) / dims);
    ASSERT_LT(enough, 0.1); // the bound says something
    std::vector<float> x = normal_vectors(n, d, 5, 1 / (c.scale(gamma) * d));
    for (size_t i = 1; i < n; i++) { // from near to far
        for (size_t k = 0; k < d; k++) {
            x[i * d + k] *= float(std::exp2(double(i) / 3 - 4));
        }
    }
    for (auto proj : forms_of(c)) {
        const RandomFourierMap map(int(d), int(dims), *c.make(gamma), 8, proj);
        const std::vector<float> z = transformed(map, x);
        double least = 1, most = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                const double r = c.scale(gamma) *
                        testing_theory::distance(c, &x[i * d], &x[j * d], d);
                const double k = c.profile(r);
                EXPECT_NEAR(dot(z, dims, i, j), k, enough) << i << ", " << j;
                least = std::min(least, k);
                most = std::max(most, k);
            }
        }
        EXPECT_LT(least, 0.3); // all kinds of pairs
        EXPECT_GT(most, 0.9);
    }
}

// The mean over many seeds is the kernel value: the map is unbiased, at few
// dimensions too.
TEST_P(Kernels, MeansOverSeedsAreTheKernel) {
    const KernelCase& c = GetParam();
    const size_t d = 5, trials = 4000;
    const int dims = 8;
    const std::vector<float> x = normal_vectors(2, d, 3, 0.3);
    const double k = c.profile(
            c.scale(1) * testing_theory::distance(c, &x[0], &x[d], d));
    for (auto proj : forms_of(c)) {
        double sum = 0;
        for (size_t seed = 0; seed < trials; seed++) {
            const RandomFourierMap map(
                    int(d), dims, *c.make(1), int64_t(seed), proj);
            sum += dot(transformed(map, x), dims, 0, 1);
        }
        EXPECT_NEAR(sum / trials, k, testing_theory::hoeffding(trials, 2));
    }
}

TEST(RandomFourierMap, WaitsForTheBandwidth) {
    const int d = 6;
    const std::vector<float> x = normal_vectors(500, d, 1);
    for (const std::string kernel :
         {"gaussian", "laplacian", "matern,nu=2.5", "gaussian,proj=dense"}) {
        const auto map = make(d, "RFF32(" + kernel + ")");
        EXPECT_FALSE(map->is_trained);
        EXPECT_FALSE(map->projection);
        EXPECT_EQ(map->d_out, 32);
        EXPECT_TRUE(throws([&] { transformed(*map, x); }, "not trained"));
        // what fails leaves it as it was
        const std::vector<float> same(500 * d, 1);
        EXPECT_TRUE(throws([&] { map->train(500, same.data()); }, "same"));
        EXPECT_FALSE(map->is_trained);
        auto bad = x;
        bad[3 * d + 2] = HUGE_VALF;
        EXPECT_TRUE(
                throws([&] { map->train(500, bad.data()); },
                       "component 2 of vector 3"));
        EXPECT_FALSE(map->projection);
        map->train(500, x.data());
        EXPECT_TRUE(map->is_trained);
        EXPECT_GT(map->kernel->gamma, 0);
        EXPECT_TRUE(throws(
                [&] { transformed(*map, bad); }, "component 2 of vector"));
        // as if the bandwidth had been given
        const auto given = map->kernel->clone();
        const RandomFourierMap known(
                d,
                32,
                dynamic_cast<const ShiftInvariantKernel&>(*given),
                1234,
                map->proj);
        EXPECT_TRUE(known.is_trained);
        EXPECT_TRUE(same_bits(transformed(known, x), transformed(*map, x)))
                << kernel;
        // and once for all
        const std::vector<float> z = transformed(*map, x);
        map->train(200, x.data());
        EXPECT_TRUE(same_bits(transformed(*map, x), z));
    }
}

TEST(RandomFourierMap, SeedsAndThreads) {
    const int d = 7;
    const std::vector<float> x = normal_vectors(200, d, 1);
    for (auto proj : {proj_dense, proj_structured}) {
        const RandomFourierMap a(d, 64, GaussianKernel(1), 3, proj),
                b(d, 64, GaussianKernel(1), 3, proj),
                c(d, 64, GaussianKernel(1), 4, proj),
                e(d, 64, GaussianKernel(2), 3, proj);
        a.check_identical(b);
        EXPECT_TRUE(same_bits(transformed(a, x), transformed(b, x)));
        EXPECT_TRUE(throws([&] { a.check_identical(c); }));
        EXPECT_TRUE(throws([&] { a.check_identical(e); }));
        EXPECT_FALSE(same_bits(transformed(a, x), transformed(c, x)));
        std::vector<float> one;
        {
            const ThreadCount threads(1);
            one = transformed(a, x);
        }
        const ThreadCount threads(4);
        EXPECT_TRUE(same_bits(transformed(a, x), one));
        for (size_t batch : {1, 7}) {
            for (size_t i = 0; i + batch <= 200; i += batch) {
                const std::vector<float> part(
                        x.begin() + i * d, x.begin() + (i + batch) * d);
                const std::vector<float> expected(
                        one.begin() + i * 64, one.begin() + (i + batch) * 64);
                ASSERT_TRUE(same_bits(transformed(a, part), expected));
            }
        }
    }
}

TEST(RandomFourierMap, FilesAndCopies) {
    const int d = 9;
    const std::vector<float> x = normal_vectors(400, d, 2);
    const faiss_ext_test::TemporaryFolder folder;
    const std::string name = folder / "map";
    for (const std::string text :
         {"RFF32(gaussian,gamma=0.5,seed=9)",
          "RFF30(gaussian,gamma=0.5,proj=dense)",
          "RFF64(laplacian)",
          "RFF64(matern,nu=0.7)",
          "RFF600(gaussian)"}) {
        for (bool train : {false, true}) {
            const auto map = make(d, text);
            if (train) {
                map->train(400, x.data());
            }
            write_VectorTransform(map.get(), name.c_str());
            const auto read = read_VectorTransform(name.c_str());
            const auto copy = map->clone();
            for (faiss::VectorTransform* vt :
                 {static_cast<faiss::VectorTransform*>(copy.get()),
                  read.get()}) {
                auto& other = dynamic_cast<RandomFourierMap&>(*vt);
                map->check_identical(other);
                EXPECT_EQ(other.is_trained, map->is_trained);
                EXPECT_EQ(other.d_out, map->d_out);
                EXPECT_EQ(other.dims, map->dims);
                EXPECT_EQ(other.seed, map->seed);
                EXPECT_EQ(
                        other.kernel->description(),
                        map->kernel->description());
                EXPECT_NE(other.kernel.get(), map->kernel.get());
                if (!map->is_trained) {
                    other.train(400, x.data());
                }
                const auto expected = make(d, text);
                expected->train(400, x.data());
                EXPECT_TRUE(same_bits(
                        transformed(other, x), transformed(*expected, x)))
                        << text;
            }
            // its string makes it again
            const auto again = make(d, map->description());
            again->check_identical(*make(d, again->description()));
            EXPECT_EQ(again->is_trained, map->is_trained);
            if (again->is_trained) {
                EXPECT_TRUE(
                        same_bits(transformed(*again, x), transformed(*map, x)))
                        << map->description();
            }
        }
    }
}

TEST(RandomFourierMap, DamagedFiles) {
    const int d = 3;
    for (const std::string text :
         {"RFF4(gaussian,gamma=0.5,proj=dense)",
          "RFF4(matern,gamma=2)",
          "RFF4(laplacian)"}) {
        const auto map = make(d, text);
        faiss::VectorIOWriter writer;
        write_VectorTransform(map.get(), &writer);
        size_t errors = 0;
        for (size_t i = 0; i < writer.data.size(); i++) {
            faiss::VectorIOReader cut;
            cut.data.assign(writer.data.begin(), writer.data.begin() + i);
            ASSERT_TRUE(throws([&] { read_VectorTransform(&cut); })) << i;
            for (int change : {1, 0x40, 0x80, 0xff}) {
                faiss::VectorIOReader reader;
                reader.data = writer.data;
                reader.data[i] = uint8_t(reader.data[i] ^ change);
                std::unique_ptr<faiss::VectorTransform> read;
                try {
                    read = read_VectorTransform(&reader);
                } catch (const faiss::FaissException&) {
                    errors++;
                    continue;
                }
                if (read->is_trained && read->d_in < 10000 &&
                    read->d_out < 10000) {
                    transformed(*read, std::vector<float>(read->d_in, 0.5f));
                }
            }
        }
        EXPECT_GT(errors, 50u) << text;
    }
}

TEST(RandomFourierMap, InIndexes) {
    const int d = 8;
    const auto x = faiss_ext_test::clustered_vectors(600, d, 10, 0.1f, 1);
    const auto q = faiss_ext_test::near_vectors(x, 20, d, 0.02f, 2);
    for (const std::string text :
         {"RFF512(gaussian),Flat",
          "RFF512(laplacian,gamma=1),IVF8,Flat",
          "PCA6,RFF128(matern),HNSW16"}) {
        const auto index = faiss_ext::index_factory(d, text);
        index->train(600, x.data());
        index->add(600, x.data());
        const auto found = faiss_ext_test::search(*index, q, 5);
        faiss::VectorIOWriter writer;
        faiss_ext::write_index(index.get(), &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        faiss_ext_test::expect_same(
                faiss_ext_test::search(*faiss_ext::read_index(&reader), q, 5),
                found);
        faiss_ext_test::expect_same(
                faiss_ext_test::search(
                        *faiss_ext::clone_index(index.get()), q, 5),
                found);
    }
    // L2 distances are 2 (1 - K)
    const auto index =
            faiss_ext::index_factory(d, "RFF8192(gaussian,gamma=2),Flat");
    index->add(600, x.data());
    const auto found = faiss_ext_test::search(*index, q, 5);
    const GaussianKernel kernel(2);
    for (size_t i = 0; i < 20; i++) {
        for (size_t j = 0; j < 5; j++) {
            const float k = kernel(
                    &q[i * d], &x[size_t(found.labels[i * 5 + j]) * d], d);
            EXPECT_NEAR(found.distances[i * 5 + j], 2 - 2 * k, 0.2);
        }
    }
}

TEST(RandomFourierMap, Errors) {
    for (const auto& [text, says] :
         std::vector<std::pair<std::string, std::string>>{
                 {"RFF(gaussian)", "dims"},
                 {"RFF0(gaussian)", "dims"},
                 {"RFF33(gaussian)", "even"},
                 {"RFF64", "argument"},
                 {"RFF64(chi2)", "gaussian, laplacian, matern"},
                 {"RFF64(nothing)", "unknown kernel 'nothing'"},
                 {"RFF64(laplacian,proj=structured)", "'structured' of proj"},
                 {"RFF64(gaussian,proj=bilinear)", "structured, dense"},
                 {"RFF64(gaussian,seed=-1)", "'-1' of seed"},
                 {"RFF64(gaussian,gamma=0)", "'0' of gamma"},
                 {"RFF64(gaussian,dims=32)", "dims is given twice"},
                 {"RFF64(gaussian,m=3)", "unknown key 'm'"}}) {
        const std::string error = message_of([&] { map_factory(4, text); });
        EXPECT_TRUE(contains(error, text)) << error;
        EXPECT_TRUE(contains(error, says)) << error;
    }
    make(4, "RFF(gaussian,gamma=1,dims=64)")
            ->check_identical(*make(4, "RFF64(gaussian,gamma=1)"));
    const GaussianKernel kernel(1);
    EXPECT_TRUE(throws([&] { RandomFourierMap(0, 8, kernel); }, "dimension"));
    EXPECT_TRUE(throws([&] { RandomFourierMap(4, 7, kernel); }, "even"));
    EXPECT_TRUE(throws([&] { RandomFourierMap(4, 0, kernel); }, "dims"));
    EXPECT_TRUE(throws([&] { RandomFourierMap(4, 8, kernel, -1); }, "seed"));
}
