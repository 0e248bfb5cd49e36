// SPDX-License-Identifier: MIT
// User-defined classes from outside the library: one for each registry.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/io.h>

#include <faiss_ext/hashes/MyHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/index_registry.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/describe.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>
#include <faiss_ext/projections/Projection.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 8;
constexpr idx_t n = 200, nq = 20;

/// A matrix of random signs, `signs`.
struct SignMatrix : Projection {
    std::vector<float> A;

    void fields(FieldVisitor& v) const override {
        Projection::fields(v);
        v.array("A", A, size_t(d_in) * d_out);
    }
    std::vector<float> matrix() const override {
        return A;
    }

   protected:
    void multiply(size_t count, const float* x, float* y) const override {
        for (size_t i = 0; i < count * d_out; i++) {
            const float* row = &A[i % d_out * d_in];
            y[i] = std::inner_product(
                    row, row + d_in, x + i / d_out * d_in, 0.f);
        }
    }
};

/// Bit j is 1 if <w_j, x> >= bias, with random w_j: `SRP64(bias=0.5,seed=3)`.
struct SignProjectionHash : KernelHash {
    double bias = 0;
    int64_t seed = 1;
    ClonePtr<SignMatrix> projection;

    void fields(FieldVisitor& v) const override {
        v.number("bias", bias, -10, 10, "threshold of all bits");
        v.integer("seed", seed, 0, 1000, "of the projection");
        v.learned_part("projection", projection);
    }
    void init() override {
        check_fields(*this);
        is_trained = false;
    }
    void restore() override {
        FAISS_THROW_IF_NOT(bool(projection) == is_trained);
    }
    void margins(size_t count, const float* x, float* out) const override {
        projection->apply(count, x, out);
        for (size_t i = 0; i < count * nbits; i++) {
            out[i] -= float(bias);
        }
    }
    double expected_hamming(double kernel_value) const override {
        return nbits * std::acos(kernel_value) / pi;
    }
    double kernel_estimate(double hamming) const override {
        return std::cos(pi * normalized_hamming(hamming));
    }

   protected:
    void learn(idx_t count, const float*) override {
        SignMatrix signs;
        signs.d_in = d_in;
        signs.d_out = nbits;
        std::mt19937_64 rng(seed);
        for (int i = 0; i < d_in * nbits; i++) {
            signs.A.push_back(rng() & 1 ? 1 : -1);
        }
        projection = signs;
        FAISS_THROW_IF_NOT_MSG(count != 13, "13 vectors bring bad luck");
    }
};

/// (a + <x, y>)^2 on non-negative vectors: `mine(a=2)`.
struct MineKernel : Kernel {
    double a = 1;

    void fields(FieldVisitor& v) const override {
        v.number("a", a, 0, 100, "what is added");
    }
    void block(
            size_t count,
            const float* x,
            size_t m,
            const float* y,
            size_t dim,
            float* out) const override {
        for (size_t i = 0; i < count * m; i++) {
            const float* row = x + i / m * dim;
            const double sum =
                    std::inner_product(row, row + dim, y + i % m * dim, a);
            out[i] = float(sum * sum);
        }
    }
    void check_input(idx_t count, const float* x, size_t dim, const char* where)
            const override {
        Kernel::check_input(count, x, dim, where);
        FAISS_THROW_IF_NOT_MSG(
                std::all_of(x, x + count * dim, [](float v) { return v >= 0; }),
                "mine wants no negative numbers");
    }
};

/// An additive kernel, 4 (x y)^(3/2) / (x + y)^2, whose signature is sech^2 of
/// half the log-ratio: `sech`.
struct SechKernel : AdditiveKernel {
    double signature(double lambda) const override {
        return std::pow(std::cosh(lambda / 2), -2);
    }
    double spectrum(double omega) const override {
        return omega == 0 ? 2 / pi : 2 * omega / std::sinh(pi * omega);
    }
    double default_period(int order, Window) const override {
        return 2 * pi * std::sqrt(std::max(order, 1));
    }
};

/// x, x^2, ..., x^degree, minus the map of the first training vector: `Mono3`.
struct MonomialMap : FeatureMap {
    int degree = 0;
    bool center = false;
    std::vector<float> origin;

    void fields(FieldVisitor& v) const override {
        v.integer("degree", degree, 1, 9, "highest power");
        v.flag("center", center, "whether the origin moves");
        v.array("origin", origin, center && is_trained ? d_in * degree : 0);
    }
    void init() override {
        check_fields(*this);
        restore();
        is_trained = !center;
    }
    void restore() override {
        d_out = d_in * degree;
    }
    void map(size_t count, const float* x, float* xt) const override {
        for (size_t i = 0; i < count * d_out; i++) {
            const size_t j = i % d_out;
            const double v = x[i / d_out * d_in + j % d_in];
            xt[i] = float(std::pow(v, 1 + j / d_in)) -
                    (origin.empty() ? 0 : origin[j]);
        }
    }

   protected:
    void learn(idx_t count, const float* x) override {
        std::vector<float> first(d_out);
        map(1, x, first.data());
        origin = first;
        FAISS_THROW_IF_NOT_MSG(count != 13, "13 vectors bring bad luck");
    }
};

/// Multiplies distances by a constant, in up to 100 dimensions: `Scaled(by=3)`.
struct ScaledIndex : faiss::IndexFlat, HasFields {
    int by = 1;

    void fields(FieldVisitor& v) const override {
        v.integer("by", by, 1, 10, "factor of all distances");
        v.array("codes", codes, ntotal * d * sizeof(float));
    }
    void init() override {
        check_fields(*this);
        FAISS_THROW_IF_NOT_MSG(d <= 100, "Scaled takes 100 dimensions");
        restore();
    }
    void restore() override {
        code_size = d * sizeof(float);
    }
    void search(
            idx_t count,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        IndexFlat::search(count, x, k, distances, labels);
        for (idx_t i = 0; i < count * k; i++) {
            distances[i] *= float(by);
        }
    }
};

/// Adds a constant to distances: `Biased(by=3)`.
struct BiasedIndex : faiss::IndexBinaryFlat, HasFields {
    int by = 0;

    void fields(FieldVisitor& v) const override {
        v.integer("by", by, 0, 100, "added to all distances");
        v.array("codes", xb, ntotal * code_size);
    }
    void search(
            idx_t count,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        IndexBinaryFlat::search(count, x, k, distances, labels);
        for (idx_t i = 0; i < count * k; i++) {
            distances[i] += by;
        }
    }
};

/// Classes that are never registered, or refused.
struct StrangeHash : SignProjectionHash {};
struct StrangeKernel : MineKernel {};
struct StrangeMap : MonomialMap {};
struct StrangeIndex : IndexFlatKernel {};

[[maybe_unused]] const bool registered = [] {
    register_projection<SignMatrix>("signs");
    register_hash<SignProjectionHash>("SRP");
    register_kernel<MineKernel>("mine");
    register_kernel<SechKernel>("sech");
    register_map<MonomialMap>("Mono", "degree");
    register_index<ScaledIndex>("Scaled");
    register_index<BiasedIndex>("Biased");
    return true;
}();

struct Registry : testing::Test {
    const std::vector<float> x = uniform_vectors(n, d, 1);
    const std::vector<float> q = uniform_vectors(nq, d, 2);
};

std::unique_ptr<faiss::Index> make_index(const std::string& text) {
    return faiss_ext::index_factory(d, text);
}

TEST_F(Registry, NamesAndEntries) {
    const auto expect_names = [](const std::vector<std::string>& names,
                                 const std::vector<std::string>& expected) {
        EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
        for (const std::string& name : expected) {
            EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
        }
    };
    expect_names(hash_names(), {"SRP", "SIK"});
    expect_names(kernel_names(), {"mine", "sech", "gaussian"});
    expect_names(map_names(), {"HKM", "Mono"});
    expect_names(class_table<faiss::Index>().names(), {"KFlat", "Scaled"});
    EXPECT_TRUE(is_faiss_ext_string("PCA4,SRP64,BFlat"));
    EXPECT_FALSE(is_faiss_ext_string("SRQ64,BFlat"));
    for (const char* string :
         {"BFlat", "IDMap2,Biased(by=1)", "IDMap,BKFlat(jaccard)", "BIVF4"}) {
        EXPECT_TRUE(is_string_for_codes(string)) << string;
    }
    for (const char* string :
         {"BSIK64,BFlat", "Scaled", "IDMap,SRP64,BFlat", "Flat", ""}) {
        EXPECT_FALSE(is_string_for_codes(string)) << string;
    }

    const auto& hashes = class_table<KernelHash>();
    EXPECT_EQ(hashes.noun(), "hash");
    EXPECT_FALSE(hashes.find("gaussian"));
    const auto entry = hashes.find("SRP");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->type, typeid(SignProjectionHash));
    EXPECT_EQ(hashes.find(*entry->make()).name, "SRP");
}

TEST_F(Registry, Strings) {
    const std::string srp = "SRP64(bias=0.5,seed=3)";
    EXPECT_EQ(kernel_hash_factory(d, srp)->description(), srp);
    EXPECT_EQ(kernel_factory("mine(a=2)")->description(), "mine(a=2)");
    for (const char* text : {"Mono3", "Mono(degree=3)", "Mono3(center=0)"}) {
        EXPECT_EQ(map_factory(d, text)->description(), "Mono(degree=3)");
    }
    const auto index = faiss_ext::index_factory(
            d, "Scaled(by=3)", faiss::METRIC_INNER_PRODUCT);
    EXPECT_EQ(index->metric_type, faiss::METRIC_INNER_PRODUCT);
    EXPECT_EQ(dynamic_cast<const ScaledIndex&>(*index).by, 3);

    const std::pair<const char*, const char*> bad_strings[] = {
            {"SRP64(bios=1),BFlat", "bias=, seed="},
            {"SRP64(bias=11),BFlat", "-10 to 10"},
            {"SRQ64,KFlat(mine)",
             "SIK<bits>(...),<binary index>, SRP<bits>(...)"},
            {"SRP64,Unbiased", "BPerm(...), Biased(...)"},
            {"SRP64,Biased(by=101)", "0 to 100"},
            {"KFlat(yours)", "linear, matern, mine, normalized"},
            {"SIK64(mine),BFlat", "gaussian, laplacian, matern"},
            {"AHK64(mine),BFlat", "hellinger, intersection, js, sech"},
            {"Mono,Flat", "degree"},
            {"Mono10,Flat", "1 to 9"},
            {"Mono2(degree=3),Flat", "twice"},
            {"Mono2x,Flat", "Mono2x"},
            {"Monk2,KFlat(mine)", "KPCA<rank>(...),<index>, Mono<degree>(...)"},
            {"Scaled(by=11)", "1 to 10"},
            {"Scaled(bye=1)", "by="},
            {"Scaled,Flat", "Scaled"},
            {"HNSW16,Scaled", "KFlat"}};
    for (const auto& [text, named] : bad_strings) {
        EXPECT_TRUE(throws([&text = text] { make_index(text); }, named))
                << text;
    }
    EXPECT_TRUE(throws(
            [] { faiss_ext::index_factory(101, "Scaled"); }, "100 dimensions"));
}

// The contract of test_contract.cpp for the library's own classes.
TEST_F(Registry, TransformsDoWhatAllDo) {
    const std::function<std::unique_ptr<Transform>(std::string)> makers[] = {
            [](const std::string& seed) {
                return kernel_hash_factory(d, "SRP64(seed=" + seed + ")");
            },
            [](const std::string& degree) {
                return map_factory(d, "Mono" + degree + "(center=1)");
            }};
    for (const auto& make : makers) {
        const auto vt = make("2"), fresh = make("2"), other = make("3");
        EXPECT_TRUE(throws([&] { applied(*vt, q); }, "not trained"));
        EXPECT_TRUE(throws([&] { vt->check_identical(*other); }));
        // a failure changes nothing
        EXPECT_TRUE(throws([&] { vt->train(13, x.data()); }, "bad luck"));
        vt->check_identical(*fresh);
        for (bool train : {false, true}) {
            if (train) {
                vt->train(n, x.data());
            }
            const TemporaryFolder folder;
            const std::string name = folder / "vt";
            write_VectorTransform(vt.get(), name.c_str());
            const auto read = read_VectorTransform(name.c_str());
            EXPECT_EQ(typeid(*read), typeid(*vt));
            vt->check_identical(*read);
        }
        const auto y = applied(*vt, q);
        vt->train(50, &x[50 * d]); // no effect
        EXPECT_EQ(applied(*vt, q), y);
    }
    // learned values are compared, too
    const auto a = map_factory(d, "Mono2(center=1)"), b = a->clone();
    a->train(n, x.data());
    b->train(n / 2, &x[d]);
    EXPECT_TRUE(throws([&] { a->check_identical(*b); }));
    // values derived from parameters are checked
    a->d_out++;
    const TemporaryFolder folder;
    const std::string name = folder / "vt";
    EXPECT_TRUE(throws(
            [&] { write_VectorTransform(a.get(), name.c_str()); }, "17"));
    EXPECT_TRUE(folder.names().empty());
}

TEST_F(Registry, HashAndMapValues) {
    const auto hash = kernel_hash_factory(d, "SRP64(bias=0.5)");
    hash->train(n, x.data());
    const auto& srp = dynamic_cast<const SignProjectionHash&>(*hash);
    const auto codes = codes_of(*hash, q);
    for (idx_t i = 0; i < nq; i++) {
        for (int j = 0; j < 64; j++) {
            const float* row = &srp.projection->A[j * d];
            const float dot = std::inner_product(row, row + d, &q[i * d], 0.f);
            EXPECT_EQ(bit(codes, 8, i, j), dot - 0.5f >= 0);
        }
    }
    const auto y = applied(*map_factory(d, "Mono3"), q);
    EXPECT_EQ(y[0], q[0]);
    EXPECT_FLOAT_EQ(y[d + 1], q[1] * q[1]);
    EXPECT_FLOAT_EQ(y[5 * d], q[d] * q[d] * q[d]);
}

TEST_F(Registry, KernelInIndexes) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto index =
                faiss_ext::index_factory(d, "KFlat(mine,a=2)", metric);
        const auto same =
                faiss_ext::index_factory(d, "KFlat(poly,degree=2,c=2)", metric);
        index->add(n, x.data());
        same->add(n, x.data());
        const auto found = search(*index, q, 6);
        const auto expected = search(*same, q, 6);
        EXPECT_EQ(found.labels, expected.labels);
        for (size_t i = 0; i < found.distances.size(); i++) {
            EXPECT_NEAR(found.distances[i], expected.distances[i], 1e-3);
        }
        // the kernel decides what it accepts
        auto bad = x;
        bad[50] = -1e-9f;
        expect_throws(
                {{[&] { index->add(n, bad.data()); }, "negative"},
                 {[&] { index->train(n, bad.data()); }, "negative"},
                 {[&] { search(*index, bad, 2); }, "negative"},
                 {[&] { range_search(*index, bad, 2); }, "negative"}});
        EXPECT_EQ(index->ntotal, n);
    }
}

TEST_F(Registry, AdditiveKernel) {
    const auto kernel = kernel_factory("sech");
    auto y = rows(x, d, 0, nq);
    y[0] = y[3] = 0;
    const auto value = [](const float* a, const float* b) {
        double sum = 0;
        for (int c = 0; c < d; c++) {
            const double s = double(a[c]) + b[c];
            sum += s > 0 ? 4 * std::pow(double(a[c]) * b[c], 1.5) / (s * s) : 0;
        }
        return sum;
    };
    const auto K = kernel_block(*kernel, q, y, d);
    const auto D = kernel_distances(*kernel, q, y, d);
    const auto map = map_factory(d, "HKM8(sech)");
    const auto dots = kernel_block(
            LinearKernel(), applied(*map, q), applied(*map, y), map->d_out);
    for (idx_t i = 0; i < nq * nq; i++) {
        const float *a = &q[i / nq * d], *b = &y[i % nq * d];
        const double k = value(a, b);
        EXPECT_NEAR(K[i], k, 1e-5);
        EXPECT_NEAR(D[i], value(a, a) + value(b, b) - 2 * k, 2e-5);
        EXPECT_NEAR(dots[i], k, 0.02);
    }
}

// Indexes are trained and filled. Copies through a file and by cloning give the
// same results.
TEST_F(Registry, InIndexes) {
    for (const std::string text :
         {"SRP256(bias=0.25,seed=9),BFlat",
          "PCA6,SRP128(bias=0.1),BHash2x4,Refine(KFlat(linear))",
          "SRP64,Biased(by=3)",
          "SIK64(gaussian),BFlat,Refine(KFlat(mine(a=2)))",
          "HNSW16,KFlat(mine,a=0.5)",
          "HKM(sech,order=3),HNSW16",
          "AHK64(sech),BFlat",
          "KLSH64(sech,p=50),BFlat,Refine(KFlat(sech))",
          "Mono2(center=1),Mono2,IVF4,Flat",
          "PCA4,Mono2,SRP64,BFlat,Refine(Scaled)",
          "PCA4,HKM1(chi2,negative=sign),Scaled(by=3)",
          "Scaled(by=2),Refine(KFlat(gaussian,gamma=1))"}) {
        SCOPED_TRACE(text);
        const auto index = make_index(text);
        index->train(n, x.data());
        index->add(n, x.data());
        const auto found = search(*index, q, 5);
        const auto read = reread(*index);
        const auto clone = faiss_ext::clone_index(index.get());
        for (const faiss::Index* copy : {read.get(), clone.get()}) {
            EXPECT_EQ(typeid(*copy), typeid(*index));
            EXPECT_EQ(copy->ntotal, n);
            expect_same(search(*copy, q, 5), found);
        }
    }
    // a file in which an array is too short
    const auto index = make_index("Scaled");
    index->add(n, x.data());
    dynamic_cast<ScaledIndex&>(*index).codes.resize(100);
    EXPECT_TRUE(throws([&] { reread(*index); }, "codes"));
}

TEST_F(Registry, BinaryIndexes) {
    const auto index = faiss_ext::index_binary_factory(64, "Biased(by=3)");
    ASSERT_EQ(typeid(*index), typeid(BiasedIndex));
    faiss::IndexBinaryFlat flat(64);
    const auto codes = random_bytes(n * 8, 1);
    index->add(n, codes.data());
    flat.add(n, codes.data());
    auto expected = search(flat, codes, 4);
    for (int32_t& distance : expected.distances) {
        distance += 3;
    }
    const auto clone = faiss_ext::clone_binary_index(index.get());
    expect_same(search(*index, codes, 4), expected);
    expect_same(search(*clone, codes, 4), expected);
}

// The object was made without a part that a string must name.
TEST_F(Registry, MissingParts) {
    ShiftInvariantHash hash;
    hash.set_dimensions(d, 64);
    EXPECT_TRUE(throws([&] { check_fields(hash); }, "kernel"));
}

TEST_F(Registry, ClassesThatAreNotRegistered) {
    StrangeHash hash;
    hash.set_dimensions(d, 64);
    const StrangeKernel kernel;
    StrangeMap map;
    map.degree = 1;
    map.set_dimensions(d, d);
    StrangeIndex index;
    const TemporaryFolder folder;
    const std::string name = folder / "object";
    const char* file = name.c_str();
    expect_throws(
            {{[&] { hash.clone(); }, "not registered"},
             {[&] { kernel.clone(); }, "not registered"},
             {[&] { map.clone(); }, "not registered"},
             {[&] { class_table<KernelHash>().find(hash); }, "not registered"},
             {[&] { IndexFlatKernel(d, kernel); }, "not registered"},
             {[&] { write_VectorTransform(&hash, file); }, "not registered"},
             {[&] { write_VectorTransform(&map, file); }, "not registered"},
             {[&] { write_index(&index, file); }, ""},
             {[&] { clone_index(&index); }, ""}});
    EXPECT_TRUE(folder.names().empty());
}

TEST_F(Registry, NamesThatCannotBe) {
    const auto hashes = hash_names(), kernels = kernel_names();
    expect_throws(
            {{[] { register_hash<StrangeHash>("SIK"); }, "already"},
             {[] { register_hash<ShiftInvariantHash>("KIS"); }, "already"},
             {[] { register_kernel<StrangeKernel>("mine"); }, "already"},
             {[] { register_kernel<LinearKernel>("dot"); }, "already"},
             {[] { register_map<StrangeMap>("Mono"); }, "already"},
             {[] { register_index<ScaledIndex>("Other"); }, "already"}});
    const auto expect_refused = [](const std::string& name,
                                   const std::string& named) {
        SCOPED_TRACE(name);
        expect_throws(
                {{[&] { register_hash<StrangeHash>(name); }, named},
                 {[&] { register_map<StrangeMap>(name); }, named},
                 {[&] { register_index<StrangeIndex>(name); }, named}});
    };
    // a name has only one meaning at the beginning of a token
    for (const char* name :
         {"PCA", "IVF", "Flat", "BFlat", "SIK", "Mono", "KFlat", "BPerm"}) {
        expect_refused(name, name);
    }
    // malformed; at the beginning of a token, numbers follow a name
    const std::string malformed = "cannot be the name";
    for (const char* name :
         {"", "1a", " a", "a b", "a(", "a=", "a-b", "_a", "\xc3\xa4"}) {
        expect_refused(name, malformed);
        EXPECT_TRUE(throws(
                [&] { register_kernel<StrangeKernel>(name); }, malformed));
    }
    expect_refused("A1", malformed);
    expect_refused("A_B", malformed);
    expect_refused(std::string("A\0B", 3), malformed);
    EXPECT_EQ(hash_names(), hashes);
    EXPECT_EQ(kernel_names(), kernels);
}

struct LateHash : SignProjectionHash {};
struct LateKernel : MineKernel {};

TEST_F(Registry, WhileItIsUsed) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
        threads.emplace_back([] {
            for (int i = 0; i < 200; i++) {
                EXPECT_TRUE(kernel_factory("mine(a=2)")->clone());
                EXPECT_TRUE(kernel_hash_factory(d, "SRP8")->clone());
                EXPECT_GE(kernel_names().size(), 6u);
            }
        });
    }
    register_hash<LateHash>("Late");
    register_kernel<LateKernel>("late_2");
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_TRUE(kernel_hash_factory(d, "Late8")->clone());
    EXPECT_TRUE(kernel_factory("late_2")->clone());
}

// The scheme of docs/adding.md.
TEST_F(Registry, SchemeOfTheDocumentation) {
    register_hash<MyHash>("MYH");
    const std::vector<float> x = uniform_vectors(50, d, 1);
    std::vector<float> seen = x; // as seen from 0.5
    for (float& v : seen) {
        v -= 0.5f;
    }
    const auto with = [](int bits, const char* origin) {
        return kernel_hash_factory(
                d,
                "MYH" + std::to_string(bits) + "(origin=" + origin +
                        ",seed=7)");
    };
    const std::vector<float> margins = applied(*with(64, "0.5"), x);
    const std::vector<float> expected = applied(*with(64, "0"), seen);
    for (size_t i = 0; i < margins.size(); i++) {
        ASSERT_NEAR(margins[i], expected[i], 1e-3);
    }
    // the expected distance is that of the cosine from 0.5; by Hoeffding, all
    // 49 pairs are within the bound except with a probability of 2e-7
    constexpr int bits = 4096;
    const auto hash = with(bits, "0.5");
    const std::vector<uint8_t> codes = codes_of(*hash, x);
    for (size_t i = 0; i + 1 < 50; i++) {
        const float* a = &seen[i * d];
        const float* b = a + d;
        const double cosine = std::inner_product(a, a + d, b, 0.0) /
                std::sqrt(std::inner_product(a, a + d, a, 0.0) *
                          std::inner_product(b, b + d, b, 0.0));
        EXPECT_NEAR(
                double(hamming(codes, bits / 8, i, i + 1)),
                hash->expected_hamming(cosine),
                0.05 * bits);
    }
    const auto index = index_factory(d, "MYH64(origin=0.5),BFlat");
    index->add(50, x.data());
    const auto copy = clone_index(index.get());
    expect_same(search(*copy, x, 3), search(*index, x, 3));
    EXPECT_EQ(describe("MYH").size(), 2);
}

} // namespace
