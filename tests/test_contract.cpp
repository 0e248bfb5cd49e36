// What every scheme, map, kernel and index must do, for each row of
// testing_strings.h.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>

#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/describe.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "core/field_files.h"
#include "testing.h"
#include "testing_strings.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using testing_strings::d;
using testing_strings::Data;
using testing_strings::HashRow;
using testing_strings::Row;

namespace {

constexpr idx_t n = 300, nq = 20;

/// Uniform on [0, 1]; histograms sum to 1.
std::vector<float> vectors(Data data, idx_t count, uint32_t seed) {
    std::vector<float> x = uniform_vectors(count, d, seed);
    for (idx_t i = 0; data == Data::histograms && i < count; i++) {
        float* row = &x[i * d];
        const float sum = std::accumulate(row, row + d, 0.0f);
        for (int k = 0; k < d; k++) {
            row[k] /= sum;
        }
    }
    return x;
}

std::vector<uint8_t> bytes_of(const faiss::VectorTransform& vt) {
    faiss::VectorIOWriter writer;
    write_VectorTransform(&vt, &writer);
    return writer.data;
}

/// whether the text has one of the parts
bool has(const std::string& text, const std::vector<std::string>& parts) {
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
        return text.find(part) != std::string::npos;
    });
}

/// the string with an argument more
std::string with_argument(const std::string& text, const std::string& added) {
    return (text.back() == ')' ? text.substr(0, text.size() - 1) + ","
                               : text + "(") +
            added + ")";
}

std::unique_ptr<faiss::VectorTransform> transform_of(
        const std::vector<uint8_t>& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    return read_VectorTransform(&reader);
}

/// Bad vectors by what they are for; each has one component at fault.
std::vector<std::vector<float>> bad_vectors(Data data) {
    std::vector<float> values = {
            NAN,
            std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()};
    if (data == Data::histograms) {
        values.push_back(-0.25f);
        values.push_back(2e37f);
    }
    std::vector<std::vector<float>> bad;
    for (float value : values) {
        for (int at : {0, d - 1, 2 * d + d / 2}) {
            bad.push_back(vectors(data, 3, 5));
            bad.back()[at] = value;
        }
    }
    return bad;
}

// ------------------------------------------------- transforms: hashes and maps

/// What a hash and a map have in common.
void check_transform(
        const std::function<std::unique_ptr<Transform>()>& make,
        Data data) {
    const std::vector<float> x = vectors(data, n, 1), q = vectors(data, nq, 2);
    const auto vt = make();
    EXPECT_EQ(vt->d_in, d);
    if (!vt->is_trained) {
        EXPECT_TRUE(throws([&] { applied(*vt, q); }, "train"));
        const auto bytes = bytes_of(*vt);
        // what cannot be learnt from leaves it as it was
        EXPECT_TRUE(throws([&] { vt->train(0, x.data()); }));
        std::vector<float> bad = x;
        bad[7 * d] = NAN;
        EXPECT_TRUE(throws([&] { vt->train(n, bad.data()); }));
        EXPECT_FALSE(vt->is_trained);
        EXPECT_EQ(bytes_of(*vt), bytes);
        // a copy of what is not trained learns the same
        const auto copy = transform_of(bytes);
        vt->train(n, x.data());
        copy->train(n, x.data());
        EXPECT_EQ(applied(*copy, q), applied(*vt, q));
    }
    EXPECT_TRUE(vt->is_trained);
    const std::vector<float> y = applied(*vt, q);
    for (float v : y) {
        ASSERT_TRUE(std::isfinite(v));
    }
    const auto bytes = bytes_of(*vt);

    // training again has no effect
    const std::vector<float> other = vectors(data, n, 3);
    vt->train(n, other.data());
    EXPECT_EQ(bytes_of(*vt), bytes);

    // threads, batches, no vectors
    {
        const Threads threads(3);
        EXPECT_EQ(applied(*vt, q), y);
        const auto again = make();
        again->train(n, x.data());
        EXPECT_EQ(bytes_of(*again), bytes);
    }
    for (idx_t i = 0; i < nq; i++) {
        EXPECT_EQ(
                applied(*vt, rows(q, d, i, i + 1)),
                rows(y, vt->d_out, i, i + 1));
    }
    vt->apply_noalloc(0, nullptr, nullptr);

    // bad input
    for (const std::vector<float>& bad : bad_vectors(data)) {
        EXPECT_TRUE(throws([&] { applied(*vt, bad); }));
    }
    EXPECT_TRUE(throws([&] { vt->apply_noalloc(2, nullptr, nullptr); }));
    EXPECT_TRUE(throws([&] { vt->apply_noalloc(-1, x.data(), nullptr); }));
    EXPECT_EQ(bytes_of(*vt), bytes);

    // files, copies
    TemporaryFolder folder;
    write_VectorTransform(vt.get(), (folder / "vt").c_str());
    const auto read = read_VectorTransform((folder / "vt").c_str());
    EXPECT_EQ(typeid(*read), typeid(*vt));
    vt->check_identical(*read);
    EXPECT_EQ(applied(*read, q), y);
    EXPECT_EQ(bytes_of(*read), bytes);
    EXPECT_TRUE(holds_faiss_ext(vt.get()));

    // its string makes it again
    const std::string description = vt->description();
    EXPECT_EQ(make()->description(), make()->description());
    SCOPED_TRACE(description);
    EXPECT_TRUE(is_faiss_ext_string(description));
}

/// An unknown key is named; where a string is cut off, it is refused or means
/// something shorter.
template <class Make>
void check_bad_strings(const std::string& text, Make&& make) {
    EXPECT_TRUE(make(text));
    EXPECT_TRUE(throws(
            [&] { make(with_argument(text, "nosuchkey=1")); }, "nosuchkey"));
    for (const std::string& bad :
         {with_argument(text, ""),
          with_argument(text, "="),
          text + ")",
          "x" + text}) {
        EXPECT_TRUE(throws([&] { make(bad); })) << bad;
    }
    for (size_t size = 0; size < text.size(); size++) {
        const std::string part = text.substr(0, size);
        bool made = false;
        const std::string error = error_of([&] { made = bool(make(part)); });
        if (std::count(part.begin(), part.end(), '(') >
            std::count(part.begin(), part.end(), ')')) {
            EXPECT_NE(error.find(part), std::string::npos) << error;
        } else {
            EXPECT_EQ(made, error.empty()) << part;
        }
    }
}

/// Every parameter: its default can be written, other values only in range.
template <class Make>
void check_parameters(
        const std::string& name,
        const std::string& text,
        Make&& make,
        Data data) {
    const std::vector<float> x = vectors(data, n, 1), q = vectors(data, nq, 2);
    const auto with = [&](const std::string& key, const std::string& value) {
        return with_argument(text, key + "=" + value);
    };
    const auto result_of = [&](const std::string& string) {
        auto vt = make(string);
        vt->train(n, x.data());
        return applied(*vt, q);
    };
    const std::vector<float> expected = result_of(text);
    for (const FieldInfo& info : describe(name)) {
        SCOPED_TRACE(info.key);
        EXPECT_FALSE(info.meaning.empty());
        const bool is_part = info.key == "kernel";
        if (is_part || text.find(info.key + "=") != std::string::npos) {
            continue;
        }
        // a key that does not apply here is refused, and named
        const std::string error =
                error_of([&] { make(with(info.key, info.default_value)); });
        if (!error.empty()) {
            EXPECT_NE(error.find(info.key), std::string::npos) << error;
            continue;
        }
        EXPECT_EQ(result_of(with(info.key, info.default_value)), expected);
        for (const char* bad : {"-3", "nan", "nothing", "1e400", "0x1"}) {
            EXPECT_TRUE(throws([&] { make(with(info.key, bad)); }, info.key))
                    << bad;
        }
    }
    check_bad_strings(text, make);
}

/// Every prefix of a file is refused; so is, or does no harm, every changed
/// byte.
template <class Read, class Use>
void check_damage(const std::vector<uint8_t>& bytes, Read&& read, Use&& use) {
    for (size_t size = 0; size < bytes.size();
         size += 1 + size / 50 + bytes.size() / 400) {
        const std::vector<uint8_t> part(bytes.begin(), bytes.begin() + size);
        EXPECT_TRUE(throws([&] { read(part); })) << size << " bytes";
    }
    size_t refused = 0;
    for (size_t i = 0; i < bytes.size(); i += 1 + i / 50 + bytes.size() / 400) {
        for (uint8_t change : {0x80, 0xff, 0x01}) {
            std::vector<uint8_t> damaged = bytes;
            damaged[i] ^= change;
            try {
                use(*read(damaged));
            } catch (const faiss::FaissException&) {
                refused++;
            }
        }
    }
    EXPECT_GT(refused, 10);
}

struct EachHash : testing::TestWithParam<HashRow> {
    const Data data = GetParam().data;

    std::unique_ptr<KernelHash> make(int nbits = 64) const {
        return kernel_hash_factory(d, GetParam().with_bits(nbits));
    }
    std::unique_ptr<KernelHash> trained(int nbits = 64) const {
        auto hash = make(nbits);
        hash->train(n, vectors(data, n, 1).data());
        return hash;
    }
};

TEST_P(EachHash, IsATransform) {
    check_transform([&] { return make(); }, data);
}

TEST_P(EachHash, Parameters) {
    check_parameters(
            GetParam().name,
            GetParam().with_bits(64),
            [](const std::string& text) {
                return kernel_hash_factory(d, text);
            },
            data);
}

TEST_P(EachHash, CodesAreSignsOfMargins) {
    const std::vector<float> q = vectors(data, nq, 2);
    for (int nbits : {8, 24, 136}) {
        const auto hash = trained(nbits);
        EXPECT_EQ(hash->nbits, nbits);
        EXPECT_EQ(hash->d_out, nbits);
        EXPECT_EQ(hash->code_size(), size_t(nbits / 8));
        const std::vector<float> margins = applied(*hash, q);
        const std::vector<uint8_t> codes = codes_of(*hash, q);
        for (idx_t i = 0; i < nq; i++) {
            for (int j = 0; j < nbits; j++) {
                const int bit = codes[i * nbits / 8 + j / 8] >> (j % 8) & 1;
                ASSERT_EQ(bit, margins[i * nbits + j] >= 0);
            }
        }
    }
}

TEST_P(EachHash, Theory) {
    const auto hash = trained();
    double before = hash->nbits + 1;
    for (double k = 0; k <= 1; k += 1.0 / 16) {
        const double expected = hash->expected_hamming(k);
        EXPECT_LE(expected, before);
        EXPECT_GE(expected, 0);
        before = expected;
        if (k > 0.3 && k < 1 && expected < hash->nbits) { // within the range
            EXPECT_NEAR(hash->kernel_estimate(expected), k, 1e-6);
        }
    }
    EXPECT_NEAR(hash->expected_hamming(1), 0, 1e-6);
    EXPECT_TRUE(throws([&] { hash->kernel_estimate(-1); }));
    EXPECT_TRUE(throws([&] { hash->kernel_estimate(65); }));
    EXPECT_TRUE(throws([&] { hash->expected_hamming(NAN); }));
}

TEST_P(EachHash, SeedsMatter) {
    const std::string text = GetParam().with_bits(64);
    if (has(text, {"seed="})) {
        GTEST_SKIP() << "the row has a seed";
    }
    const std::vector<float> x = vectors(data, n, 1), q = vectors(data, nq, 2);
    const auto other = kernel_hash_factory(d, with_argument(text, "seed=99"));
    other->train(n, x.data());
    const auto hash = trained();
    EXPECT_NE(applied(*other, q), applied(*hash, q));
    EXPECT_TRUE(throws([&] { hash->check_identical(*other); }));
}

TEST_P(EachHash, CopiesAndAssignments) {
    const std::vector<float> q = vectors(data, nq, 2);
    const auto hash = trained(), untrained = make();
    const auto codes = codes_of(*hash, q);
    const auto copy = hash->clone();
    hash->check_identical(*copy);
    EXPECT_EQ(codes_of(*copy, q), codes);
    copy->assign(*untrained);
    EXPECT_EQ(copy->is_trained, untrained->is_trained);
    copy->assign(*hash);
    EXPECT_EQ(codes_of(*copy, q), codes);
    const auto shorter = trained(8);
    EXPECT_TRUE(throws([&] { hash->check_identical(*shorter); }));
}

TEST_P(EachHash, DamagedFiles) {
    const auto hash = trained(8);
    const std::vector<float> q = vectors(data, nq, 2);
    check_damage(
            bytes_of(*hash),
            transform_of,
            [&](const faiss::VectorTransform& vt) {
                if (vt.d_in == d && vt.d_out == 8 && vt.is_trained) {
                    applied(vt, q);
                }
            });
}

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachHash,
        testing::ValuesIn(testing_strings::hashes));

struct EachMap : testing::TestWithParam<Row> {
    std::unique_ptr<FeatureMap> make() const {
        return map_factory(d, GetParam().text);
    }
};

TEST_P(EachMap, IsATransform) {
    check_transform([&] { return make(); }, GetParam().data);
}

TEST_P(EachMap, Parameters) {
    const std::string text = GetParam().text;
    check_parameters(
            text.substr(0, text.find_first_of("0123456789(")),
            text,
            [](const std::string& string) { return map_factory(d, string); },
            GetParam().data);
}

TEST_P(EachMap, DamagedFiles) {
    const auto map = make();
    map->train(n, vectors(GetParam().data, n, 1).data());
    const std::vector<float> q = vectors(GetParam().data, nq, 2);
    check_damage(
            bytes_of(*map),
            transform_of,
            [&](const faiss::VectorTransform& vt) {
                if (vt.d_in == d && vt.d_out <= 1000 && vt.is_trained) {
                    applied(vt, q);
                }
            });
}

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachMap,
        testing::ValuesIn(testing_strings::maps));

// ----------------------------------------------------------------- kernels

struct EachKernel : testing::TestWithParam<Row> {
    const std::vector<float> x = vectors(GetParam().data, n, 1);
    const std::vector<float> q = vectors(GetParam().data, nq, 2);

    std::unique_ptr<Kernel> trained() const {
        auto kernel = kernel_factory(GetParam().text);
        kernel->train(n, x.data(), d);
        return kernel;
    }

    std::vector<float> gram(const Kernel& kernel) const {
        std::vector<float> K(nq * n);
        kernel.gram(nq, q.data(), n, x.data(), d, K.data());
        return K;
    }
};

TEST_P(EachKernel, StringsAndCopies) {
    const auto kernel = trained();
    const std::vector<float> K = gram(*kernel);
    const auto again = kernel_factory(kernel->description());
    EXPECT_EQ(typeid(*again), typeid(*kernel));
    EXPECT_EQ(again->description(), kernel->description());
    EXPECT_EQ(gram(*again), K);
    EXPECT_EQ(gram(*kernel->clone()), K);
    const auto assigned = kernel_factory(GetParam().text);
    assigned->assign(*kernel);
    EXPECT_EQ(gram(*assigned), K);
    // training again has no effect
    kernel->train(nq, q.data(), d);
    EXPECT_EQ(gram(*kernel), K);
    check_bad_strings(GetParam().text, [](const std::string& string) {
        return kernel_factory(string);
    });
}

TEST_P(EachKernel, ValuesAndDistances) {
    const auto kernel = trained();
    const std::vector<float> K = gram(*kernel);
    std::vector<float> self_q(nq), self_x(n), D(nq * n);
    kernel->self_values(nq, q.data(), d, self_q.data());
    kernel->self_values(n, x.data(), d, self_x.data());
    kernel->distance_block(nq, q.data(), n, x.data(), d, D.data());
    for (idx_t i = 0; i < nq; i++) {
        for (idx_t j = 0; j < n; j++) {
            const double scale = self_q[i] + self_x[j];
            const double k = K[i * n + j];
            ASSERT_LE(std::abs(k), scale / 2 * (1 + 1e-5));
            ASSERT_NEAR(D[i * n + j], scale - 2 * k, 1e-5 * scale);
            ASSERT_EQ((*kernel)(&q[i * d], &x[j * d], d), K[i * n + j]);
        }
        ASSERT_NEAR(
                (*kernel)(&q[i * d], &q[i * d], d),
                self_q[i],
                1e-5 * self_q[i]);
    }
    const Threads threads(3);
    EXPECT_EQ(gram(*kernel), K);
}

TEST_P(EachKernel, BadInput) {
    const auto kernel = trained();
    std::vector<float> K(9 * 3);
    for (const std::vector<float>& bad : bad_vectors(GetParam().data)) {
        EXPECT_TRUE(throws([&] {
            kernel->gram(3, bad.data(), 3, x.data(), d, K.data());
        }));
        EXPECT_TRUE(throws([&] {
            kernel->gram(3, x.data(), 3, bad.data(), d, K.data());
        }));
    }
    const auto fresh = kernel_factory(GetParam().text);
    if (!fresh->is_trained) {
        EXPECT_TRUE(throws([&] { gram(*fresh); }, "train"));
        EXPECT_TRUE(throws([&] { fresh->train(1, x.data(), d); }));
        const std::vector<float> same(10 * d, 0.5f);
        EXPECT_TRUE(throws([&] { fresh->train(10, same.data(), d); }));
        EXPECT_FALSE(fresh->is_trained);
    }
}

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachKernel,
        testing::ValuesIn(testing_strings::kernels));

// ----------------------------------------------------------------- indexes

struct EachIndex : testing::TestWithParam<Row> {
    const Data data = GetParam().data;
    const std::string text = GetParam().text;
    const std::vector<float> x = vectors(data, n, 1), q = vectors(data, nq, 2);
    const bool has_ids = text.find("IDMap") == 0;
    const bool is_ivf = has(text, {"IVF4"}); // ids are stored

    std::unique_ptr<faiss::Index> make(
            faiss::MetricType metric = faiss::METRIC_L2) const {
        return index_factory(d, text, metric);
    }

    void add(faiss::Index& index, const std::vector<float>& v, idx_t first_id)
            const {
        std::vector<idx_t> ids(v.size() / d);
        std::iota(ids.begin(), ids.end(), first_id);
        if (has_ids) {
            index.add_with_ids(ids.size(), v.data(), ids.data());
        } else {
            index.add(ids.size(), v.data());
        }
    }

    void add(faiss::Index& index, const std::vector<float>& v) const {
        add(index, v, index.ntotal);
    }

    std::unique_ptr<faiss::Index> filled(
            faiss::MetricType metric = faiss::METRIC_L2) const {
        auto index = make(metric);
        index->train(n, x.data());
        add(*index, x);
        return index;
    }

    static std::vector<uint8_t> bytes_of(const faiss::Index& index) {
        faiss::VectorIOWriter writer;
        write_index(&index, &writer);
        return writer.data;
    }

    static std::unique_ptr<faiss::Index> index_of(
            const std::vector<uint8_t>& bytes) {
        faiss::VectorIOReader reader;
        reader.data = bytes;
        return read_index(&reader);
    }
};

TEST_P(EachIndex, Conventions) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto index = make(metric);
        EXPECT_EQ(index->d, d);
        EXPECT_EQ(index->ntotal, 0);
        index->train(n, x.data());
        // an empty index, and more results than vectors
        const float worst = metric == faiss::METRIC_L2
                ? std::numeric_limits<float>::max()
                : -std::numeric_limits<float>::max();
        add(*index, rows(x, d, 0, 4));
        const auto found = search(*index, q, 9);
        for (idx_t i = 0; i < nq; i++) {
            idx_t last = 0;
            for (idx_t j = 0; j < 9; j++) {
                const idx_t id = found.labels[i * 9 + j];
                ASSERT_TRUE(id == -1 || (id >= 0 && id < 4)) << id;
                ASSERT_LE(id == -1, j >= 0);
                ASSERT_FALSE(j > 0 && last == -1 && id != -1);
                last = id;
                if (id == -1) {
                    // FAISS's own refinement marks what is missing otherwise
                    ASSERT_TRUE(
                            found.distances[i * 9 + j] == worst ||
                            std::isinf(found.distances[i * 9 + j]));
                }
            }
        }
        add(*index, rows(x, d, 4, n));
        EXPECT_EQ(index->ntotal, n);
        const auto all = search(*index, q, 5);
        for (size_t i = 0; i < all.labels.size(); i++) {
            const bool is_first = i % 5 == 0;
            ASSERT_TRUE(
                    is_first || all.labels[i] == -1 ||
                    (metric == faiss::METRIC_L2
                             ? all.distances[i] >= all.distances[i - 1]
                             : all.distances[i] <= all.distances[i - 1]));
        }
        index->reset();
        EXPECT_EQ(index->ntotal, 0);
        add(*index, x);
        EXPECT_EQ(index->ntotal, n);
    }
}

TEST_P(EachIndex, FilesAndClones) {
    const auto index = filled();
    const auto found = search(*index, q, 5);
    TemporaryFolder folder;
    const std::string name = folder / "index";
    write_index(index.get(), name.c_str());
    const auto read = read_index(name.c_str());
    const auto clone = clone_index(index.get());
    EXPECT_EQ(folder.names(), std::vector<std::string>{"index"});
    EXPECT_TRUE(holds_faiss_ext(index.get()));
    for (const faiss::Index* copy : {read.get(), clone.get()}) {
        EXPECT_EQ(typeid(*copy), typeid(*index));
        EXPECT_EQ(copy->ntotal, n);
        EXPECT_EQ(copy->metric_type, index->metric_type);
        expect_same(search(*copy, q, 5), found);
        if (text.find("BHash") == std::string::npos) { // in no order
            EXPECT_EQ(bytes_of(*copy), bytes_of(*index));
        }
    }
    add(*read, q); // goes on as the original would
    EXPECT_EQ(read->ntotal, n + nq);
}

TEST_P(EachIndex, ThreadsAndBatches) {
    const auto index = filled();
    const auto found = search(*index, q, 5);
    {
        const Threads threads(3);
        expect_same(search(*index, q, 5), found);
    }
    for (idx_t i = 0; i < nq; i++) {
        const auto one = search(*index, rows(q, d, i, i + 1), 5);
        EXPECT_EQ(one.labels, rows(found.labels, 5, i, i + 1));
        for (idx_t j = 0; j < 5; j++) {
            // (FAISS's own Flat computes batches in another way)
            const float expected = found.distances[i * 5 + j];
            const float rounding =
                    text.find("),Flat") == std::string::npos ? 0 : 1e-5f;
            EXPECT_NEAR(one.distances[j], expected, rounding);
        }
    }
}

TEST_P(EachIndex, BadInput) {
    const auto index = filled();
    const auto bytes = bytes_of(*index);
    float distance;
    idx_t label;
    // what FAISS's own parts stand in front of, they see first
    if (text.find("PCA12") != 0 && text.find("IVF4") != 0) {
        for (const std::vector<float>& bad : bad_vectors(data)) {
            EXPECT_TRUE(throws([&] { search(*index, bad, 1); }));
            EXPECT_TRUE(throws([&] { add(*index, bad); }));
            EXPECT_EQ(index->ntotal, n);
        }
    }
    EXPECT_TRUE(
            throws([&] { index->search(1, q.data(), 0, &distance, &label); }));
    EXPECT_EQ(bytes_of(*index), bytes);
    index->search(0, nullptr, 5, nullptr, nullptr);
}

TEST_P(EachIndex, DamagedFiles) {
    if (has(text,
            {"Flat,",
             "),Flat",
             "BHash",
             "BIVF",
             "BFlat",
             "HNSW8",
             "IVF4",
             "PCA"})) {
        GTEST_SKIP() << "FAISS checks little of its own parts";
    }
    const auto index = make();
    index->train(n, x.data());
    add(*index, rows(x, d, 0, 12));
    check_damage(bytes_of(*index), index_of, [&](const faiss::Index& read) {
        if (read.d == d && read.is_trained) {
            search(read, q, 3);
        }
    });
}

TEST_P(EachIndex, Strings) {
    EXPECT_TRUE(is_faiss_ext_string(text));
    check_bad_strings(text, [](const std::string& string) {
        return index_factory(d, string);
    });
    // (an index of FAISS behind a map has others)
    if (!has(text, {"HKM", "KPCA", "RFF"})) {
        EXPECT_TRUE(throws([&] { make(faiss::METRIC_L1); }, "metric"));
    }
    for (int bad : {0, -1}) {
        EXPECT_TRUE(throws([&] { index_factory(bad, text); }, "dimension"));
    }
}

TEST_P(EachIndex, Ids) {
    auto index = make();
    index->train(n, x.data());
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 1000 + 3 * i;
    }
    const bool takes_ids = has_ids || (is_ivf && !has(text, {"Refine"}));
    const auto add_with_ids = [&] {
        index->add_with_ids(n, x.data(), ids.data());
    };
    if (!takes_ids) {
        EXPECT_TRUE(throws(add_with_ids));
        EXPECT_EQ(index->ntotal, 0);
    } else {
        EXPECT_EQ(error_of(add_with_ids), "");
        const auto plain = filled();
        const auto found = search(*index, q, 5),
                   by_place = search(*plain, q, 5);
        EXPECT_EQ(found.distances, by_place.distances);
        for (size_t i = 0; i < found.labels.size(); i++) {
            const idx_t place = by_place.labels[i];
            ASSERT_EQ(found.labels[i], place < 0 ? -1 : ids[place]);
        }
    }

    index = filled();
    const faiss::IDSelectorRange selector(20, 120);
    const auto bytes = bytes_of(*index);
    size_t count = 0;
    const auto remove = [&] { count = index->remove_ids(selector); };
    if (has(text, {"HNSW", "Refine", "RFlat", "BHash"})) {
        EXPECT_TRUE(throws(remove));
        EXPECT_EQ(bytes_of(*index), bytes);
    } else {
        EXPECT_EQ(error_of(remove), "");
        EXPECT_EQ(count, 100);
        EXPECT_EQ(index->ntotal, n - 100);
        const auto expected = make();
        expected->train(n, x.data());
        add(*expected, rows(x, d, 0, 20));
        add(*expected, rows(x, d, 120, n));
        EXPECT_EQ(
                search(*index, q, 5).distances,
                search(*expected, q, 5).distances);
    }
}

TEST_P(EachIndex, Merging) {
    const idx_t half = n / 2;
    const auto empty = make();
    empty->train(n, x.data());
    const auto a = clone_index(empty.get()), b = clone_index(empty.get()),
               whole = clone_index(empty.get());
    add(*whole, x);
    add(*a, rows(x, d, 0, half));
    add(*b, rows(x, d, half, n), half);
    const idx_t add_id = is_ivf && !has_ids ? half : 0;
    const auto merge = [&] { a->merge_from(*b, add_id); };
    const auto found = search(*whole, q, 5);
    if (has(text, {"HNSW", "Refine", "RFlat", "BHash", "BFlat", "BIVF"})) {
        const auto bytes = bytes_of(*b);
        EXPECT_TRUE(throws(merge));
        EXPECT_EQ(a->ntotal, half);
        EXPECT_EQ(bytes_of(*b), bytes);
    } else {
        EXPECT_EQ(error_of(merge), "");
        EXPECT_EQ(a->ntotal, n);
        expect_same(search(*a, q, 5), found);
        if (has(text, {"KFlat", "BPerm"})) { // (FAISS's leave the number)
            EXPECT_EQ(b->ntotal, 0);
            add(*b, q); // what is left can be used on
            EXPECT_EQ(b->ntotal, nq);
        }
    }
    const auto other = index_factory(d, "KFlat(poly)");
    EXPECT_TRUE(throws([&] { a->merge_from(*other, 0); }));
}

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachIndex,
        testing::ValuesIn(testing_strings::indexes));

// ----------------------------------------------- a hash and a binary index

struct EachStorageOfCodes : testing::TestWithParam<const char*> {
    const std::vector<float> x = vectors(Data::any, n, 1);
    const std::vector<float> q = vectors(Data::any, nq, 2);

    std::unique_ptr<IndexBinaryKernelHash> filled() const {
        auto index = index_binary_factory(
                d, std::string("SIK64(gaussian),") + GetParam());
        std::unique_ptr<IndexBinaryKernelHash> ours(
                dynamic_cast<IndexBinaryKernelHash*>(index.release()));
        ours->train(n, x.data());
        ours->add(n, x.data());
        return ours;
    }
};

TEST_P(EachStorageOfCodes, TakesVectorsAndCodes) {
    const auto index = filled();
    EXPECT_EQ(index->ntotal, n);
    const auto found = search(*index, q, 5);
    const auto codes = codes_of(*index->hash, q);
    expect_same(
            found,
            search(static_cast<const faiss::IndexBinary&>(*index), codes, 5));
    expect_same(found, search(*index->storage, codes, 5));
    std::vector<uint8_t> code(index->code_size);
    const auto stored = codes_of(*index->hash, x);
    for (size_t i = 0; i < found.labels.size(); i++) {
        const idx_t id = found.labels[i];
        if (id >= 0) {
            int distance = 0;
            for (int b = 0; b < index->code_size; b++) {
                distance += __builtin_popcount(
                        stored[id * index->code_size + b] ^
                        codes[i / 5 * index->code_size + b]);
            }
            ASSERT_EQ(found.distances[i], distance);
        }
    }
}

TEST_P(EachStorageOfCodes, FilesAndClones) {
    const auto index = filled();
    const auto found = search(*index, q, 5);
    TemporaryFolder folder;
    const std::string name = folder / "index";
    write_index_binary(index.get(), name.c_str());
    const auto read = read_index_binary(name.c_str());
    const auto clone = clone_binary_index(index.get());
    for (faiss::IndexBinary* copy : {read.get(), clone.get()}) {
        auto* ours = dynamic_cast<IndexBinaryKernelHash*>(copy);
        ASSERT_TRUE(ours);
        EXPECT_EQ(typeid(*ours->storage), typeid(*index->storage));
        expect_same(search(*ours, q, 5), found);
        ours->add(nq, q.data());
        EXPECT_EQ(ours->ntotal, n + nq);
    }
}

TEST_P(EachStorageOfCodes, BadVectorsChangeNothing) {
    const auto index = filled();
    for (const std::vector<float>& bad : bad_vectors(Data::any)) {
        EXPECT_TRUE(throws([&] { index->add(3, bad.data()); }));
        EXPECT_TRUE(throws([&] { search(*index, bad, 1); }));
    }
    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(index->storage->ntotal, n);
}

TEST_P(EachStorageOfCodes, Merging) {
    const auto index = filled();
    const auto found = search(*index, q, 5);
    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    const auto copy = clone_binary_index(index.get());
    auto& other = dynamic_cast<IndexBinaryKernelHash&>(*copy);
    const idx_t half = n / 2;
    index->add(half, x.data());
    other.add(n - half, &x[half * d]);
    const std::string storage = GetParam();
    const auto merge = [&] { index->merge_from(other, 0); };
    if (!has(storage, {"BPerm"})) { // FAISS's cannot
        EXPECT_TRUE(throws(merge));
        EXPECT_EQ(index->ntotal, half);
        EXPECT_EQ(other.ntotal, n - half);
    } else {
        EXPECT_EQ(error_of(merge), "");
        EXPECT_EQ(index->ntotal, n);
        EXPECT_EQ(other.ntotal, 0);
        expect_same(search(*index, q, 5), found);
    }
    const auto seeded =
            index_binary_factory(d, "SIK64(gaussian,seed=9)," + storage);
    dynamic_cast<IndexBinaryKernelHash&>(*seeded).train(n, x.data());
    EXPECT_TRUE(throws([&] { index->merge_from(*seeded, 0); }));
}

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachStorageOfCodes,
        testing::ValuesIn(testing_strings::storages));

} // namespace
