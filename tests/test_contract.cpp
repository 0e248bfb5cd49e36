// SPDX-License-Identifier: MIT
// The contract of every scheme, map, kernel and index, tested for each row of
// testing_strings.h.

#include <functional>
#include <regex>

#include <faiss/impl/io.h>

#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/describe.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "indexes/index_parts.h"
#include "testing.h"
#include "testing_strings.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using namespace testing_strings;

namespace {

constexpr idx_t n = 300, nq = 20;

/// Returns vectors that are uniform on [0, 1]; histograms sum to 1.
std::vector<float> vectors(Data data, idx_t count, uint32_t seed) {
    std::vector<float> x = uniform_vectors(count, d, seed);
    for (idx_t i = 0; data == Data::histograms && i < count; i++) {
        float* row = &x[i * d];
        const float sum = std::accumulate(row, row + d, 0.0f);
        std::for_each(row, row + d, [&](float& v) { v /= sum; });
    }
    return x;
}

/// Three vectors, one of which has an invalid component that errors name.
struct Bad {
    std::vector<float> x;
    std::string place, value;
};

std::vector<Bad> bad_vectors(Data data) {
    std::vector<std::pair<float, const char*>> values = {
            {NAN, "nan"},
            {HUGE_VALF, "inf"},
            {-HUGE_VALF, "-inf"},
            {-1e-30f, "-1e-30"},
            {1.01e37f, "1.01e+37"}};
    values.resize(data == Data::histograms ? 5 : 3);
    std::vector<Bad> all;
    for (const auto& [value, text] : values) {
        for (int at : {0, d - 1, 2 * d + d / 2}) {
            const std::string place = "component " + std::to_string(at % d) +
                    " of vector " + std::to_string(at / d);
            all.push_back({vectors(data, 3, 5), place, text});
            all.back().x[at] = value;
        }
    }
    return all;
}

/// Every row has vectors to train with, and others.
template <class Row>
struct Each : testing::TestWithParam<Row> {
    const Row& row = this->GetParam();
    const std::vector<float> x = vectors(row.data, n, 1);
    const std::vector<float> q = vectors(row.data, nq, 2);
};

/// Returns whether the text contains one of the parts, which are separated by
/// |.
bool has(const std::string& text, const std::string& parts) {
    return std::regex_search(text, std::regex(parts));
}

/// Appends an argument to the string.
std::string with_argument(std::string text, const std::string& added) {
    if (text.back() == ')') {
        text.back() = ',';
    } else {
        text += '(';
    }
    return text + added + ")";
}

/// An unknown key is named. A truncated string is refused or has a shorter
/// meaning.
template <class Make>
void check_bad_strings(const std::string& text, Make&& make) {
    EXPECT_TRUE(make(text));
    const std::string key = "nosuchkey";
    EXPECT_TRUE(throws([&] { make(with_argument(text, key + "=1")); }, key));
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

/// Every prefix of a file and every changed byte are refused. If `hostile`
/// changes, with matching checksums, are tested as well, they are refused or do
/// no harm.
template <class Read, class Use>
void check_damage(
        const Bytes& bytes,
        Read&& read,
        Use&& use,
        bool hostile = true) {
    const std::string magic(bytes.begin(), bytes.begin() + 4);
    const Bytes content = content_of(bytes);
    const size_t step = 1 + bytes.size() / 400;
    size_t refused = 0;
    const auto changed = [](Bytes damaged, size_t i, uint8_t change) {
        damaged[i] ^= change;
        return damaged;
    };
    for (size_t i = 0; i < bytes.size(); i += step + i / 50) {
        const auto part = rows(bytes, 1, 0, i);
        EXPECT_TRUE(throws([&] { read(part); })) << i << " bytes";
        EXPECT_TRUE(throws([&] { read(changed(bytes, i, 0x10)); })) << i;
        for (uint8_t change : {0x80, 0xff, 0x01}) {
            if (hostile && i < content.size()) {
                const Bytes file = sealed(changed(content, i, change), magic);
                refused += !error_of([&] { use(*read(file)); }).empty();
            }
        }
    }
    EXPECT_TRUE(!hostile || refused > 10) << refused;
}

// ------------------------------------------------- transforms: hashes and maps

using Make = std::function<std::unique_ptr<Transform>()>;

/// The contract shared by hashes and maps.
void check_transform(const Make& make, Data data) {
    const std::vector<float> x = vectors(data, n, 1), q = vectors(data, nq, 2);
    const auto vt = make();
    EXPECT_EQ(vt->d_in, d);
    if (!vt->is_trained) {
        EXPECT_TRUE(throws([&] { applied(*vt, q); }, "train"));
        const auto bytes = bytes_of(*vt);
        // training on unusable vectors leaves the object unchanged
        EXPECT_TRUE(throws([&] { vt->train(0, x.data()); }));
        std::vector<float> bad = x;
        bad[7 * d] = NAN;
        EXPECT_TRUE(throws([&] { vt->train(n, bad.data()); }));
        EXPECT_FALSE(vt->is_trained);
        EXPECT_EQ(bytes_of(*vt), bytes);
        // a copy of an untrained object learns the same
        const auto copy = from_bytes<faiss::VectorTransform>(bytes);
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
    vt->train(n, vectors(data, n, 3).data());
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
        const auto yi = rows(y, vt->d_out, i, i + 1);
        EXPECT_EQ(applied(*vt, rows(q, d, i, i + 1)), yi);
    }
    vt->apply_noalloc(0, nullptr, nullptr);

    // bad input
    for (const Bad& bad : bad_vectors(data)) {
        EXPECT_TRUE(throws([&] { applied(*vt, bad.x); }, bad.place, bad.value));
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

    // the string
    EXPECT_EQ(make()->description(), make()->description());
    EXPECT_TRUE(is_faiss_ext_string(vt->description())) << vt->description();
}

/// Every parameter accepts its default; other values must be in range.
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
        const std::string key = info.key;
        SCOPED_TRACE(key);
        EXPECT_FALSE(info.meaning.empty());
        if (key == "kernel" || text.find(key + "=") != std::string::npos) {
            continue;
        }
        // a key that does not apply is refused and named
        const std::string same = with(key, info.default_value);
        const std::string error = error_of([&] { make(same); });
        if (!error.empty()) {
            EXPECT_NE(error.find(key), std::string::npos) << error;
            continue;
        }
        EXPECT_EQ(result_of(same), expected);
        for (const char* bad : {"-3", "nan", "nothing", "1e400", "0x1"}) {
            EXPECT_TRUE(throws([&] { make(with(key, bad)); }, key)) << bad;
        }
    }
    check_bad_strings(text, make);
}

void check_damaged(const Transform& vt, const std::vector<float>& q) {
    const auto use = [&](const faiss::VectorTransform& read) {
        if (read.d_in == d && read.d_out <= 1000 && read.is_trained) {
            applied(read, q);
        }
    };
    check_damage(bytes_of(vt), from_bytes<faiss::VectorTransform>, use);
}

struct EachHash : Each<HashRow> {
    std::unique_ptr<KernelHash> make(int nbits = 64) const {
        return kernel_hash_factory(d, row.with_bits(nbits));
    }
    std::unique_ptr<KernelHash> trained(int nbits = 64) const {
        auto hash = make(nbits);
        hash->train(n, x.data());
        return hash;
    }
};

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachHash,
        testing::ValuesIn(hashes),
        name_of_row);

TEST_P(EachHash, IsATransform) {
    check_transform([&] { return make(); }, row.data);
}

TEST_P(EachHash, Parameters) {
    const auto make = [](const auto& s) { return kernel_hash_factory(d, s); };
    check_parameters(row.name, row.with_bits(64), make, row.data);
}

TEST_P(EachHash, DamagedFiles) {
    check_damaged(*trained(8), q);
}

TEST_P(EachHash, CodesAreSignsOfMargins) {
    for (int nbits : {8, 24, 136}) {
        const auto hash = trained(nbits);
        EXPECT_EQ(hash->nbits, nbits);
        EXPECT_EQ(hash->d_out, nbits);
        EXPECT_EQ(hash->code_size(), size_t(nbits / 8));
        const std::vector<float> margins = applied(*hash, q);
        const std::vector<uint8_t> codes = codes_of(*hash, q);
        for (size_t i = 0; i < margins.size(); i++) {
            ASSERT_EQ(codes[i / 8] >> (i % 8) & 1, margins[i] >= 0);
        }
    }
}

TEST_P(EachHash, Theory) {
    const auto hash = trained();
    if (row.theory == testing_strings::Theory::none) {
        const std::string says = "no known expectation|no kernel";
        for (const std::string& error :
             {error_of([&] { hash->expected_hamming(0.5); }),
              error_of([&] { hash->hamming_bounds(0.5); }),
              error_of([&] { hash->kernel_estimate(3); }),
              error_of([&] { hash->asymmetric_kernel_estimate(3); })}) {
            EXPECT_TRUE(has(error, says)) << error;
        }
        return;
    }
    double before = hash->nbits + 1;
    for (double k = 0; k <= 1; k += 1.0 / 16) {
        const double expected = hash->expected_hamming(k);
        EXPECT_LE(expected, before);
        EXPECT_GE(expected, 0);
        before = expected;
        const auto [lower, upper] = hash->hamming_bounds(k);
        EXPECT_LE(lower, expected + 1e-4);
        EXPECT_GE(upper, expected - 1e-4);
        EXPECT_GE(lower, 0);
        EXPECT_LE(upper, hash->nbits);
        if (k > 0.3 && k < 1 && expected < hash->nbits) { // within the range
            EXPECT_NEAR(hash->kernel_estimate(expected), k, 1e-6);
        }
    }
    EXPECT_NEAR(hash->expected_hamming(1), 0, 1e-6);
    EXPECT_TRUE(throws([&] { hash->kernel_estimate(-1); }));
    EXPECT_TRUE(throws([&] { hash->kernel_estimate(65); }));
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        EXPECT_TRUE(throws([&] { hash->expected_hamming(bad); }, "value"));
        EXPECT_TRUE(throws([&] { hash->hamming_bounds(bad); }, "value"));
    }
}

TEST_P(EachHash, SeedsMatter) {
    const std::string text = row.with_bits(64);
    if (has(text, "seed=")) {
        GTEST_SKIP() << "the row has a seed";
    }
    const auto other = kernel_hash_factory(d, with_argument(text, "seed=99"));
    other->train(n, x.data());
    const auto hash = trained();
    EXPECT_NE(applied(*other, q), applied(*hash, q));
    EXPECT_TRUE(throws([&] { hash->check_identical(*other); }));
}

TEST_P(EachHash, CopiesAndAssignments) {
    const auto hash = trained(), untrained = make(), shorter = trained(8);
    const auto codes = codes_of(*hash, q);
    const auto copy = hash->clone();
    hash->check_identical(*copy);
    EXPECT_EQ(codes_of(*copy, q), codes);
    copy->assign(*untrained);
    EXPECT_EQ(copy->is_trained, untrained->is_trained);
    copy->assign(*hash);
    EXPECT_EQ(codes_of(*copy, q), codes);
    EXPECT_TRUE(throws([&] { hash->check_identical(*shorter); }));
}

struct EachMap : Each<Row> {
    const std::string text = row.text;
    static constexpr auto make = [](const std::string& string) {
        return map_factory(d, string);
    };
};

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachMap,
        testing::ValuesIn(maps),
        name_of_row);

TEST_P(EachMap, IsATransform) {
    check_transform([&] { return make(text); }, row.data);
}

TEST_P(EachMap, Parameters) {
    const auto name = text.substr(0, text.find_first_of("0123456789("));
    check_parameters(name, text, make, row.data);
}

TEST_P(EachMap, DamagedFiles) {
    const auto map = make(text);
    map->train(n, x.data());
    check_damaged(*map, q);
}

// ----------------------------------------------------------------- kernels

struct EachKernel : Each<Row> {
    const std::unique_ptr<Kernel> kernel = kernel_factory(row.text);
    std::vector<float> K; ///< between q and x

    void SetUp() override {
        if (!kernel->is_trained) {
            EXPECT_TRUE(throws([&] { gram(*kernel); }, "train"));
            EXPECT_TRUE(throws([&] { kernel->train(1, x.data(), d); }));
            const std::vector<float> same(10 * d, 0.5f);
            EXPECT_TRUE(throws([&] { kernel->train(10, same.data(), d); }));
            EXPECT_FALSE(kernel->is_trained);
        }
        kernel->train(n, x.data(), d);
        K = gram(*kernel);
    }

    std::vector<float> gram(const Kernel& kernel) const {
        std::vector<float> values(nq * n);
        kernel.gram(nq, q.data(), n, x.data(), d, values.data());
        return values;
    }
};

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachKernel,
        testing::ValuesIn(kernels),
        name_of_row);

TEST_P(EachKernel, StringsAndCopies) {
    const auto again = kernel_factory(kernel->description());
    EXPECT_EQ(typeid(*again), typeid(*kernel));
    EXPECT_EQ(again->description(), kernel->description());
    EXPECT_EQ(gram(*again), K);
    EXPECT_EQ(gram(*kernel->clone()), K);
    const auto assigned = kernel_factory(row.text);
    assigned->assign(*kernel);
    EXPECT_EQ(gram(*assigned), K);
    // training again has no effect
    kernel->train(nq, q.data(), d);
    EXPECT_EQ(gram(*kernel), K);
    check_bad_strings(row.text, kernel_factory);
}

TEST_P(EachKernel, ValuesAndDistances) {
    std::vector<float> self_q(nq), self_x(n);
    kernel->self_values(nq, q.data(), d, self_q.data());
    kernel->self_values(n, x.data(), d, self_x.data());
    const std::vector<float> D = kernel_distances(*kernel, q, x, d);
    for (idx_t i = 0; i < nq; i++) {
        const float* qi = &q[i * d];
        for (idx_t j = 0; j < n; j++) {
            const double scale = self_q[i] + self_x[j];
            const double k = K[i * n + j];
            ASSERT_LE(std::abs(k), scale / 2 * (1 + 1e-5));
            ASSERT_NEAR(D[i * n + j], scale - 2 * k, 1e-5 * scale);
            ASSERT_EQ((*kernel)(qi, &x[j * d], d), K[i * n + j]);
        }
        ASSERT_NEAR((*kernel)(qi, qi, d), self_q[i], 1e-5 * self_q[i]);
    }
    const Threads threads(3);
    EXPECT_EQ(gram(*kernel), K);
}

TEST_P(EachKernel, BadInput) {
    std::vector<float> out(9, 42);
    const auto gram = [&](idx_t nx, const float* x, idx_t ny, const float* y) {
        return [=, this, &out] { kernel->gram(nx, x, ny, y, d, out.data()); };
    };
    const float* good = x.data();
    for (const auto& [bad, place, value] : bad_vectors(row.data)) {
        EXPECT_TRUE(throws(gram(3, bad.data(), 3, good), place, value));
        EXPECT_TRUE(throws(gram(3, good, 3, bad.data()), place, value));
    }
    EXPECT_TRUE(throws(gram(-1, good, 2, good), "-1"));
    EXPECT_TRUE(throws(gram(2, good, -1, good), "-1"));
    EXPECT_TRUE(throws(gram(1, nullptr, 2, good), "null"));
    EXPECT_TRUE(throws(gram(2, good, 1, nullptr), "null"));
    gram(0, nullptr, 1, good)(); // empty blocks
    gram(1, good, 0, nullptr)();
    EXPECT_EQ(out, std::vector<float>(9, 42)); // nothing was written
}

// ----------------------------------------------------------------- indexes

/// What an index tells about its vectors, which have these ids.
/// @param length     numbers in a vector
/// @param num_lists  0 if it has no inverted lists
template <class IndexT>
void check_contents(
        IndexT& index,
        std::vector<idx_t> ids,
        size_t length,
        size_t num_lists) {
    std::sort(ids.begin(), ids.end());
    std::vector<idx_t> all = index_ids(index);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, ids);
    const idx_t unknown = ids.back() + 1;
    const idx_t asked[] = {ids[3], -5, unknown};
    bool found[3];
    contains(index, 3, asked, found);
    EXPECT_TRUE(found[0] && !found[1] && !found[2]);

    using Component = typename IndexT::component_t;
    std::vector<idx_t> some{ids[7], ids[2], ids[7], ids.back()};
    std::vector<Component> batch(4 * length), expected(4 * length);
    const auto one_by_one = [&] {
        for (int i = 0; i < 4; i++) {
            index.reconstruct(some[i], &expected[i * length]);
        }
    };
    const auto together = [&] {
        reconstruct_batch(index, 4, some.data(), batch.data());
    };
    if (error_of(one_by_one).empty()) {
        together();
        EXPECT_EQ(batch, expected);
        some[1] = unknown;
        some[2] = unknown + 1;
        EXPECT_TRUE(throws(together, "id " + std::to_string(unknown)));
    } else {
        EXPECT_THROW(one_by_one(), UnsupportedError);
        EXPECT_THROW(together(), UnsupportedError);
    }

    if (num_lists == 0) {
        EXPECT_THROW(list_sizes(index), UnsupportedError);
    } else {
        const std::vector<idx_t> sizes = list_sizes(index);
        EXPECT_EQ(sizes.size(), num_lists);
        EXPECT_EQ(
                std::accumulate(sizes.begin(), sizes.end(), idx_t(0)),
                index.ntotal);
        EXPECT_GE(*std::min_element(sizes.begin(), sizes.end()), 0);
    }

    compact(index);
    EXPECT_EQ(index.ntotal, idx_t(ids.size()));
    std::vector<idx_t> after = index_ids(index);
    std::sort(after.begin(), after.end());
    EXPECT_EQ(after, ids);
}

struct EachIndex : Each<Row> {
    const std::string text = row.text;
    const bool has_ids = has(text, "IDMap");
    const bool is_ivf = has(text, "IVF4"); // lists store ids

    /// Returns a trained index.
    std::unique_ptr<faiss::Index> make(
            faiss::MetricType metric = faiss::METRIC_L2) const {
        auto index = index_factory(d, text, metric);
        EXPECT_EQ(index->d, d);
        EXPECT_EQ(index->ntotal, 0);
        index->train(n, x.data());
        return index;
    }

    void add(faiss::Index& index, const std::vector<float>& v, idx_t shift = 0)
            const {
        std::vector<idx_t> ids(v.size() / d);
        std::iota(ids.begin(), ids.end(), index.ntotal + shift);
        if (has_ids) {
            index.add_with_ids(ids.size(), v.data(), ids.data());
        } else {
            index.add(ids.size(), v.data());
        }
    }

    std::unique_ptr<faiss::Index> filled() const {
        auto index = make();
        add(*index, x);
        return index;
    }
};

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachIndex,
        testing::ValuesIn(indexes),
        name_of_row);

TEST_P(EachIndex, Conventions) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const float sign = metric == faiss::METRIC_L2 ? 1 : -1;
        const float worst = sign * std::numeric_limits<float>::max();
        const auto index = make(metric);
        // more results than vectors
        add(*index, rows(x, d, 0, 4));
        const auto [few, ids] = search(*index, q, 9);
        for (size_t i = 0; i < ids.size(); i++) {
            ASSERT_TRUE(ids[i] >= -1 && ids[i] < 4) << ids[i];
            if (ids[i] == -1) { // FAISS's refinement uses infinity
                ASSERT_TRUE(few[i] == worst || std::isinf(few[i])) << few[i];
            } else { // missing results come last
                ASSERT_TRUE(i % 9 == 0 || ids[i - 1] != -1);
            }
        }
        // the best come first
        add(*index, rows(x, d, 4, n));
        EXPECT_EQ(index->ntotal, n);
        const auto [all, labels] = search(*index, q, 5);
        for (size_t i = 0; i < all.size(); i++) {
            ASSERT_TRUE(
                    i % 5 == 0 || labels[i] == -1 ||
                    sign * all[i] >= sign * all[i - 1]);
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
        if (!has(text, "BHash")) { // it has no order
            EXPECT_EQ(bytes_of(*copy), bytes_of(*index));
        }
    }
    add(*read, q); // continues like the original
    EXPECT_EQ(read->ntotal, n + nq);
}

/// Returns functions that each empty one of the parts of an index, at any
/// depth.
std::vector<std::function<void()>> ways_to_empty_a_part(faiss::Index& index) {
    std::vector<std::function<void()>> ways;
    for (faiss::Index* inside : parts_alike<faiss::Index>(index)) {
        ways.emplace_back([inside] { inside->reset(); });
        for (auto& way : ways_to_empty_a_part(*inside)) {
            ways.push_back(std::move(way));
        }
    }
    if (auto* hash = dynamic_cast<faiss_ext::IndexKernelHash*>(&index)) {
        ways.emplace_back([hash] { hash->storage->reset(); });
    }
    return ways;
}

TEST_P(EachIndex, IsNotWrittenIfAPartWasChangedAlone) {
    const size_t count = ways_to_empty_a_part(*filled()).size();
    const TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto expected = search(*filled(), q, 5);
    for (size_t i = 0; i < count; i++) {
        const auto index = filled();
        write_index(index.get(), name.c_str());
        ways_to_empty_a_part(*index)[i]();
        expect_throws(
                {{[&] { write_index(index.get(), name.c_str()); }, "add"},
                 {[&] { clone_index(index.get()); }, "add"}});
        expect_same(search(*read_index(name.c_str()), q, 5), expected);
        index->reset();
        add(*index, x);
        EXPECT_EQ(clone_index(index.get())->ntotal, n);
    }
}

TEST_P(EachIndex, ThreadsAndBatches) {
    const auto index = filled();
    const auto found = search(*index, q, 5);
    // FAISS's own Flat computes batches differently
    const float rounding = has(text, "[)],Flat") ? 1e-5f : 0;
    for (idx_t i = 0; i < nq; i++) {
        const auto one = search(*index, rows(q, d, i, i + 1), 5);
        EXPECT_EQ(one.labels, rows(found.labels, 5, i, i + 1));
        for (idx_t j = 0; j < 5; j++) {
            const float expected = found.distances[i * 5 + j];
            EXPECT_NEAR(one.distances[j], expected, rounding);
        }
    }
    const Threads threads(3);
    expect_same(search(*index, q, 5), found);
}

/// Some indexes search for many queries in parts.
TEST_P(EachIndex, ManyQueries) {
    const auto index = filled();
    const idx_t many = has(text, "KIVF") ? 65536 + 100 : 4096 + 100, k = 3;
    Floats repeated;
    for (idx_t i = 0; i < many; i++) {
        repeated.insert(repeated.end(), &q[i % nq * d], &q[i % nq * d] + d);
    }
    const Threads threads(3);
    const auto few = search(*index, q, k), found = search(*index, repeated, k);
    // FAISS's own Flat computes batches differently
    const float rounding = has(text, "[)],Flat") ? 1e-5f : 0;
    for (idx_t i = 0; i < many * k; i++) {
        ASSERT_EQ(found.labels[i], few.labels[i % (nq * k)]) << i / k;
        ASSERT_NEAR(found.distances[i], few.distances[i % (nq * k)], rounding);
    }
    const float radius = few.distances[k];
    if (error_of([&] { range_search(*index, q, radius); }).empty()) {
        const Ranges within = range_search(*index, q, radius),
                     all = range_search(*index, repeated, radius);
        for (idx_t i = 0; i < many && rounding == 0; i++) {
            ASSERT_EQ(all[i], within[i % nq]) << i;
        }
    }
    // an invalid vector is named by its number in the whole batch
    if (text.find("PCA12") != 0 &&
        text.find("IVF4") != 0) { // these begin with FAISS's parts
        repeated.back() = NAN;
        const std::string number = "vector " + std::to_string(many - 1);
        EXPECT_TRUE(throws([&] { search(*index, repeated, k); }, number));
    }
}

TEST_P(EachIndex, BadInput) {
    const auto index = filled();
    const auto bytes = bytes_of(*index);
    // FAISS's parts at the front see the vectors first
    if (text.find("PCA12") != 0 && text.find("IVF4") != 0) {
        for (const Bad& bad : bad_vectors(row.data)) {
            EXPECT_TRUE(throws([&] { search(*index, bad.x, 1); }, bad.place));
            EXPECT_TRUE(throws([&] { add(*index, bad.x); }, bad.place));
            EXPECT_EQ(index->ntotal, n);
        }
    }
    EXPECT_TRUE(throws([&] { search(*index, q, 0); }));
    EXPECT_EQ(bytes_of(*index), bytes);
    index->search(0, nullptr, 5, nullptr, nullptr);
}

TEST_P(EachIndex, DamagedFiles) {
    const auto index = make();
    add(*index, rows(x, d, 0, 12));
    const auto use = [&](const faiss::Index& read) {
        if (read.d == d && read.is_trained) {
            search(read, q, 3);
        }
    };
    // FAISS hardly checks its own parts
    const bool hostile =
            has(text, "KFlat|KIVF|BPerm|BFlat|AFlat") && !has(text, "Refine");
    check_damage(bytes_of(*index), from_bytes<faiss::Index>, use, hostile);
}

TEST_P(EachIndex, Strings) {
    EXPECT_TRUE(is_faiss_ext_string(text));
    const auto make_index = [](const auto& s) { return index_factory(d, s); };
    check_bad_strings(text, make_index);
    // an index of FAISS behind a map or a lock has other metrics
    if (!has(text, "HKM|KPCA|RFF|^Concurrent,[^(]*$")) {
        EXPECT_TRUE(throws([&] { make(faiss::METRIC_L1); }, "METRIC_"));
    }
    for (int bad : {0, -1}) {
        EXPECT_TRUE(throws([&] { index_factory(bad, text); }, "dimension"));
    }
}

TEST_P(EachIndex, Ids) {
    auto index = make();
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 1000 + 3 * i;
    }
    index->add_with_ids(n, x.data(), ids.data());
    const auto found = search(*index, q, 5);
    const auto by_place = search(*filled(), q, 5);
    EXPECT_EQ(found.distances, by_place.distances);
    for (size_t i = 0; i < found.labels.size(); i++) {
        const idx_t place = by_place.labels[i];
        ASSERT_EQ(found.labels[i], place < 0 ? -1 : ids[place]);
    }

    index = filled();
    walk_over_all(*index);
    const faiss::IDSelectorRange selector(20, 120);
    const auto bytes = bytes_of(*index);
    size_t count = 0;
    const auto remove = [&] { count = index->remove_ids(selector); };
    if (has(text, ",HNSW8$")) {
        EXPECT_TRUE(throws(remove));
        EXPECT_EQ(bytes_of(*index), bytes);
    } else {
        EXPECT_EQ(error_of(remove), "");
        EXPECT_EQ(count, 100);
        EXPECT_EQ(index->ntotal, n - 100);
        const auto expected = make();
        walk_over_all(*expected);
        add(*expected, rows(x, d, 0, 20));
        add(*expected, rows(x, d, 120, n));
        const auto left = search(*expected, q, 5).distances;
        const auto found = search(*index, q, 5);
        for (size_t i = 0; i < left.size(); i++) {
            EXPECT_FALSE(selector.is_member(found.labels[i]));
            if (!has(text, "Refine|RFlat")) { // the candidates differ
                EXPECT_NEAR(found.distances[i], left[i], 1e-5 * (1 + left[i]));
            }
        }
    }
}

TEST_P(EachIndex, Contents) {
    const size_t num_lists = is_ivf ? 4 : 0;
    auto index = filled();
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), idx_t(0));
    check_contents(*index, ids, d, num_lists);

    index = make();
    for (idx_t& id : ids) {
        id = 1000 + 3 * id;
    }
    index->add_with_ids(n, x.data(), ids.data());
    check_contents(*index, ids, d, num_lists);
    const faiss::IDSelectorBatch most(n - 50, ids.data());
    if (error_of([&] { index->remove_ids(most); }).empty()) {
        ids.erase(ids.begin(), ids.end() - 50);
    }
    check_contents(*index, ids, d, num_lists);
}

TEST_P(EachIndex, Merging) {
    const idx_t half = n / 2;
    const auto a = make(), b = make(), whole = make();
    add(*whole, x);
    add(*a, rows(x, d, 0, half));
    add(*b, rows(x, d, half, n), half);
    const bool has_refine = has(text, "Refine|RFlat");
    const idx_t add_id = is_ivf && !has_ids && !has_refine ? half : 0;
    const auto merge = [&] { a->merge_from(*b, add_id); };
    if (has(text, ",HNSW8$|BHash")) {
        const auto bytes = bytes_of(*b);
        EXPECT_TRUE(throws(merge));
        EXPECT_EQ(a->ntotal, half);
        EXPECT_EQ(bytes_of(*b), bytes);
    } else {
        EXPECT_EQ(error_of(merge), "");
        EXPECT_EQ(a->ntotal, n);
        walk_over_all(*a);
        walk_over_all(*whole);
        expect_same(search(*a, q, 5), search(*whole, q, 5));
        // FAISS's classes keep ntotal
        if (has(text, "KFlat|KIVF|BPerm|AFlat|BHNSW")) {
            EXPECT_EQ(b->ntotal, 0);
            add(*b, q); // the emptied index can still be used
            EXPECT_EQ(b->ntotal, nq);
        }
    }
    const auto other = index_factory(d, "KFlat(poly)");
    EXPECT_TRUE(throws([&] { a->merge_from(*other, 0); }));
}

// ----------------------------------------------- a hash and a binary index

struct EachStorage : testing::TestWithParam<const char*> {
    const std::string storage = GetParam();
    const std::vector<float> x = vectors(Data::any, n, 1);
    const std::vector<float> q = vectors(Data::any, nq, 2);
    const std::unique_ptr<IndexBinaryKernelHash> index = trained("gaussian");
    Found<int32_t> found; ///< for q

    std::unique_ptr<IndexBinaryKernelHash> trained(
            const std::string& arguments) const {
        const std::string hash = "SIK64(" + arguments + "),";
        auto index = index_binary_factory(d, hash + storage);
        std::unique_ptr<IndexBinaryKernelHash> ours(
                &dynamic_cast<IndexBinaryKernelHash&>(*index.release()));
        ours->train(n, x.data());
        return ours;
    }

    void SetUp() override {
        index->add(n, x.data());
        found = search(*index, q, 5);
    }
};

INSTANTIATE_TEST_SUITE_P(
        Contract,
        EachStorage,
        testing::ValuesIn(storages),
        name_of_row);

TEST_P(EachStorage, TakesVectorsAndCodes) {
    EXPECT_EQ(index->ntotal, n);
    const auto codes = codes_of(*index->hash, q);
    const faiss::IndexBinary& of_codes = *index;
    expect_same(found, search(of_codes, codes, 5));
    expect_same(found, search(*index->storage, codes, 5));
    const auto all = joined(codes_of(*index->hash, x), codes);
    for (size_t i = 0; i < found.labels.size(); i++) {
        if (found.labels[i] >= 0) {
            ASSERT_EQ(
                    found.distances[i],
                    hamming(all, index->code_size, found.labels[i], n + i / 5));
        }
    }
}

TEST_P(EachStorage, FilesAndClones) {
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

TEST_P(EachStorage, Contents) {
    const size_t num_lists = has(storage, "BIVF") ? 4 : 0;
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), idx_t(0));
    faiss::IndexBinary& codes = *index;
    check_contents(codes, ids, index->code_size, num_lists);
    index->reset();
    for (idx_t& id : ids) {
        id = 1000 + 3 * id;
    }
    index->add_with_ids(n, x.data(), ids.data());
    check_contents(codes, ids, index->code_size, num_lists);
}

TEST_P(EachStorage, BadVectorsChangeNothing) {
    for (const Bad& bad : bad_vectors(Data::any)) {
        EXPECT_TRUE(throws([&] { index->add(3, bad.x.data()); }, bad.place));
        EXPECT_TRUE(throws([&] { search(*index, bad.x, 1); }, bad.place));
    }
    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(index->storage->ntotal, n);
}

TEST_P(EachStorage, Merging) {
    walk_over_all(*index);
    const auto whole = search(*index, q, 5);
    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    const auto copy = clone_binary_index(index.get());
    auto* other = dynamic_cast<IndexBinaryKernelHash*>(copy.get());
    ASSERT_TRUE(other);
    const auto seeded = trained("gaussian,seed=9");
    const idx_t half = n / 2;
    index->add(half, x.data());
    other->add(n - half, &x[half * d]);
    const bool is_ivf = has(storage, "BIVF"); // lists store ids
    const auto merge = [&] { index->merge_from(*other, is_ivf ? half : 0); };
    if (has(storage, "BHash")) {
        EXPECT_TRUE(throws(merge));
        EXPECT_EQ(index->ntotal, half);
        EXPECT_EQ(other->ntotal, n - half);
    } else {
        EXPECT_EQ(error_of(merge), "");
        EXPECT_EQ(index->ntotal, n);
        EXPECT_EQ(other->ntotal, 0);
        expect_same(search(*index, q, 5), whole);
    }
    EXPECT_TRUE(throws([&] { index->merge_from(*seeded, 0); }));
}

} // namespace
