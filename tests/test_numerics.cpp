// SPDX-License-Identifier: MIT
// Extreme numbers and shapes: denormal, tiny and huge components, identical
// vectors, duplicates, constant features, one dimension, 100,000 dimensions.

#include <cfloat>
#include <set>

#include <gtest/gtest.h>

#include <faiss/IndexIDMap.h>

#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "testing.h"
#include "testing_kernels.h"
#include "testing_strings.h"

using namespace faiss_ext_test;
using testing_strings::d;
using testing_strings::Row;

namespace {

constexpr idx_t n = 120, nq = 7, k = 5;

struct Edge {
    const char* name;
    Floats x;

    float largest() const {
        return *std::max_element(x.begin(), x.end());
    }
};

Floats times(Floats x, double factor) {
    for (float& v : x) {
        v = float(v * factor);
    }
    return x;
}

/// Sets of n vectors. Components are from 0 to 1e37, which every kernel
/// accepts.
const std::vector<Edge>& edges() {
    static const std::vector<Edge> all = [] {
        const Floats x = uniform_vectors(n, d, 1);
        std::vector<Edge> made = {
                {"denormal", times(x, 1e-40)},
                {"smallest denormal", Floats(n * d, 1e-45f)},
                {"tiny", times(x, 1e-30)},
                {"squares are denormal", times(x, 1e-20)},
                {"squares overflow", times(x, 1e25)},
                {"huge", times(x, 9e36)},
                {"zero", Floats(n * d)},
                {"all the same", Floats(n * d, 0.25f)},
                {"duplicates", x},
                {"features that do not vary", x},
                {"one feature varies", Floats(n * d, 0.5f)},
                {"from denormal to huge", x}};
        for (idx_t i = 0; i < n; i++) {
            std::copy_n(&x[i % 5 * d], d, &made[8].x[i * d]);
            std::fill_n(&made[9].x[i * d], d - 3, 0.125f);
            made[10].x[i * d + 3] = float(i);
            for (int j = 0; j < d; j++) {
                made[11].x[i * d + j] *=
                        float(std::pow(10.0, (i * 7 + j) % 76 - 40));
            }
        }
        return made;
    }();
    return all;
}

/// Distances are sorted and not NaN. Ids exist and differ. Missing results have
/// id -1 and come last.
void expect_sound(
        const Found<float>& found,
        const faiss::Index& index,
        idx_t ntotal) {
    for (size_t at = 0; at < found.labels.size(); at += k) {
        std::set<idx_t> ids;
        for (idx_t j = 0; j < k; j++) {
            const idx_t id = found.labels[at + j];
            const float distance = found.distances[at + j];
            ASSERT_FALSE(std::isnan(distance)) << at / k;
            ASSERT_TRUE(id >= -1 && id < ntotal) << id;
            ASSERT_TRUE(id == -1 || ids.insert(id).second) << "twice: " << id;
            if (j > 0) {
                const float before = found.distances[at + j - 1];
                ASSERT_TRUE(
                        index.metric_type == faiss::METRIC_INNER_PRODUCT
                                ? before >= distance
                                : before <= distance)
                        << before << ", then " << distance;
                ASSERT_TRUE(id == -1 || found.labels[at + j - 1] != -1);
            }
        }
    }
}

void add(faiss::Index& index, const Floats& x) {
    const idx_t count = x.size() / index.d;
    if (dynamic_cast<faiss::IndexIDMap*>(&index)) {
        std::vector<idx_t> ids(count);
        std::iota(ids.begin(), ids.end(), index.ntotal);
        index.add_with_ids(count, x.data(), ids.data());
    } else {
        index.add(count, x.data());
    }
}

struct Index : testing::TestWithParam<Row> {
    std::unique_ptr<faiss::Index> made(const Floats& train) const {
        auto index = index_factory(d, GetParam().text);
        index->train(n, train.data());
        return index;
    }

    /// faiss::IndexIVF ends the process if squares overflow.
    bool aborts(const Edge& edge) const {
        return std::string(GetParam().text).find("IVF") == 0 &&
                edge.largest() > 1e18f;
    }
};

INSTANTIATE_TEST_SUITE_P(
        Edges,
        Index,
        testing::ValuesIn(testing_strings::indexes),
        testing_strings::name_of_row);

/// Vectors are refused by a faiss::FaissException, or they are searched soundly
/// with the same results on any number of threads.
TEST_P(Index, TrainsWithThem) {
    for (const Edge& edge : edges()) {
        SCOPED_TRACE(edge.name);
        if (aborts(edge)) {
            continue;
        }
        const auto index_of = [&] {
            auto index = made(edge.x);
            add(*index, edge.x);
            return index;
        };
        std::unique_ptr<faiss::Index> index;
        const std::string refused = error_of([&] { index = index_of(); });
        if (!index) {
            EXPECT_NE(refused, "");
            EXPECT_NE(edge.name, std::string("features that do not vary"));
            continue;
        }
        const Floats q = rows(edge.x, d, 3, 3 + nq);
        const auto found = search(*index, q, k);
        expect_sound(found, *index, n);
        if (std::string(GetParam().text).find("HNSW") == std::string::npos) {
            const Threads several(3);
            expect_same(search(*index_of(), q, k), found);
        }
    }
}

TEST_P(Index, TakesThemAfterOrdinaryTraining) {
    const Floats ordinary = times(uniform_vectors(n, d, 2), 2.0 / d);
    const auto index = made(ordinary);
    add(*index, ordinary);
    idx_t total = n;
    for (const Edge& edge : edges()) {
        SCOPED_TRACE(edge.name);
        if (aborts(edge)) {
            continue;
        }
        const Floats q = rows(edge.x, d, 3, 3 + nq);
        Found<float> found;
        if (error_of([&] { found = search(*index, q, k); }).empty()) {
            expect_sound(found, *index, total);
        }
        if (error_of([&] { add(*index, edge.x); }).empty()) {
            total += n;
        }
        ASSERT_EQ(index->ntotal, total);
        const Floats usual = rows(ordinary, d, 0, nq);
        if (error_of([&] { found = search(*index, q, k); }).empty()) {
            expect_sound(found, *index, total);
        }
        found = search(*index, usual, k);
        expect_sound(found, *index, total);
    }
}

/// For every kernel, k(x, y) is finite and symmetric, and distances are finite,
/// symmetric and >= 0.
TEST(Numerics, Kernels) {
    for (const Row& row : testing_strings::kernels) {
        SCOPED_TRACE(row.text);
        for (const Edge& edge : edges()) {
            SCOPED_TRACE(edge.name);
            const auto kernel = kernel_factory(row.text);
            const Floats some = times(uniform_vectors(n, d, 2), 2.0 / d);
            kernel->train(n, some.data(), d);
            const Floats x = rows(edge.x, d, 0, 9);
            Floats values, distances;
            const std::string refused = error_of([&] {
                values = kernel_block(*kernel, x, x, d);
                distances = kernel_distances(*kernel, x, x, d);
            });
            if (!refused.empty()) {
                EXPECT_TRUE(edge.largest() > 1e6 || edge.largest() < 1e-6);
                continue;
            }
            for (int i = 0; i < 9; i++) {
                for (int j = 0; j < 9; j++) {
                    const float value = values[i * 9 + j];
                    const float distance = distances[i * 9 + j];
                    if (values[i * 10] > Kernel::max_self_value ||
                        values[j * 10] > Kernel::max_self_value) {
                        continue; // indexes refuse such vectors
                    }
                    ASSERT_TRUE(std::isfinite(value)) << i << ", " << j;
                    ASSERT_EQ(value, values[j * 9 + i]) << i << ", " << j;
                    ASSERT_TRUE(std::isfinite(distance)) << i << ", " << j;
                    ASSERT_GE(distance, 0) << i << ", " << j;
                }
            }
        }
    }
}

// Strings for which the scale of the vectors has no effect. Powers of two do
// not change their digits.
const char* const without_scale[] = {
        "KFlat(gaussian)",
        "KFlat(matern,nu=1.5)",
        "KFlat(laplacian)",
        "KFlat(chi2)",
        "KFlat(js)",
        "KFlat(intersection)",
        "KFlat(hellinger)",
        "KFlat(expchi2)",
        "KFlat(jaccard)",
        "KFlat(linear)",
        "KFlat(cosine)",
        "KFlat(normalized(linear))",
        "HNSW8,KFlat(chi2)",
        "KIVF4(M=6)",
        "SIK256(gaussian),BFlat",
        "SIK256(laplacian),BFlat",
        "BSIK256,BFlat",
        "RHBE256,BFlat",
        "RHBE256(center=1),BFlat",
        "RHBE256,AFlat",
        "SIK256(gaussian),AFlat",
        "KLSH64(chi2,p=40),BFlat",
        "KPCA8(gaussian,p=40),Flat",
        "RFF64(gaussian),Flat",
        "SCR256,BFlat"};

TEST(Numerics, AnyScaleIsRightOrRefused) {
    const Floats ordinary = times(uniform_vectors(n, d, 8), 2.0 / d);
    for (const std::string text : without_scale) {
        SCOPED_TRACE(text);
        const auto found_at = [&](int power) {
            const Floats x = times(ordinary, std::ldexp(1.0, power));
            const auto index = index_factory(d, text);
            index->train(n, x.data());
            add(*index, x);
            return search(*index, rows(x, d, 0, 30), k).labels;
        };
        const auto expected = found_at(0);
        int right = 0;
        for (int power = -110; power <= 130; power += 7) {
            std::vector<idx_t> labels;
            const std::string refused =
                    error_of([&] { labels = found_at(power); });
            if (!refused.empty()) {
                const bool says_why =
                        refused.find("scale the vectors") != refused.npos ||
                        refused.find("at most 1e37") != refused.npos ||
                        refused.find("too small or too large") != refused.npos;
                EXPECT_TRUE(says_why) << power << ": " << refused;
                continue;
            }
            right++;
            // results that are equal up to rounding may be in another order
            idx_t same = 0;
            for (size_t i = 0; i < labels.size(); i++) {
                same += labels[i] == expected[i];
            }
            EXPECT_GE(same, idx_t(labels.size()) - 4) << "2^" << power;
        }
        EXPECT_GE(right, 12);
    }
}

/// A string, the size of the components, and the reason why they are refused.
struct Refused {
    const char* text;
    double size;
    const char* why;
};

const Refused refused_scales[] = {
        {"KFlat(gaussian)", 1e-18, "scale the vectors up"},
        {"KFlat(gaussian,gamma=1)", 1e19, "too large"},
        {"KFlat(laplacian,gamma=1)", 3e38, "too large"},
        {"KFlat(linear)", 1e-25, "underflows"},
        {"KFlat(linear)", 1e20, "overflows"},
        {"KFlat(poly(degree=3,c=0))", 1e-7, "underflows"},
        {"KFlat(chi2)", 1e-32, "add up to"},
        {"KFlat(expchi2)", 1e-32, "add up to"},
        {"HKM1(chi2),Flat", 1e-32, "add up to"},
        {"AHK64(js),BFlat", 1e-32, "add up to"},
        {"SIK64(laplacian,gamma=1e14),BFlat", 1, "too far from the origin"},
        {"SIK64(gaussian,gamma=1e16),BFlat", 1, "too far from the origin"},
        {"BSIK64(gamma=1e16),BFlat", 1, "too far from the origin"},
        {"RFF64(gaussian,gamma=1e16),Flat", 1, "too far from the origin"},
        {"RHBE64(center=1),BFlat", 1e38, "1e37"},
        {"RHBE64,AFlat", 3e38, "projections of a query overflow"},
        {"KIVF4", 1e-19, "scale the vectors up"}};

TEST(Numerics, WhatIsRefusedAndWhy) {
    const Floats ordinary = uniform_vectors(n, d, 8, 0.5, 1);
    for (const Refused& row : refused_scales) {
        SCOPED_TRACE(row.text);
        const Floats x = times(ordinary, row.size);
        const auto index = index_factory(d, row.text);
        EXPECT_TRUE(throws(
                [&] {
                    index->train(n, x.data());
                    add(*index, x);
                    search(*index, x, k);
                },
                row.why));
        if (std::string(row.text).find("gamma=1e1") != std::string::npos) {
            continue;
        }
        // then ordinary vectors and zeros are accepted
        index->reset();
        index->train(n, ordinary.data());
        add(*index, ordinary);
        add(*index, Floats(d));
        const auto found = search(*index, ordinary, k);
        expect_sound(found, *index, n + 1);
    }
}

/// Rounding must not change a vector so that the kernel, and with it the reader
/// of a file, refuses it.
TEST(Numerics, WhatIsStoredCanBeRead) {
    const auto kernels =
            joined(plain_kernels,
                   {"expchi2(gamma=1)",
                    "gaussian(gamma=1)",
                    "laplacian(gamma=1)",
                    "matern(gamma=1)",
                    "poly(degree=2,c=0)",
                    "normalized(linear)"});
    const double limits[] = {
            1e-30, 1e-18, 3e-9, 1.8e19, 6.5e18, 1e37, 4.25e37, 8.5e37};
    constexpr double max = FLT_MAX;
    const Floats constant(d, 1), varied = uniform_vectors(1, d, 9, 0.25, 1);
    for (const std::string& kernel : kernels) {
        for (const std::string store : {"f16", "u8"}) {
            SCOPED_TRACE(kernel + ", " + store);
            const auto index = index_factory(
                    d, "KFlat(" + kernel + ",store=" + store + ")");
            int taken = 0, refused = 0;
            const auto take = [&](const Floats& x) {
                const idx_t before = index->ntotal;
                if (!error_of([&] { add(*index, x); }).empty()) {
                    refused++;
                    EXPECT_EQ(index->ntotal, before);
                    return;
                }
                taken++;
                const auto copy = faiss_ext::clone_index(index.get());
                EXPECT_EQ(copy->ntotal, 1);
                Floats back(d);
                index->reconstruct(0, back.data());
                const double largest = *std::max_element(x.begin(), x.end());
                const double step = std::max(largest, 1e-42) / 255;
                for (size_t i = 0; i < d; i++) {
                    ASSERT_NEAR(back[i], x[i], step) << largest;
                }
                index->reset();
            };
            for (const Floats& x : {constant, varied}) {
                for (const double limit : limits) {
                    for (int i = -20; i <= 20; i++) {
                        take(times(x, limit * (1 + i * 1e-4)));
                        take(times(x, limit / d * (1 + i * 1e-4)));
                        take(times(x, limit / std::sqrt(d) * (1 + i * 1e-4)));
                    }
                }
                for (double scale = 1e-44; scale < max; scale *= 1.3) {
                    take(times(x, scale));
                }
                take(times(x, max));
            }
            EXPECT_GT(taken, 100);
            EXPECT_TRUE(refused > 10 || kernel == "cosine");
        }
    }
}

/// FAISS's k-means and lists end the process if squares overflow.
TEST(Numerics, WhatFaissWouldNotBear) {
    struct Case {
        const char* text;
        double size; ///< size of a component
        const char* why;
    };
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const char* finite = "component 3 of vector 57 is inf";
    const char* large = "vector 57 is too large";
    const Case cases[] = {
            {"OPQ4_16,KFlat(gaussian)", 1e37, large},
            {"OPQ4_16,KFlat(gaussian)", infinity, finite},
            {"PCAR16,KIVF4", 1e30, large},
            {"PCAR16,KIVF4", infinity, finite},
            {"RR16,SIK64(laplacian,gamma=1),BFlat", 1e30, large},
            {"L2norm,HKM1(chi2),PCAR8,Flat", 1e30, large},
            {"L2norm,HKM1(chi2),PCAR8,Flat", infinity, finite},
            {"Pad48,KFlat(gaussian)", infinity, finite},
            {"HKM1(intersection,degree=2),PQ4x2", 1e37, large},
            {"HKM1(intersection,degree=2),IVF4,Flat", 1e37, large},
            {"HKM1(intersection,degree=2),Flat", 1e37, large},
            {"IVF4,Flat,Refine(KFlat(chi2))", 1e37, large},
            {"PCA16,IVF4,Flat,Refine(KFlat(chi2))", 1e37, large},
            {"Flat,Refine(KFlat(chi2))", 1e37, large}};
    constexpr idx_t many = 400;
    const Floats x = uniform_vectors(many, d, 8, 0.5, 1);
    for (const Case& c : cases) {
        SCOPED_TRACE(c.text);
        SCOPED_TRACE(c.size);
        Floats bad = x;
        bad[57 * d + 3] = float(c.size);
        const auto index = index_factory(d, c.text);
        if (!index->is_trained) {
            EXPECT_TRUE(throws([&] { index->train(many, bad.data()); }, c.why));
        }
        index->train(many, x.data());
        EXPECT_TRUE(throws([&] { add(*index, bad); }, c.why));
        EXPECT_EQ(index->ntotal, 0);
        add(*index, x);
        const auto before = search(*index, x, k);
        EXPECT_TRUE(throws([&] { search(*index, bad, k); }, c.why));
        expect_same(search(*index, x, k), before);
    }
}

TEST(Numerics, DistancesAreNotMinusZero) {
    const Floats x = uniform_vectors(n, d, 8);
    for (const std::string kernel :
         {"gaussian", "laplacian", "matern,nu=1.5", "expchi2", "chi2"}) {
        const auto index = index_factory(d, "KFlat(" + kernel + ")");
        index->train(n, x.data());
        add(*index, x);
        for (float distance : search(*index, x, 1).distances) {
            EXPECT_TRUE(distance == 0 && !std::signbit(distance)) << kernel;
        }
    }
}

const char* const one_dimension[] = {
        "SIK64(gaussian),BFlat",
        "SIK64(laplacian),AFlat",
        "SIK64(matern,proj=dense),BPerm(M=5,B=3)",
        "BSIK64,BFlat",
        "RHBE8(center=1),BHash8",
        "RHBE8(rot=pca),BFlat",
        "RHBE8(rot=itq),AFlat",
        "AHK64(chi2),BFlat,Refine(KFlat(chi2))",
        "AHK64(chi2,rot=itq),BIVF4",
        "SCR64,BHNSW8",
        "SH8,BFlat",
        "KLSH64(chi2,p=40),BFlat",
        "KFlat(chi2)",
        "KFlat(gaussian)",
        "KFlat(js,store=u8)",
        "HNSW8,KFlat(chi2)",
        "HKM1(chi2),KIVF4(M=3)",
        "KPCA8(chi2,p=40),Flat",
        "RFF16(gaussian),Flat",
        "KIVF4(M=1),Refine(KFlat(laplacian))"};

TEST(Numerics, OneDimension) {
    Floats x(n);
    for (idx_t i = 0; i < n; i++) {
        x[i] = float(1 + i * 7919 % n);
    }
    for (const std::string text : one_dimension) {
        SCOPED_TRACE(text);
        const auto index = index_factory(1, text);
        index->train(n, x.data());
        add(*index, x);
        const auto found = search(*index, x, k);
        expect_sound(found, *index, n);
        for (idx_t i = 0; i < n && text.find("KFlat") == 0; i++) {
            EXPECT_EQ(found.labels[i * k], i);
        }
    }
}

TEST(Numerics, OneVectorHasNoDirections) {
    const Floats x = uniform_vectors(1, d, 1);
    for (const char* text : {"AHK8(chi2,rot=pca)", "RHBE8(rot=itq)"}) {
        const auto hash = kernel_hash_factory(d, text);
        EXPECT_TRUE(throws([&] { hash->train(1, x.data()); }, "at least 2"));
        EXPECT_FALSE(hash->is_trained);
    }
}

const char* const many_dimensions[] = {
        "SIK64(gaussian),BFlat",
        "SIK64(laplacian),AFlat",
        "SIK64(matern,proj=dense),BFlat",
        "BSIK64,BPerm(M=5,B=3)",
        "BSIK64(w=dense),BFlat",
        "RHBE64(center=1),BHNSW8",
        "AHK64(chi2),BFlat,Refine(KFlat(chi2))",
        "SCR64,BHash8",
        "KLSH64(chi2,p=15),BFlat",
        "KLSH64(gaussian,p=15),BIVF4",
        "KFlat(js,store=u8)",
        "HNSW8,KFlat(intersection)",
        "KPCA8(chi2,p=15),Flat",
        "RFF16(gaussian),Flat",
        "PCA9,SH16,BFlat",
        "HKM0(chi2),PCAR8,KIVF4(M=4)"};

TEST(Numerics, HundredThousandDimensions) {
    constexpr int D = 100'000;
    constexpr idx_t count = 20;
    const Floats x = times(uniform_vectors(count, D, 5), 2.0 / D);
    for (const char* text : many_dimensions) {
        SCOPED_TRACE(text);
        const auto index = index_factory(D, text);
        index->train(count, x.data());
        index->add(count, x.data());
        const auto found = search(*index, rows(x, D, 0, nq), k);
        expect_sound(found, *index, count);
        for (idx_t i = 0; i < nq; i++) {
            // others are far away
            EXPECT_EQ(found.labels[i * k], i);
        }
    }
    // if a matrix of D x D is needed, the message says so
    for (const char* text : {"AHK8(chi2,rot=pca),BFlat", "SH8,BFlat"}) {
        const auto index = index_factory(D, text);
        EXPECT_TRUE(
                throws([&] { index->train(count, x.data()); }, "at most 8192"));
    }
}

} // namespace
