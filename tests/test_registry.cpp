// Schemes and kernels from outside of the library.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/io.h>

#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/projections/DenseProjection.h>

#include "testing_indexes.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 8;
constexpr idx_t n = 200;

/// Bit j is 1 where <w_j, x> >= bias, w_j random. `SRP64(bias=0.5,seed=3)`.
struct SignProjectionHash : KernelHash {
    double bias = 0;
    int64_t seed = 0;
    DenseProjection projection;

    SignProjectionHash() = default;

    SignProjectionHash(int d, int nbits, Spec& spec)
            : KernelHash(d, nbits),
              bias(spec.get_double("bias", 0.0, -10, 10)),
              seed(spec.get_int("seed", 1, 0, 1000)) {
        is_trained = false;
    }

    void train(idx_t count, const float* x) override {
        check_input(count, x, "SignProjectionHash::train");
        std::vector<float> A(size_t(d_in) * nbits);
        std::mt19937_64 rng(seed);
        std::normal_distribution<float> normal;
        for (float& v : A) {
            v = normal(rng);
        }
        projection = DenseProjection(d_in, nbits, A.data());
        is_trained = true;
    }

    void margins(size_t count, const float* x, float* out) const override {
        projection.apply(count, x, out);
        for (size_t i = 0; i < count * nbits; i++) {
            out[i] -= float(bias);
        }
    }

    double expected_hamming(double kernel_value) const override {
        return nbits * std::acos(kernel_value) / M_PI;
    }

    double kernel_estimate(double hamming) const override {
        return std::cos(M_PI * normalized_hamming(hamming));
    }

    void write_fields(faiss::IOWriter* f) const override {
        FAISS_THROW_IF_NOT((*f)(&bias, sizeof(bias), 1) == 1);
        FAISS_THROW_IF_NOT((*f)(&seed, sizeof(seed), 1) == 1);
        projection.write(f);
    }

    void read_fields(faiss::IOReader* f) override {
        FAISS_THROW_IF_NOT((*f)(&bias, sizeof(bias), 1) == 1);
        FAISS_THROW_IF_NOT((*f)(&seed, sizeof(seed), 1) == 1);
        projection.read(f);
    }
};

/// (a + <x, y>)^2, on non-negative vectors. `mine(a=2)`.
struct MineKernel : Kernel {
    double a;

    explicit MineKernel(double a) : a(a) {}
    explicit MineKernel(Spec& spec)
            : MineKernel(spec.get_double("a", 1.0, 0, 100)) {}

    void block(
            size_t count,
            const float* x,
            size_t m,
            const float* y,
            size_t dim,
            float* out) const override {
        for (size_t i = 0; i < count; i++) {
            for (size_t j = 0; j < m; j++) {
                double dot = 0;
                for (size_t k = 0; k < dim; k++) {
                    dot += double(x[i * dim + k]) * y[j * dim + k];
                }
                out[i * m + j] = float((a + dot) * (a + dot));
            }
        }
    }

    void check_input(idx_t count, const float* x, size_t dim, const char* where)
            const override {
        Kernel::check_input(count, x, dim, where);
        FAISS_THROW_IF_NOT_MSG(
                std::all_of(x, x + count * dim, [](float v) { return v >= 0; }),
                "mine wants no negative numbers");
    }

    std::string description() const override {
        return "mine(a=" + std::to_string(a) + ")";
    }
};

/// A shift-invariant kernel: twice as narrow as the Gaussian. `narrow`.
struct NarrowKernel : GaussianKernel {
    using GaussianKernel::GaussianKernel;

    double scale() const override {
        return 2 * GaussianKernel::scale();
    }
    std::string description() const override {
        return "narrow(" + describe_gamma() + ")";
    }
};

/// Never registered.
struct StrangeHash : SignProjectionHash {
    using SignProjectionHash::SignProjectionHash;
};
struct StrangeKernel : MineKernel {
    using MineKernel::MineKernel;
};

struct Registry : testing::Test {
    const std::vector<float> x = random_vectors(n, d, 1);
    const std::vector<float> q = rows(random_vectors(n, d, 2), d, 0, 20);

    static void SetUpTestSuite() {
        static const bool once = [] {
            register_hash<SignProjectionHash>("SRP");
            register_kernel<NarrowKernel>("narrow");
            register_kernel<MineKernel>("mine");
            return true;
        }();
        ASSERT_TRUE(once);
    }
};

void expect_same_hash(const KernelHash& a, const KernelHash& b) {
    const auto& c = dynamic_cast<const SignProjectionHash&>(a);
    const auto& e = dynamic_cast<const SignProjectionHash&>(b);
    EXPECT_EQ(c.d_in, e.d_in);
    EXPECT_EQ(c.d_out, e.d_out);
    EXPECT_EQ(c.nbits, e.nbits);
    EXPECT_EQ(c.is_trained, e.is_trained);
    EXPECT_EQ(c.bias, e.bias);
    EXPECT_EQ(c.seed, e.seed);
    EXPECT_EQ(c.projection.matrix(), e.projection.matrix());
    a.check_identical(b);
}

/// Through a file, a buffer and a clone.
std::vector<std::unique_ptr<faiss::Index>> copies_of(
        const faiss::Index& index) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    std::vector<std::unique_ptr<faiss::Index>> copies;
    faiss_ext::write_index(&index, name.c_str());
    copies.push_back(faiss_ext::read_index(name.c_str()));
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(&index, &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    copies.push_back(faiss_ext::read_index(&reader));
    copies.push_back(faiss_ext::clone_index(&index));
    return copies;
}

TEST_F(Registry, Names) {
    const auto hashes = hash_names(), kernels = kernel_names();
    EXPECT_TRUE(std::is_sorted(hashes.begin(), hashes.end()));
    EXPECT_TRUE(std::is_sorted(kernels.begin(), kernels.end()));
    EXPECT_EQ(std::count(hashes.begin(), hashes.end(), "SRP"), 1);
    EXPECT_EQ(std::count(hashes.begin(), hashes.end(), "SIK"), 1);
    for (const char* name :
         {"mine", "narrow", "gaussian", "laplacian", "linear", "matern"}) {
        EXPECT_EQ(std::count(kernels.begin(), kernels.end(), name), 1) << name;
    }
    EXPECT_TRUE(is_faiss_ext_string("SRP64"));
    EXPECT_TRUE(is_faiss_ext_string("SRP64,BFlat"));
    EXPECT_TRUE(is_faiss_ext_string("PCA4,SRP64(bias=1),BFlat"));
    EXPECT_FALSE(is_faiss_ext_string("SRQ64,BFlat"));
}

TEST_F(Registry, Entries) {
    const auto hash = kernel_hash_factory(d, "SRP64(bias=0.5,seed=3)");
    EXPECT_EQ(find_hash(*hash).name, "SRP");
    const auto entry = find_hash("SRP");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->type, typeid(SignProjectionHash));
    EXPECT_EQ(typeid(*entry->make_empty()), typeid(SignProjectionHash));
    EXPECT_FALSE(find_hash("SRQ"));
    EXPECT_FALSE(find_hash(""));
    EXPECT_FALSE(find_hash("gaussian"));
    const auto kernel = kernel_factory("mine(a=2)");
    EXPECT_EQ(find_kernel(*kernel).name, "mine");
    EXPECT_EQ(dynamic_cast<const MineKernel&>(*kernel).a, 2);
}

TEST_F(Registry, HashFromAString) {
    const auto hash = kernel_hash_factory(d, "SRP64(bias=0.5,seed=3)");
    ASSERT_EQ(typeid(*hash), typeid(SignProjectionHash));
    const auto& srp = dynamic_cast<const SignProjectionHash&>(*hash);
    EXPECT_EQ(srp.d_in, d);
    EXPECT_EQ(srp.nbits, 64);
    EXPECT_EQ(srp.d_out, 64);
    EXPECT_EQ(srp.bias, 0.5);
    EXPECT_EQ(srp.seed, 3);
    EXPECT_EQ(
            dynamic_cast<const SignProjectionHash&>(
                    *kernel_hash_factory(d, "SRP8"))
                    .bias,
            0);

    // not trained, bad input
    std::vector<uint8_t> codes(n * 8);
    EXPECT_TRUE(throws(
            [&] { hash->encode(n, x.data(), codes.data()); }, "not trained"));
    hash->train(n, x.data());
    hash->encode(n, x.data(), codes.data());
    std::vector<float> bad(d, NAN);
    EXPECT_TRUE(throws([&] { hash->encode(1, bad.data(), codes.data()); }));
    const std::vector<float> A = srp.projection.matrix();
    for (idx_t i = 0; i < n; i++) {
        for (int j = 0; j < 64; j++) {
            float margin;
            const DenseProjection row(d, 1, &A[j * d]);
            row.apply(1, &x[i * d], &margin);
            EXPECT_EQ(codes[i * 8 + j / 8] >> j % 8 & 1, margin - 0.5f >= 0);
        }
    }

    // errors
    EXPECT_TRUE(throws(
            [] { kernel_hash_factory(d, "SRP64(bios=1)"); }, "bias=, seed="));
    EXPECT_TRUE(throws(
            [] { kernel_hash_factory(d, "SRP64(bias=11)"); }, "-10 to 10"));
    EXPECT_TRUE(
            throws([] { kernel_hash_factory(d, "SRP7"); }, "multiple of 8"));
    EXPECT_TRUE(
            throws([] { kernel_hash_factory(d, "SRQ64"); },
                   "SIK<bits>(...), SRP<bits>(...)"));
}

TEST_F(Registry, HashFiles) {
    const auto hash = kernel_hash_factory(d, "SRP64(bias=0.5,seed=3)");
    for (bool train : {false, true}) {
        if (train) {
            hash->train(n, x.data());
        }
        expect_same_hash(*hash, *hash->clone());
        TemporaryFolder folder;
        const std::string name = folder / "hash";
        write_VectorTransform(hash.get(), name.c_str());
        const auto copy = read_VectorTransform(name.c_str());
        expect_same_hash(*hash, dynamic_cast<const KernelHash&>(*copy));
    }
    const auto other = kernel_hash_factory(d, "SRP64(bias=0.5,seed=4)");
    other->train(n, x.data());
    EXPECT_TRUE(throws([&] { hash->check_identical(*other); }));
    const auto sik = kernel_hash_factory(d, "SIK64(gaussian,gamma=1)");
    EXPECT_TRUE(throws([&] { hash->check_identical(*sik); }));
}

TEST_F(Registry, HashInIndexes) {
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 10 * i + 4;
    }
    for (const std::string string :
         {"SRP64,BFlat",
          "SRP256(bias=0.25,seed=9),BFlat",
          "SRP64(seed=2),BHash4x4",
          "SRP64,BIVF4",
          "IDMap2,SRP256,BFlat",
          "PCA4,SRP128,BFlat",
          "SRP128,BFlat,Refine(KFlat(gaussian))",
          "IDMap2,PCA6,SRP128(bias=0.1),BHash2x4,Refine(KFlat(linear))",
          "SRP64,BFlat,Refine(Flat)"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_factory(d, string);
        index->train(n, x.data());
        if (string.rfind("IDMap2", 0) == 0) {
            EXPECT_EQ(typeid(*index), typeid(faiss::IndexIDMap2));
            index->add_with_ids(n, x.data(), ids.data());
        } else {
            index->add(n, x.data());
        }
        const auto found = search(*index, q, 5);
        for (const auto& copy : copies_of(*index)) {
            EXPECT_EQ(typeid(*copy), typeid(*index));
            expect_same(search(*copy, q, 5), found);
        }
    }
    // bits, by hand
    const auto index = faiss_ext::index_factory(d, "SRP256(seed=9),BFlat");
    index->train(n, x.data());
    index->add(n, x.data());
    const auto& hashing = dynamic_cast<const IndexKernelHash&>(*index);
    const auto a = codes_of(*hashing.hash, q), b = codes_of(*hashing.hash, x);
    const auto found = search(*index, q, 5);
    for (idx_t i = 0; i < 20; i++) {
        for (idx_t j = 0; j < 5; j++) {
            int hamming = 0;
            for (int k = 0; k < 32; k++) {
                hamming += __builtin_popcount(
                        a[i * 32 + k] ^ b[found.labels[i * 5 + j] * 32 + k]);
            }
            EXPECT_EQ(found.distances[i * 5 + j], hamming);
        }
    }
}

TEST_F(Registry, HashInBinaryIndexes) {
    const auto index =
            faiss_ext::index_binary_factory(d, "SRP64(bias=0.5),BHash8");
    auto& hashing = dynamic_cast<IndexBinaryKernelHash&>(*index);
    EXPECT_EQ(typeid(*hashing.hash), typeid(SignProjectionHash));
    EXPECT_EQ(typeid(*hashing.storage), typeid(faiss::IndexBinaryHash));
    hashing.train(n, x.data());
    hashing.add(n, x.data());
    TemporaryFolder folder;
    const std::string name = folder / "index";
    faiss_ext::write_index_binary(index.get(), name.c_str());
    for (const auto& copy :
         {faiss_ext::read_index_binary(name.c_str()).release(),
          faiss_ext::clone_binary_index(index.get()).release()}) {
        const std::unique_ptr<faiss::IndexBinary> owned(copy);
        const auto& other = dynamic_cast<const IndexBinaryKernelHash&>(*copy);
        expect_same_hash(*hashing.hash, *other.hash);
        expect_same(search(other, q, 5), search(hashing, q, 5));
    }
}

TEST_F(Registry, KernelInIndexes) {
    const auto kernel = kernel_factory("mine(a=2)");
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (const char* string : {"KFlat(mine(a=2))", "KFlat(mine,a=2)"}) {
            const auto index = faiss_ext::index_factory(d, string, metric);
            ASSERT_EQ(typeid(*index), typeid(IndexFlatKernel));
            index->add(n, x.data());
            const auto found = search(*index, q, 6);

            // brute force by the definition
            for (idx_t i = 0; i < 20; i++) {
                std::vector<std::pair<double, idx_t>> all;
                for (idx_t j = 0; j < n; j++) {
                    const auto k = [&](const float* a, const float* b) {
                        double dot = 2;
                        for (int c = 0; c < d; c++) {
                            dot += double(a[c]) * b[c];
                        }
                        return dot * dot;
                    };
                    const float *a = &q[i * d], *b = &x[j * d];
                    all.emplace_back(
                            metric == faiss::METRIC_L2
                                    ? k(a, a) + k(b, b) - 2 * k(a, b)
                                    : -k(a, b),
                            j);
                }
                std::sort(all.begin(), all.end());
                for (idx_t j = 0; j < 6; j++) {
                    const double expected = metric == faiss::METRIC_L2
                            ? all[j].first
                            : -all[j].first;
                    EXPECT_NEAR(found.distances[i * 6 + j], expected, 1e-3);
                }
                EXPECT_EQ(found.labels[i * 6], all[0].second);
            }
            for (const auto& copy : copies_of(*index)) {
                expect_same(search(*copy, q, 6), found);
                const auto& flat = dynamic_cast<const IndexFlatKernel&>(*copy);
                EXPECT_EQ(dynamic_cast<const MineKernel&>(*flat.kernel).a, 2);
            }

            // the default distance is the same for one pair and for many
            std::unique_ptr<faiss::DistanceComputer> computer(
                    index->get_distance_computer());
            computer->set_query(q.data());
            for (idx_t j = 0; j < 6; j++) {
                EXPECT_EQ((*computer)(found.labels[j]), found.distances[j]);
            }
        }
    }
}

TEST_F(Registry, KernelDecidesWhatItTakes) {
    const auto index = faiss_ext::index_factory(d, "KFlat(mine)");
    auto bad = x;
    bad[50] = -1e-9f;
    EXPECT_TRUE(throws([&] { index->add(n, bad.data()); }, "negative"));
    EXPECT_EQ(index->ntotal, 0);
    index->add(n, x.data());
    EXPECT_TRUE(throws([&] { search(*index, bad, 2); }, "negative"));
    EXPECT_TRUE(throws([&] { range_search(*index, bad, 2); }, "negative"));
    EXPECT_TRUE(throws([&] { index->train(n, bad.data()); }, "negative"));
}

TEST_F(Registry, KernelInOtherIndexes) {
    for (const char* string :
         {"SIK256(gaussian),BFlat,Refine(KFlat(mine(a=2)))",
          "HNSW16,KFlat(mine)",
          "IDMap,KFlat(mine,a=0.5)",
          "SIK256(narrow),BFlat",
          "SIK256(narrow,gamma=3),BFlat,Refine(KFlat(narrow))"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_factory(d, string);
        index->train(n, x.data());
        if (auto* map = dynamic_cast<faiss::IndexIDMap*>(index.get())) {
            std::vector<idx_t> ids(n);
            for (idx_t i = 0; i < n; i++) {
                ids[i] = i;
            }
            map->add_with_ids(n, x.data(), ids.data());
        } else {
            index->add(n, x.data());
        }
        const auto found = search(*index, x, 1);
        idx_t right = 0;
        for (idx_t i = 0; i < n; i++) {
            right += found.labels[i] == i;
        }
        EXPECT_GE(right, n - 4);
        for (const auto& copy : copies_of(*index)) {
            expect_same(search(*copy, x, 1), found);
        }
    }
}

TEST_F(Registry, KernelOfAScheme) {
    // the scheme uses what is overridden
    const auto narrow =
            kernel_hash_factory(d, "SIK512(narrow,gamma=0.5,seed=6)");
    const auto wide = kernel_hash_factory(d, "SIK512(gaussian,gamma=2,seed=6)");
    EXPECT_EQ(codes_of(*narrow, x), codes_of(*wide, x));
    const auto copy = narrow->clone();
    EXPECT_EQ(
            dynamic_cast<const ShiftInvariantHash&>(*copy)
                    .kernel->description(),
            "narrow(gamma=0.5)");
    // mine is a kernel, but not a shift-invariant one
    EXPECT_TRUE(throws(
            [] { kernel_hash_factory(d, "SIK64(mine)"); }, "shift-invariant"));
    EXPECT_TRUE(
            throws([] { kernel_factory("yours"); },
                   "laplacian, linear, matern, mine, narrow, normalized"));
}

TEST_F(Registry, ClassesThatAreNotRegistered) {
    Spec spec = Spec::parse("SRP");
    StrangeHash hash(d, 64, spec);
    hash.train(n, x.data());
    EXPECT_EQ(codes_of(hash, x).size(), size_t(n) * 8);
    TemporaryFolder folder;
    const std::string name = folder / "hash";
    EXPECT_TRUE(throws([&] { hash.clone(); }, "not registered"));
    EXPECT_TRUE(throws([&] { find_hash(hash); }, "not registered"));
    EXPECT_TRUE(
            throws([&] { write_VectorTransform(&hash, name.c_str()); },
                   "not registered"));
    EXPECT_TRUE(folder.names().empty());
    const StrangeKernel kernel(2);
    EXPECT_TRUE(throws([&] { kernel.clone(); }, "not registered"));
    EXPECT_TRUE(throws([&] { find_kernel(kernel); }, "not registered"));
    EXPECT_TRUE(throws([&] { IndexFlatKernel(d, kernel); }, "not registered"));
}

struct AnotherHash : SignProjectionHash {
    using SignProjectionHash::SignProjectionHash;
};
struct AnotherKernel : MineKernel {
    using MineKernel::MineKernel;
};

TEST_F(Registry, NamesThatCannotBe) {
    const auto hashes = hash_names(), kernels = kernel_names();
    // known, or the class is
    for (const char* name : {"SRP", "SIK"}) {
        EXPECT_TRUE(
                throws([&] { register_hash<AnotherHash>(name); }, "already"));
    }
    for (const char* name : {"mine", "gaussian", "linear"}) {
        EXPECT_TRUE(throws(
                [&] { register_kernel<AnotherKernel>(name); }, "already"));
    }
    EXPECT_TRUE(throws(
            [] { register_hash<SignProjectionHash>("SRPP"); }, "already"));
    EXPECT_TRUE(throws(
            [] { register_hash<ShiftInvariantHash>("KIS"); }, "already"));
    EXPECT_TRUE(
            throws([] { register_kernel<MineKernel>("minetoo"); }, "already"));
    EXPECT_TRUE(
            throws([] { register_kernel<LinearKernel>("dot"); }, "already"));
    // malformed
    for (const char* name :
         {"",
          "1",
          "1A",
          "A1",
          "SRP2",
          "A_B",
          "A B",
          " A",
          "A(",
          "A,",
          "A-B",
          "\xc3\x84",
          "A\n"}) {
        EXPECT_TRUE(
                throws([&] { register_hash<AnotherHash>(name); },
                       "cannot be the name"))
                << name;
    }
    for (const char* name :
         {"",
          "1",
          "1a",
          "_a",
          "a b",
          " a",
          "a(",
          "a,",
          "a-b",
          "a=b",
          "a.b",
          "\xc3\xa4",
          "a\n"}) {
        EXPECT_TRUE(
                throws([&] { register_kernel<AnotherKernel>(name); },
                       "cannot be the name"))
                << name;
    }
    EXPECT_TRUE(
            throws([] { register_hash<AnotherHash>(std::string("A\0B", 3)); }));
    EXPECT_EQ(hash_names(), hashes);
    EXPECT_EQ(kernel_names(), kernels);
}

struct LateHash : SignProjectionHash {
    using SignProjectionHash::SignProjectionHash;
};
struct LateKernel : MineKernel {
    using MineKernel::MineKernel;
    std::string description() const override {
        return "late_2";
    }
};

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
    EXPECT_EQ(typeid(*kernel_hash_factory(d, "Late8")), typeid(LateHash));
    EXPECT_EQ(kernel_factory("late_2")->clone()->description(), "late_2");
}

} // namespace
