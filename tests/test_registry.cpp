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
#include <faiss_ext/indexes/index_registry.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>
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
    int64_t seed = 1;
    ClonePtr<DenseProjection> projection;

    void fields(FieldVisitor& v) override {
        v.number("bias", bias, -10, 10, "threshold of all bits");
        v.integer("seed", seed, 0, 1000, "of the projection");
        v.learned_part("projection", projection);
    }

    void init() override {
        check_fields(*this);
        is_trained = false;
    }

    void restore() override {
        FAISS_THROW_IF_NOT_MSG(
                bool(projection) == is_trained &&
                        (!projection ||
                         (projection->d_in == d_in &&
                          projection->d_out == nbits)),
                "the projection does not fit");
    }

    // (learn() would be enough)
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
        projection->apply(count, x, out);
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
};

/// (a + <x, y>)^2, on non-negative vectors. `mine(a=2)`.
struct MineKernel : Kernel {
    double a = 1;

    void fields(FieldVisitor& v) override {
        v.number("a", a, 0, 100, "what is added");
    }

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
};

/// A shift-invariant kernel: twice as narrow as the Gaussian. `narrow`.
struct NarrowKernel : GaussianKernel {
    using GaussianKernel::GaussianKernel;

    double inverse_length() const override {
        return 2 * GaussianKernel::inverse_length();
    }
};

/// An additive kernel, 4 (x y)^(3/2) / (x + y)^2: its signature is sech^2 of
/// half the log-ratio. `sech`.
struct SechKernel : AdditiveKernel {
    double signature(double lambda) const override {
        const double c = std::cosh(lambda / 2);
        return 1 / (c * c);
    }
    double spectrum(double omega) const override {
        return omega == 0 ? 2 / M_PI : 2 * omega / std::sinh(M_PI * omega);
    }
    double default_period(int order, Window) const override {
        return 2 * M_PI * std::sqrt(std::max(order, 1));
    }
};

/// x, x^2, ..., x^degree, less the mean of the training vectors. `Mono3`.
struct MonomialMap : FeatureMap {
    int degree = 0;
    bool center = false;
    std::vector<float> mean;

    void fields(FieldVisitor& v) override {
        v.integer("degree", degree, 1, 9, "highest power");
        v.flag("center", center, "whether the mean is taken away");
        v.array("mean", mean, center && is_trained ? d_in * degree : 0);
    }
    void init() override {
        check_fields(*this);
        d_out = d_in * degree;
        is_trained = !center;
    }
    void restore() override {
        d_out = d_in * degree;
    }
    void map(size_t count, const float* x, float* xt) const override {
        for (size_t i = 0; i < count; i++) {
            for (int j = 0; j < d_out; j++) {
                const float v = x[i * d_in + j % d_in];
                float power = v;
                for (int k = 0; k < j / d_in; k++) {
                    power *= v;
                }
                xt[i * d_out + j] = power - (mean.empty() ? 0 : mean[j]);
            }
        }
    }

   protected:
    void learn(idx_t count, const float* x) override {
        std::vector<float> mapped(count * d_out), sums(d_out);
        map(count, x, mapped.data());
        for (size_t i = 0; i < mapped.size(); i++) {
            sums[i % d_out] += mapped[i] / float(count);
        }
        mean = sums;
        FAISS_THROW_IF_NOT_MSG(count != 13, "13 vectors bring bad luck");
    }
};

/// Every `step`-th vector of a list, by L1 distance. `Sparse(step=2)`.
struct SparseIndex : faiss::Index, HasFields {
    int step = 1;
    std::vector<float> vectors;

    void fields(FieldVisitor& v) override {
        v.integer("step", step, 1, 10, "one of so many vectors is searched");
        v.array("vectors", vectors, ntotal * d);
    }
    void init() override {
        check_fields(*this);
        FAISS_THROW_IF_NOT_MSG(d <= 100, "Sparse takes 100 dimensions");
    }
    void add(idx_t count, const float* x) override {
        for (idx_t i = 0; i < count * d; i++) {
            vectors.push_back(x[i]);
        }
        ntotal += count;
    }
    void reset() override {
        vectors.clear();
        ntotal = 0;
    }
    void search(
            idx_t count,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        for (idx_t i = 0; i < count; i++) {
            std::vector<std::pair<float, idx_t>> all;
            for (idx_t j = 0; j < ntotal; j += step) {
                float sum = 0;
                for (int c = 0; c < d; c++) {
                    sum += std::abs(x[i * d + c] - vectors[j * d + c]);
                }
                all.emplace_back(sum, j);
            }
            all.resize(std::max<size_t>(all.size(), k), {HUGE_VALF, -1});
            std::sort(all.begin(), all.end());
            for (idx_t j = 0; j < k; j++) {
                distances[i * k + j] = all[j].first;
                labels[i * k + j] = all[j].second;
            }
        }
    }
    void reconstruct(idx_t key, float* out) const override {
        std::copy_n(&vectors[key * d], d, out);
    }
};

/// Codes by the number of ones in which they differ from the query's, and a
/// parameter. `Ones(bias=3)`.
struct OnesIndex : faiss::IndexBinary, HasFields {
    int bias = 0;
    std::vector<uint8_t> codes;

    void fields(FieldVisitor& v) override {
        v.integer("bias", bias, 0, 100, "added to all distances");
        v.array("codes", codes, ntotal * code_size);
    }
    void add(idx_t count, const uint8_t* x) override {
        for (idx_t i = 0; i < count * code_size; i++) {
            codes.push_back(x[i]);
        }
        ntotal += count;
    }
    void reset() override {
        codes.clear();
        ntotal = 0;
    }
    static int ones(const uint8_t* code, int size) {
        int sum = 0;
        for (int i = 0; i < size; i++) {
            sum += __builtin_popcount(code[i]);
        }
        return sum;
    }
    void search(
            idx_t count,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        for (idx_t i = 0; i < count; i++) {
            std::vector<std::pair<int, idx_t>> all;
            for (idx_t j = 0; j < ntotal; j++) {
                const int difference = ones(x + i * code_size, code_size) -
                        ones(&codes[j * code_size], code_size);
                all.emplace_back(std::abs(difference) + bias, j);
            }
            all.resize(std::max<size_t>(all.size(), k), {INT32_MAX, -1});
            std::sort(all.begin(), all.end());
            for (idx_t j = 0; j < k; j++) {
                distances[i * k + j] = all[j].first;
                labels[i * k + j] = all[j].second;
            }
        }
    }
};

/// Never registered.
struct StrangeHash : SignProjectionHash {};
struct StrangeKernel : MineKernel {};
struct StrangeMap : MonomialMap {};
struct StrangeIndex : SparseIndex {};

struct Registry : testing::Test {
    const std::vector<float> x = random_vectors(n, d, 1);
    const std::vector<float> q = rows(random_vectors(n, d, 2), d, 0, 20);

    static void SetUpTestSuite() {
        static const bool once = [] {
            register_hash<SignProjectionHash>("SRP");
            register_kernel<NarrowKernel>("narrow");
            register_kernel<MineKernel>("mine");
            register_kernel<SechKernel>("sech");
            register_map<MonomialMap>("Mono", "degree");
            register_index<SparseIndex>("Sparse");
            register_index<OnesIndex>("Ones");
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
    ASSERT_EQ(bool(c.projection), bool(e.projection));
    EXPECT_TRUE(
            !c.projection || c.projection->matrix() == e.projection->matrix());
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
    const auto& hashes = class_table<KernelHash>();
    EXPECT_EQ(hashes.find(*hash).name, "SRP");
    const auto entry = hashes.find("SRP");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->type, typeid(SignProjectionHash));
    const auto made = entry->make();
    EXPECT_EQ(typeid(*made), typeid(SignProjectionHash));
    EXPECT_FALSE(hashes.find("SRQ"));
    EXPECT_FALSE(hashes.find(""));
    EXPECT_FALSE(hashes.find("gaussian"));
    EXPECT_EQ(hashes.noun(), "hash");
    const auto kernel = kernel_factory("mine(a=2)");
    EXPECT_EQ(class_table<Kernel>().find(*kernel).name, "mine");
    EXPECT_EQ(kernel->description(), "mine(a=2)");
    EXPECT_EQ(kernel_factory("mine")->description(), "mine");
    EXPECT_EQ(hash->description(), "SRP64(bias=0.5,seed=3)");
    EXPECT_EQ(kernel_hash_factory(d, "SRP8")->description(), "SRP8");
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
    const std::vector<float> A = srp.projection->matrix();
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
    EXPECT_TRUE(
            throws([] { kernel_hash_factory(d, "SIK64(mine)"); },
                   "gaussian, laplacian, matern, narrow"));
    EXPECT_TRUE(
            throws([] { kernel_factory("yours"); },
                   "laplacian, linear, matern, mine, narrow, normalized"));
}

TEST_F(Registry, AdditiveKernel) {
    const auto kernel = kernel_factory("sech");
    EXPECT_EQ(kernel->description(), "sech");
    auto y = x;
    y[0] = y[3] = 0;
    const auto value = [](const float* a, const float* b) {
        double sum = 0;
        for (int c = 0; c < d; c++) {
            const double s = double(a[c]) + b[c];
            sum += s > 0 ? 4 * std::pow(double(a[c]) * b[c], 1.5) / (s * s) : 0;
        }
        return sum;
    };
    for (idx_t i = 0; i < 20; i++) {
        for (idx_t j = 0; j < 20; j++) {
            const float *a = &q[i * d], *b = &y[j * d];
            EXPECT_NEAR((*kernel)(a, b, d), value(a, b), 1e-5);
            float distance;
            kernel->distance_block(1, a, 1, b, d, &distance);
            EXPECT_NEAR(
                    distance,
                    value(a, a) + value(b, b) - 2 * value(a, b),
                    2e-5);
        }
    }
    y[5] = -1;
    std::vector<float> out(n);
    EXPECT_TRUE(throws(
            [&] { kernel->gram(1, q.data(), n, y.data(), d, out.data()); },
            "component 5 of vector 0"));

    // the map that is made of it
    const auto map = map_factory(d, "HKM8(sech)");
    std::vector<float> xt(n * map->d_out);
    map->apply_noalloc(n, x.data(), xt.data());
    for (idx_t i = 0; i < n; i++) {
        double dot = 0;
        for (int c = 0; c < map->d_out; c++) {
            dot += double(xt[c]) * xt[i * map->d_out + c];
        }
        EXPECT_NEAR(dot, value(x.data(), &x[i * d]), 0.02);
    }

    // where additive kernels stand, and where any kernel does
    for (const std::string string :
         {"KFlat(sech)",
          "HKM2(sech),Flat",
          "HKM(sech,order=3),HNSW16",
          "AHK256(sech),BFlat",
          "KLSH64(sech,p=50),BFlat,Refine(KFlat(sech))",
          "KPCA16(sech,p=50),Flat"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_factory(d, string);
        index->train(n, x.data());
        index->add(n, x.data());
        const auto found = search(*index, q, 5);
        for (const auto& copy : copies_of(*index)) {
            expect_same(search(*copy, q, 5), found);
        }
    }
    EXPECT_TRUE(
            throws([] { kernel_hash_factory(d, "AHK64(mine)"); },
                   "chi2, hellinger, intersection, js, sech"));
    EXPECT_TRUE(throws([] { kernel_hash_factory(d, "SIK64(sech)"); }, "sech"));
}

TEST_F(Registry, MapFromAString) {
    for (const char* string : {"Mono3", "Mono(degree=3)", "Mono3(center=0)"}) {
        const auto map = map_factory(d, string);
        ASSERT_EQ(typeid(*map), typeid(MonomialMap)) << string;
        EXPECT_EQ(map->d_in, d);
        EXPECT_EQ(map->d_out, 3 * d);
        EXPECT_TRUE(map->is_trained);
        EXPECT_EQ(map->description(), "Mono(degree=3)");
        std::vector<float> xt(n * 3 * d);
        map->apply_noalloc(n, x.data(), xt.data());
        EXPECT_EQ(xt[0], x[0]);
        EXPECT_EQ(xt[d + 1], x[1] * x[1]);
        EXPECT_EQ(xt[5 * d], x[d] * x[d] * x[d]) << string;
    }
    const auto names = map_names();
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    for (const char* name : {"HKM", "KPCA", "RFF", "Mono"}) {
        EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
    }
    EXPECT_TRUE(is_faiss_ext_string("Mono2,Flat"));
    EXPECT_FALSE(is_faiss_ext_string("Monk2,Flat"));
    for (const auto& [string, says] :
         std::vector<std::pair<std::string, std::string>>{
                 {"Mono", "degree"},
                 {"Mono(center=1)", "degree"},
                 {"Mono0", "1 to 9"},
                 {"Mono10", "1 to 9"},
                 {"Mono2(degree=3)", "twice"},
                 {"Mono2(order=3)", "degree=, center="},
                 {"Mono2(center=2)", "center"},
                 {"Mono2(chi2)", "chi2"},
                 {"Mono2x", "Mono2x"},
                 {"Monk2",
                  "HKM<order>(...), KPCA<rank>(...), Mono<degree>(...)"}}) {
        EXPECT_TRUE(throws([&] { map_factory(d, string); }, says)) << string;
    }
}

TEST_F(Registry, MapFilesAndTraining) {
    const auto map = map_factory(d, "Mono2(center=1)");
    std::vector<float> xt(n * 2 * d);
    const auto apply = [&](const faiss::VectorTransform& vt) {
        vt.apply_noalloc(n, x.data(), xt.data());
        return xt;
    };
    EXPECT_TRUE(throws([&] { apply(*map); }, "not trained"));
    // what fails leaves it as it was
    EXPECT_TRUE(throws([&] { map->train(13, x.data()); }, "bad luck"));
    EXPECT_FALSE(map->is_trained);
    EXPECT_TRUE(dynamic_cast<const MonomialMap&>(*map).mean.empty());
    auto bad = x;
    bad[9] = NAN;
    EXPECT_TRUE(throws(
            [&] { map->train(n, bad.data()); }, "component 1 of vector 1"));
    for (bool train : {false, true}) {
        if (train) {
            map->train(n, x.data());
        }
        TemporaryFolder folder;
        const std::string name = folder / "map";
        write_VectorTransform(map.get(), name.c_str());
        const auto read = read_VectorTransform(name.c_str());
        const auto copy = map->clone();
        for (const faiss::VectorTransform* other :
             {static_cast<const faiss::VectorTransform*>(copy.get()),
              const_cast<const faiss::VectorTransform*>(read.get())}) {
            ASSERT_EQ(typeid(*other), typeid(MonomialMap));
            map->check_identical(*other);
            EXPECT_EQ(other->is_trained, train);
            EXPECT_EQ(other->d_out, 2 * d);
            if (train) {
                EXPECT_EQ(apply(*other), apply(*map));
            }
        }
    }
    // training again has no effect
    const auto before = apply(*map);
    map->train(50, x.data());
    EXPECT_EQ(apply(*map), before);
    EXPECT_TRUE(throws([&] { apply(*map_factory(d, "Mono1(center=1)")); }));
    EXPECT_TRUE(throws(
            [&] { map->check_identical(*map_factory(d, "Mono2(center=1)")); }));
}

TEST_F(Registry, MapInIndexes) {
    for (const std::string string :
         {"Mono2,Flat",
          "Mono2(center=1),IVF4,Flat",
          "Mono1,KFlat(gaussian)",
          "IDMap2,Mono3(center=1),HNSW16",
          "PCA4,Mono2,Flat",
          "Mono2,PCA6,SIK128(gaussian),BFlat",
          "Mono2(center=1),Mono2,Flat",
          "Mono2,SRP64,BFlat,Refine(Flat)"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_factory(d, string);
        index->train(n, x.data());
        std::vector<idx_t> ids(n);
        for (idx_t i = 0; i < n; i++) {
            ids[i] = 3 * i;
        }
        if (string.rfind("IDMap2", 0) == 0) {
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
}

TEST_F(Registry, Indexes) {
    const auto names = class_table<faiss::Index>().names();
    EXPECT_EQ(names, (std::vector<std::string>{"KFlat", "Sparse"}));
    EXPECT_TRUE(is_faiss_ext_string("Sparse"));
    EXPECT_TRUE(is_faiss_ext_string("Mono2,Sparse(step=2)"));
    EXPECT_FALSE(is_faiss_ext_string("Dense"));
    const auto one = faiss_ext::index_factory(
            d, "Sparse(step=3)", faiss::METRIC_INNER_PRODUCT);
    ASSERT_EQ(typeid(*one), typeid(SparseIndex));
    EXPECT_EQ(one->d, d);
    EXPECT_EQ(one->metric_type, faiss::METRIC_INNER_PRODUCT);
    EXPECT_EQ(dynamic_cast<const SparseIndex&>(*one).step, 3);
    for (const std::string string :
         {"Sparse",
          "Sparse(step=2)",
          "IDMap2,Sparse",
          "Mono2,Sparse(step=2)",
          "PCA4,HKM1(chi2,negative=sign),Sparse(step=3)",
          "SRP64,BFlat,Refine(Sparse)",
          "Sparse(step=2),Refine(KFlat(gaussian,gamma=1))"}) {
        SCOPED_TRACE(string);
        const auto index = faiss_ext::index_factory(d, string);
        EXPECT_EQ(index->metric_type, faiss::METRIC_L2);
        index->train(n, x.data());
        std::vector<idx_t> ids(n);
        for (idx_t i = 0; i < n; i++) {
            ids[i] = 3 * i;
        }
        if (string.rfind("IDMap2", 0) == 0) {
            index->add_with_ids(n, x.data(), ids.data());
        } else {
            index->add(n, x.data());
        }
        const auto found = search(*index, q, 5);
        for (const auto& copy : copies_of(*index)) {
            EXPECT_EQ(typeid(*copy), typeid(*index));
            EXPECT_EQ(copy->ntotal, n);
            expect_same(search(*copy, q, 5), found);
        }
    }
    for (const auto& [string, says] :
         std::vector<std::pair<std::string, std::string>>{
                 {"Sparse(step=11)", "1 to 10"},
                 {"Sparse(stop=1)", "step="},
                 {"Sparse2", "Sparse2"},
                 {"Sparse(", "')'"},
                 {"Sparse,Flat", "Sparse"},
                 {"HNSW16,Sparse", "KFlat"}}) {
        EXPECT_TRUE(throws([&] { faiss_ext::index_factory(d, string); }, says))
                << string;
    }
    EXPECT_TRUE(throws(
            [] { faiss_ext::index_factory(101, "Sparse"); }, "100 dimensions"));
    // a damaged file: the length of the array
    SparseIndex index;
    index.d = d;
    index.add(n, x.data());
    index.vectors.pop_back();
    faiss::VectorIOWriter writer;
    faiss_ext::write_index(&index, &writer);
    faiss::VectorIOReader reader;
    reader.data = writer.data;
    EXPECT_TRUE(throws([&] { faiss_ext::read_index(&reader); }, "vectors"));
}

TEST_F(Registry, BinaryIndexes) {
    const auto index = faiss_ext::index_binary_factory(64, "Ones(bias=3)");
    ASSERT_EQ(typeid(*index), typeid(OnesIndex));
    EXPECT_EQ(index->d, 64);
    EXPECT_EQ(index->code_size, 8);
    const auto hash = kernel_hash_factory(d, "SIK64(gaussian,gamma=4)");
    const auto codes = codes_of(*hash, x), queries = codes_of(*hash, q);
    index->add(n, codes.data());
    const auto found = search(*index, queries, 4);
    TemporaryFolder folder;
    const std::string name = folder / "index";
    faiss_ext::write_index_binary(index.get(), name.c_str());
    const auto read = faiss_ext::read_index_binary(name.c_str());
    const auto copy = faiss_ext::clone_binary_index(index.get());
    for (const faiss::IndexBinary* other : {read.get(), copy.get()}) {
        EXPECT_EQ(typeid(*other), typeid(OnesIndex));
        expect_same(search(*other, queries, 4), found);
    }
    // behind a hash
    const auto hashing =
            faiss_ext::index_factory(d, "SIK64(gaussian,gamma=4),Ones(bias=3)");
    hashing->add(n, x.data());
    const auto by_hash = search(*hashing, q, 4);
    EXPECT_EQ(by_hash.labels, found.labels);
    for (const auto& other : copies_of(*hashing)) {
        expect_same(search(*other, q, 4), by_hash);
    }
    EXPECT_TRUE(throws(
            [] { faiss_ext::index_binary_factory(64, "Ones(bias=101)"); },
            "0 to 100"));
    EXPECT_TRUE(
            throws([] { faiss_ext::index_factory(d, "SIK64(gaussian),Twos"); },
                   "BPerm(...), Ones(...)"));
}

TEST_F(Registry, ClassesThatAreNotRegistered) {
    StrangeHash hash;
    hash.set_dimensions(d, 64);
    hash.init();
    hash.train(n, x.data());
    EXPECT_EQ(codes_of(hash, x).size(), size_t(n) * 8);
    TemporaryFolder folder;
    const std::string name = folder / "hash";
    EXPECT_TRUE(throws([&] { hash.clone(); }, "not registered"));
    EXPECT_TRUE(throws(
            [&] { class_table<KernelHash>().find(hash); }, "not registered"));
    EXPECT_TRUE(
            throws([&] { write_VectorTransform(&hash, name.c_str()); },
                   "not registered"));
    EXPECT_TRUE(folder.names().empty());
    const StrangeKernel kernel;
    EXPECT_TRUE(throws([&] { kernel.clone(); }, "not registered"));
    EXPECT_TRUE(throws(
            [&] { class_table<Kernel>().find(kernel); }, "not registered"));
    EXPECT_TRUE(throws([&] { IndexFlatKernel(d, kernel); }, "not registered"));
    StrangeMap map;
    map.degree = 2;
    map.set_dimensions(d, 0);
    map.init();
    EXPECT_TRUE(throws([&] { map.clone(); }, "not registered"));
    EXPECT_TRUE(
            throws([&] { write_VectorTransform(&map, name.c_str()); },
                   "not registered"));
    StrangeIndex index;
    EXPECT_TRUE(throws([&] { write_index(&index, name.c_str()); }));
    EXPECT_TRUE(throws([&] { clone_index(&index); }));
    EXPECT_TRUE(folder.names().empty());
}

struct AnotherHash : SignProjectionHash {};
struct AnotherKernel : MineKernel {};
struct AnotherMap : MonomialMap {};
struct AnotherIndex : SparseIndex {};

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
    EXPECT_TRUE(throws([] { register_map<AnotherMap>("Mono"); }, "already"));
    EXPECT_TRUE(throws([] { register_map<AnotherMap>("HKM"); }, "already"));
    EXPECT_TRUE(throws([] { register_map<MonomialMap>("Other"); }, "already"));
    EXPECT_TRUE(
            throws([] { register_index<AnotherIndex>("KFlat"); }, "already"));
    EXPECT_TRUE(
            throws([] { register_index<SparseIndex>("Other"); }, "already"));
    // one name, one meaning at the beginning of a part
    for (const char* name :
         {"PCA", "Flat", "IVF", "HNSW", "IDMap", "BFlat", "Refine", "OPQ"}) {
        EXPECT_TRUE(throws([&] { register_hash<AnotherHash>(name); }, name));
        EXPECT_TRUE(throws([&] { register_map<AnotherMap>(name); }, name));
        EXPECT_TRUE(throws([&] { register_index<AnotherIndex>(name); }, name));
    }
    for (const char* name : {"HKM", "Mono", "KFlat", "BPerm", "Sparse"}) {
        EXPECT_TRUE(throws([&] { register_hash<AnotherHash>(name); }, name));
    }
    for (const char* name : {"SIK", "SRP", "KFlat", "BPerm", "Ones"}) {
        EXPECT_TRUE(throws([&] { register_map<AnotherMap>(name); }, name));
    }
    for (const char* name : {"SIK", "SRP", "HKM", "Mono", "BPerm", "Ones"}) {
        EXPECT_TRUE(throws([&] { register_index<AnotherIndex>(name); }, name));
    }
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
        EXPECT_TRUE(throws(
                [&] { register_map<AnotherMap>(name); }, "cannot be the name"))
                << name;
        EXPECT_TRUE(
                throws([&] { register_index<AnotherIndex>(name); },
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
    EXPECT_EQ(typeid(*kernel_hash_factory(d, "Late8")), typeid(LateHash));
    EXPECT_EQ(kernel_factory("late_2")->clone()->description(), "late_2");
}

} // namespace
