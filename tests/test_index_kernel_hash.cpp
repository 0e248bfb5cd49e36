// IndexBinaryKernelHash and IndexKernelHash.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>

#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 12, nbits = 64, code_size = nbits / 8;
constexpr idx_t n = 400, nq = 20;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float max_float = std::numeric_limits<float>::max();

constexpr faiss::MetricType metrics[] = {
        faiss::METRIC_L2,
        faiss::METRIC_INNER_PRODUCT};

using Call = std::function<void()>;

/// An index that owns its parts.
template <class HashIndex, class... Metric>
std::unique_ptr<HashIndex> owning(
        std::unique_ptr<KernelHash> hash,
        std::unique_ptr<faiss::IndexBinary> storage,
        Metric... metric) {
    auto index = std::make_unique<HashIndex>(
            hash.release(), storage.release(), metric...);
    index->own_fields = true;
    return index;
}

std::unique_ptr<KernelHash> make_hash(int64_t seed = 1) {
    return std::make_unique<ShiftInvariantHash>(
            d, nbits, GaussianKernel(0.2), seed);
}

std::vector<uint8_t> hashed(const std::vector<float>& x) {
    return codes_of(*make_hash(), x);
}

std::unique_ptr<IndexKernelHash> make_flat(
        faiss::MetricType metric = faiss::METRIC_L2,
        const std::vector<float>& x = {}) {
    auto index = owning<IndexKernelHash>(
            make_hash(),
            std::make_unique<faiss::IndexBinaryFlat>(nbits),
            metric);
    index->add(x.size() / d, x.data());
    return index;
}

/// What the storage finds, as an IndexKernelHash tells it.
Found<float> in_metric(const Found<int32_t>& found, faiss::MetricType metric) {
    const float sign = metric == faiss::METRIC_L2 ? 1 : -1;
    Found<float> same{{}, found.labels};
    for (size_t i = 0; i < found.labels.size(); i++) {
        const float hamming = float(found.distances[i]);
        same.distances.push_back(
                found.labels[i] < 0 ? sign * max_float
                        : sign > 0  ? hamming
                                    : nbits - 2 * hamming);
    }
    return same;
}

std::vector<uint8_t> bytes_of(const KernelHash& hash) {
    faiss::VectorIOWriter f;
    write_VectorTransform(&hash, &f);
    return f.data;
}

/// What can be done with FAISS's binary index can be done with the two indexes
/// over another one; what it throws on, they throw on.
struct EachStorage : testing::TestWithParam<const char*> {
    const std::string name = GetParam();
    const bool needs_training = name == "BIVF8", is_graph = name == "BHNSW16";
    const std::vector<float> x = uniform_vectors(n, d, 1);
    const std::vector<float> q = near_vectors(x, nq, d, 0.02f, 2);
    const std::vector<uint8_t> codes = hashed(x), query_codes = hashed(q);

    std::unique_ptr<faiss::IndexBinary> make_storage() const {
        std::unique_ptr<faiss::IndexBinary> storage(
                faiss::index_binary_factory(nbits, name.c_str()));
        if (auto* ivf = dynamic_cast<faiss::IndexBinaryIVF*>(storage.get())) {
            ivf->nprobe = 3;
        }
        if (auto* hash = dynamic_cast<faiss::IndexBinaryHash*>(storage.get())) {
            hash->nflip = 1;
        }
        if (auto* hash =
                    dynamic_cast<faiss::IndexBinaryMultiHash*>(storage.get())) {
            hash->nflip = 1;
        }
        return storage;
    }

    /// in two batches, which makes a difference to a graph
    template <class Index, class T>
    static void fill(Index& index, const std::vector<T>& vectors) {
        const idx_t size = std::is_same_v<T, float> ? d : code_size;
        const idx_t count = vectors.size() / size, half = count / 2;
        index.train(count, vectors.data());
        index.add(half, vectors.data());
        index.add(count - half, vectors.data() + half * size);
    }

    std::unique_ptr<IndexBinaryKernelHash> make_binary() const {
        return owning<IndexBinaryKernelHash>(make_hash(), make_storage());
    }

    std::unique_ptr<IndexKernelHash> make_float(
            faiss::MetricType metric = faiss::METRIC_L2) const {
        return owning<IndexKernelHash>(make_hash(), make_storage(), metric);
    }

    const std::unique_ptr<faiss::IndexBinary> bare = make_storage();
    const std::unique_ptr<IndexBinaryKernelHash> binary = make_binary();
    const std::unique_ptr<IndexKernelHash> floats = make_float();

    void fill_all() {
        fill(*bare, codes);
        fill(*binary, x);
        fill(*floats, x);
    }

    /// f(index) for both of ours
    template <class F>
    void expect_refused(F&& f, const std::string& names = "") {
        EXPECT_TRUE(throws([&] { f(*binary); }, names));
        EXPECT_TRUE(throws([&] { f(*floats); }, names));
    }

    /// Whether FAISS's index can do it; ours then do it, too, or else refuse.
    template <class FaissCall, class Call>
    bool can(FaissCall&& of_faiss, Call&& of_ours) {
        if (throws([&] { of_faiss(*bare); })) {
            expect_refused(of_ours);
            return false;
        }
        of_ours(*binary);
        of_ours(*floats);
        return true;
    }

    void expect_all_alike(idx_t k) const {
        EXPECT_EQ(binary->ntotal, bare->ntotal);
        EXPECT_EQ(binary->storage->ntotal, bare->ntotal);
        EXPECT_EQ(floats->ntotal, bare->ntotal);
        EXPECT_TRUE(binary->is_trained && floats->is_trained);
        const auto found = search(*bare, query_codes, k);
        expect_same(search(*binary, q, k), found);
        expect_same(search(*binary, query_codes, k), found);
        expect_same(search(*floats, q, k), in_metric(found, faiss::METRIC_L2));
    }
};

INSTANTIATE_TEST_SUITE_P(
        Hash,
        EachStorage,
        testing::Values("BFlat", "BHash16", "BHash4x16", "BIVF8", "BHNSW16"),
        [](const auto& info) { return info.param; });

TEST_P(EachStorage, Searches) {
    EXPECT_EQ(binary->d, nbits);
    EXPECT_EQ(binary->code_size, code_size);
    EXPECT_EQ(floats->d, d);
    EXPECT_EQ(binary->is_trained, !needs_training);
    EXPECT_EQ(floats->is_trained, !needs_training);
    fill_all();
    const auto of_codes = make_binary();
    fill(*of_codes, codes);
    const auto products = make_float(faiss::METRIC_INNER_PRODUCT);
    fill(*products, x);
    const auto hash = make_hash();
    const IndexBinaryKernelHash over_filled(hash.get(), bare.get());
    EXPECT_TRUE(over_filled.is_trained);
    EXPECT_EQ(over_filled.ntotal, n);
    for (int nthreads : {1, 3}) {
        const Threads threads(nthreads);
        for (idx_t k : {idx_t(1), idx_t(10), n + 100}) {
            expect_all_alike(k);
            const auto found = search(*bare, query_codes, k);
            expect_same(search(*of_codes, q, k), found);
            expect_same(search(over_filled, q, k), found);
            expect_same(
                    search(*products, q, k),
                    in_metric(found, faiss::METRIC_INNER_PRODUCT));
        }
        for (int radius : {0, 1, 20, 65}) {
            Ranges expected;
            const bool is_there = can(
                    [&](auto& index) {
                        expected = range_search(index, query_codes, radius);
                    },
                    [&](auto& index) {
                        EXPECT_EQ(range_search(index, q, radius), expected);
                    });
            if (!is_there) {
                continue;
            }
            EXPECT_EQ(range_search(*binary, query_codes, radius), expected);
            EXPECT_TRUE(radius < 20 || total_size(expected) > nq / 2);
            for (auto& range : expected) {
                for (auto& [id, distance] : range) {
                    distance = nbits - 2 * distance;
                }
            }
            EXPECT_EQ(range_search(*products, q, nbits - 2 * radius), expected);
        }
    }
}

TEST_P(EachStorage, SelectsAndReconstructs) {
    fill_all();
    faiss::IDSelectorRange first_ten(0, 10);
    faiss::SearchParameters params;
    params.sel = &first_ten;
    std::vector<idx_t> labels;
    can(
            [&](auto& index) {
                labels = search(index, query_codes, 5, &params).labels;
            },
            [&](auto& index) {
                EXPECT_EQ(search(index, q, 5, &params).labels, labels);
            });
    // codes follow each other without gaps, and nothing behind is written
    std::vector<uint8_t> expected = rows(codes, code_size, 30, 50);
    expected.resize(21 * code_size, 0xa5);
    std::vector<uint8_t> back(21 * code_size, 0xa5), one(code_size);
    if (name == "BHash16" || name == "BHash4x16") {
        EXPECT_TRUE(throws([&] { binary->reconstruct_n(30, 20, &back[0]); }));
    } else {
        binary->reconstruct_n(30, 20, back.data());
        EXPECT_EQ(back, expected);
    }
    if (name == "BFlat" || is_graph) {
        binary->reconstruct(n - 1, one.data());
        EXPECT_EQ(one, rows(codes, code_size, n - 1, n));
        EXPECT_TRUE(throws([&] { binary->reconstruct(n, one.data()); }));
    } else {
        EXPECT_TRUE(throws([&] { binary->reconstruct(17, one.data()); }));
    }
    // codes cannot be turned into vectors
    std::vector<float> vectors(5 * d), distances(5);
    labels.resize(5);
    expect_throws(
            {{[&] { floats->reconstruct(17, vectors.data()); }, "vectors"},
             {[&] { floats->reconstruct_n(17, 2, vectors.data()); }, "vectors"},
             {[&] { floats->sa_decode(2, codes.data(), vectors.data()); }, ""},
             {[&] {
                  floats->search_and_reconstruct(
                          1,
                          x.data(),
                          5,
                          distances.data(),
                          labels.data(),
                          vectors.data());
              },
              "vectors"}});
}

TEST_P(EachStorage, AddsWithIds) {
    const std::vector<float> more = uniform_vectors(20, d, 3);
    const auto more_codes = hashed(more);
    std::vector<idx_t> ids(20);
    std::iota(ids.begin(), ids.end(), 1000);
    fill_all();
    const auto of_codes = make_binary();
    fill(*of_codes, codes);
    if (can([&](auto& i) { i.add_with_ids(20, more_codes.data(), ids.data()); },
            [&](auto& i) { i.add_with_ids(20, more.data(), ids.data()); })) {
        of_codes->add_with_ids(20, more_codes.data(), ids.data());
    }
    expect_all_alike(n);
    expect_same(search(*of_codes, q, n), search(*binary, q, n));
}

TEST_P(EachStorage, RemovesAndMerges) {
    fill_all();
    const auto remove = [](auto& index) {
        index.remove_ids(faiss::IDSelectorRange(100, 350));
    };
    EXPECT_EQ(can(remove, remove), name == "BFlat" || needs_training);
    expect_all_alike(10);
    const auto other = make_storage(), second = make_storage();
    const auto other_binary = make_binary();
    const auto other_floats = make_float();
    fill(*other, codes);
    fill(*other_binary, x);
    fill(*other_floats, x);
    const auto merge = [&](auto& index) {
        if constexpr (std::is_same_v<decltype(index), IndexKernelHash&>) {
            index.merge_from(*other_floats, n);
        } else {
            index.merge_from(&index == bare.get() ? *other : *other_binary, n);
        }
    };
    const idx_t left = can(merge, merge) ? 0 : n;
    EXPECT_EQ(other_binary->ntotal, left);
    EXPECT_EQ(other_floats->ntotal, left);
    expect_all_alike(20);
}

TEST_P(EachStorage, ResetsAndAddsFewer) {
    const auto few = rows(x, d, 200, 250);
    fill_all();
    for (int round = 0; round < 2; round++) {
        binary->reset();
        floats->reset();
        EXPECT_EQ(binary->ntotal + binary->storage->ntotal + floats->ntotal, 0);
        EXPECT_EQ(search(*binary, q, 1).labels, std::vector<idx_t>(nq, -1));
        binary->add(50, few.data());
        floats->add(50, few.data());
    }
    bare->reset();
    const auto fresh = make_storage();
    fresh->train(n, codes.data());
    fresh->add(50, hashed(few).data());
    const idx_t k = is_graph ? 1 : 10; // a graph has other levels
    const auto expected = search(*fresh, query_codes, k);
    EXPECT_EQ(search(*binary, q, k).distances, expected.distances);
    EXPECT_EQ(
            search(*floats, q, k).distances,
            in_metric(expected, faiss::METRIC_L2).distances);
}

TEST_P(EachStorage, BadAndEmptyCallsChangeNothing) {
    fill_all();
    const float* no_floats = nullptr;
    const uint8_t* no_codes = nullptr;
    const idx_t* no_ids = nullptr;
    const std::vector<idx_t> ids(nq, 5);
    for (float bad : {NAN, inf, -inf}) {
        std::vector<float> y = q;
        y[3 * d + 5] = bad;
        const float* p = y.data();
        const char* at = "component 5 of vector 3";
        expect_refused([&](auto& i) { i.train(nq, p); }, at);
        expect_refused([&](auto& i) { i.add(nq, p); }, at);
        expect_refused([&](auto& i) { i.add_with_ids(nq, p, ids.data()); }, at);
        expect_refused([&](auto& i) { search(i, y, 2); }, at);
        expect_refused([&](auto& i) { range_search(i, y, 2); }, at);
        EXPECT_TRUE(throws([&] { floats->sa_encode(nq, p, nullptr); }, at));
    }
    expect_refused([&](auto& i) { i.train(3, no_floats); }, "null");
    expect_refused([&](auto& i) { i.add(3, no_floats); }, "null");
    expect_refused(
            [&](auto& i) { i.add_with_ids(3, x.data(), no_ids); }, "null");
    expect_refused([&](auto& i) { i.add(-1, x.data()); }, "-1");
    expect_refused(
            [&](auto& i) { i.search(0, no_floats, 0, nullptr, nullptr); }, "0");
    expect_throws(
            {{[&] { binary->train(3, no_codes); }, "null"},
             {[&] { binary->add(3, no_codes); }, "null"},
             {[&] { binary->search(1, no_codes, 1, nullptr, nullptr); },
              "null"},
             {[&] { binary->add(-1, codes.data()); }, "-1"},
             {[&] { range_search(*floats, q, NAN); }, "NaN"}});

    binary->search(0, no_codes, 3, nullptr, nullptr);
    binary->search(0, no_floats, 3, nullptr, nullptr);
    binary->add(0, no_codes);
    binary->add(0, no_floats);
    floats->add(0, no_floats);
    if (name == "BHash16" || needs_training) {
        binary->add_with_ids(0, no_codes, no_ids);
        binary->add_with_ids(0, no_floats, no_ids);
        floats->add_with_ids(0, no_floats, no_ids);
    }
    if (!is_graph) {
        EXPECT_TRUE(range_search(*binary, std::vector<float>(), 9).empty());
        EXPECT_TRUE(range_search(*binary, std::vector<uint8_t>(), 9).empty());
        EXPECT_TRUE(range_search(*floats, {}, 9).empty());
    }
    expect_all_alike(10);
}

TEST_P(EachStorage, DistanceComputer) {
    for (auto metric : metrics) {
        const auto index = make_float(metric), flat = make_flat(metric, x);
        fill(*index, x);
        if (name == "BHash16" || needs_training) {
            // one that cannot tell distances must not be handed out: FAISS asks
            // it for them where no exception can pass
            EXPECT_TRUE(throws([&] { index->get_distance_computer(); }));
            continue;
        }
        const std::unique_ptr<faiss::DistanceComputer> computer(
                index->get_distance_computer());
        const auto all = search(*flat, q, n);
        for (idx_t i = 0; i < nq * n; i++) {
            computer->set_query(&q[i / n * d]);
            ASSERT_EQ((*computer)(all.labels[i]), all.distances[i]);
        }
        const auto among = search(*flat, rows(x, d, 5, 6), n);
        for (idx_t j = 0; j < n; j++) {
            ASSERT_EQ(
                    computer->symmetric_dis(5, among.labels[j]),
                    among.distances[j]);
        }
    }
}

TEST_P(EachStorage, TrainsHashAndStorage) {
    ShiftInvariantHash alone(d, nbits, GaussianKernel());
    const auto a = owning<IndexBinaryKernelHash>(alone.clone(), make_storage());
    const auto b = owning<IndexKernelHash>(alone.clone(), make_storage());
    std::vector<std::pair<Call, std::string>> early = {
            {[&] { a->add(n, x.data()); }, "train"},
            {[&] { search(*a, q, 2); }, "train"},
            {[&] { range_search(*a, q, 2); }, "train"},
            {[&] { b->add(n, x.data()); }, "train"},
            {[&] { search(*b, q, 2); }, "train"},
            {[&] { range_search(*b, q, 2); }, "train"}};
    if (needs_training) { // though the hash of this one does not
        early.push_back({[&] { binary->add(n, codes.data()); }, "train"});
        early.push_back({[&] { search(*binary, codes, 2); }, "train"});
        early.push_back({[&] { range_search(*binary, codes, 2); }, "train"});
    }
    expect_throws(early);
    // three vectors are enough for the hash, but not for eight lists
    const idx_t too_few = needs_training ? 3 : 1;
    EXPECT_TRUE(throws([&] { a->train(too_few, x.data()); }));
    EXPECT_TRUE(throws([&] { b->train(too_few, x.data()); }));
    EXPECT_FALSE(a->is_trained || b->is_trained);

    alone.train(n, x.data());
    fill(*a, x);
    fill(*b, x);
    fill(*bare, codes_of(alone, x));
    EXPECT_TRUE(a->is_trained && a->hash->is_trained && b->is_trained);
    a->train(50, x.data()); // does not touch what is trained
    const auto expected = search(*bare, codes_of(alone, q), 10);
    expect_same(search(*a, q, 10), expected);
    expect_same(search(*b, q, 10), in_metric(expected, faiss::METRIC_L2));
}

/// A storage that can be merged with another one, whatever FAISS is there.
struct MergingStorage : faiss::IndexBinaryFlat {
    MergingStorage() : IndexBinaryFlat(nbits) {}

    void check_compatible_for_merge(
            const faiss::IndexBinary& other) const override {
        FAISS_THROW_IF_NOT_MSG(
                dynamic_cast<const MergingStorage*>(&other),
                "no MergingStorage");
    }
    void merge_from(faiss::IndexBinary& other, idx_t add_id) override {
        FAISS_THROW_IF_NOT_MSG(add_id == 0, "ids cannot be set");
        add(other.ntotal, dynamic_cast<MergingStorage&>(other).xb.data());
        other.reset();
    }
};

// Who deletes the parts.

int hashes_alive = 0, storages_alive = 0;

/// Bit j is 1 where component j is not negative.
struct CountedHash : KernelHash {
    CountedHash() : KernelHash(8, 8) {
        hashes_alive++;
    }
    ~CountedHash() override {
        hashes_alive--;
    }
    void margins(size_t count, const float* x, float* margins) const override {
        std::copy_n(x, count * 8, margins);
    }
    double expected_hamming(double) const override {
        return 0;
    }
    double kernel_estimate(double) const override {
        return 0;
    }
    void fields(FieldVisitor&) override {}
};

struct CountedStorage : faiss::IndexBinaryFlat {
    CountedStorage() : IndexBinaryFlat(8) {
        storages_alive++;
    }
    ~CountedStorage() override {
        storages_alive--;
    }
};

/// A storage whose training fails once.
struct FailingStorage : faiss::IndexBinaryFlat {
    bool has_failed = false;

    FailingStorage() : IndexBinaryFlat(nbits) {
        is_trained = false;
    }
    void train(idx_t, const uint8_t*) override {
        if (!std::exchange(has_failed, true)) {
            throw std::runtime_error("the storage fails");
        }
        is_trained = true;
    }
};

template <class HashIndex>
struct EachHashIndex : testing::Test {};

using HashIndexes = testing::Types<IndexBinaryKernelHash, IndexKernelHash>;
TYPED_TEST_SUITE(EachHashIndex, HashIndexes);

TYPED_TEST(EachHashIndex, Merge) {
    const auto x = uniform_vectors(n, d, 30), q = uniform_vectors(nq, d, 31);
    const auto make = [&](int64_t seed, idx_t begin, idx_t end) {
        auto index = owning<TypeParam>(
                make_hash(seed), std::make_unique<MergingStorage>());
        index->add(end - begin, &x[begin * d]);
        return index;
    };
    const auto a = make(1, 0, 200), b = make(1, 200, n), all = make(1, 0, n);
    const auto strange = make(2, 0, 10);
    const auto flat = owning<TypeParam>(
            make_hash(), std::make_unique<faiss::IndexBinaryFlat>(nbits));
    TypeParam twin(a->hash, a->storage);
    expect_throws(
            {{[&] { a->merge_from(*strange); }, "seeds"},
             {[&] { a->check_compatible_for_merge(*strange); }, "seeds"},
             {[&] { a->merge_from(*flat); }, "no MergingStorage"},
             {[&] { a->merge_from(*b, 5); }, "ids"},
             {[&] { a->merge_from(*a); }, "itself"},
             {[&] { a->merge_from(twin); }, "itself"}});
    if constexpr (std::is_same_v<TypeParam, IndexKernelHash>) {
        faiss::IndexFlat vectors(d);
        EXPECT_TRUE(throws([&] { a->merge_from(vectors); }, "another"));
        const auto products = make_flat(faiss::METRIC_INNER_PRODUCT);
        EXPECT_TRUE(throws([&] { a->merge_from(*products); }, "metric"));
    } else {
        EXPECT_TRUE(throws([&] { a->merge_from(*b->storage); }, "another"));
    }
    EXPECT_EQ(a->ntotal, 200);
    EXPECT_EQ(b->ntotal, n - 200);
    EXPECT_EQ(strange->ntotal, 10);
    a->check_compatible_for_merge(*b);
    a->merge_from(*b);
    EXPECT_EQ(a->ntotal, n);
    EXPECT_EQ(b->ntotal, 0);
    EXPECT_EQ(b->storage->ntotal, 0);
    expect_same(search(*a, q, 10), search(*all, q, 10));
}

TYPED_TEST(EachHashIndex, Ownership) {
    {
        CountedHash hash;
        CountedStorage storage;
        {
            TypeParam index(&hash, &storage);
            EXPECT_FALSE(index.own_fields);
            const std::vector<float> one = {1, -1, 1, 1, -1, -1, -1, 1};
            index.add(1, one.data());
        }
        EXPECT_EQ(hashes_alive, 1);
        EXPECT_EQ(storages_alive, 1);
        EXPECT_EQ(storage.xb[0], 0b10001101);
        // parts that do not fit stay the caller's
        faiss::IndexBinaryFlat wide(16);
        EXPECT_TRUE(throws([&] { TypeParam(&hash, &wide); }, "8 bits"));
        EXPECT_TRUE(throws([&] { TypeParam(nullptr, &storage); }, "null"));
        EXPECT_TRUE(throws([&] { TypeParam(&hash, nullptr); }, "null"));
        EXPECT_EQ(hashes_alive, 1);
        EXPECT_EQ(storages_alive, 1);

        TypeParam index(new CountedHash, new CountedStorage);
        index.own_fields = true;
        EXPECT_EQ(hashes_alive, 2);
    }
    EXPECT_EQ(hashes_alive, 0);
    EXPECT_EQ(storages_alive, 0);
}

TYPED_TEST(EachHashIndex, TrainingOfHashAndStorageIsOneTransaction) {
    const auto bad = uniform_vectors(200, d, 50),
               good = uniform_vectors(n, d, 51);
    for (const char* scheme :
         {"SIK64(gaussian)",
          "BSIK64(3x4)",
          "AHK64(chi2,center=1)",
          "RHBE64(center=1)",
          "SCR64",
          "KLSH64(expchi2,p=40,rank=auto,scale=auto)",
          "KLSH64(normalized(exponential(gaussian,scale=2)),p=40)"}) {
        SCOPED_TRACE(scheme);
        const auto hash = kernel_hash_factory(d, scheme);
        const auto before = bytes_of(*hash);
        const bool was_trained = hash->is_trained;
        FailingStorage storage;
        TypeParam index(hash.get(), &storage);
        EXPECT_THROW(index.train(200, bad.data()), std::runtime_error);
        EXPECT_FALSE(index.is_trained);
        EXPECT_EQ(hash->is_trained, was_trained);
        EXPECT_EQ(bytes_of(*hash), before);
        index.train(n, good.data());
        EXPECT_TRUE(index.is_trained);
        const auto fresh = kernel_hash_factory(d, scheme);
        fresh->train(n, good.data());
        EXPECT_EQ(bytes_of(*hash), bytes_of(*fresh));
    }
}

// Pointers to a kernel that somebody has taken stay valid.
TEST(Training, AFailureLeavesTheKernelWhereItIs) {
    const auto x = uniform_vectors(100, d, 52);
    ShiftInvariantHash sik(d, nbits, GaussianKernel());
    const Kernel* kernel = sik.kernel.get();
    FailingStorage storage;
    IndexKernelHash index(&sik, &storage);
    EXPECT_THROW(index.train(100, x.data()), std::runtime_error);
    EXPECT_EQ(sik.kernel.get(), kernel);
    EXPECT_EQ(kernel->description(), "gaussian");
    index.train(100, x.data());
    EXPECT_EQ(sik.kernel.get(), kernel);
    EXPECT_TRUE(kernel->is_trained);
}

// Only the float index.

// Among codes at every Hamming distance from a query, 0 to nbits.
TEST(IndexKernelHash, BothMetricsAndEveryRadius) {
    const auto q = uniform_vectors(1, d, 5);
    faiss::IndexBinaryFlat ladder(nbits);
    auto code = hashed(q);
    for (int bit = 0; bit <= nbits; bit++) {
        ladder.add(1, code.data());
        code[bit / 8 % code_size] ^= 1 << bit % 8;
    }
    std::vector<float> radii = {
            inf, -inf, max_float, -max_float, 1e-30f, -1e-30f};
    for (int i = -70; i <= 70; i++) {
        for (float r : {float(i), i + 0.5f}) {
            radii.push_back(r);
            radii.push_back(std::nextafter(r, inf));
            radii.push_back(std::nextafter(r, -inf));
        }
    }
    const auto hash = make_hash();
    for (auto metric : metrics) {
        const bool is_distance = metric == faiss::METRIC_L2;
        const IndexKernelHash index(hash.get(), &ladder, metric);
        std::vector<std::pair<idx_t, float>> all;
        for (int i = 0; i <= nbits; i++) {
            all.emplace_back(i, is_distance ? i : nbits - 2 * i);
        }
        const auto found = search(index, q, nbits + 3);
        for (int i = 0; i < nbits + 3; i++) {
            const bool there = i <= nbits;
            EXPECT_EQ(found.labels[i], there ? i : -1);
            EXPECT_EQ(
                    found.distances[i],
                    there                 ? all[i].second
                            : is_distance ? max_float
                                          : -max_float);
        }
        for (float radius : radii) {
            auto expected = all;
            std::erase_if(expected, [&](const auto& pair) {
                return is_distance ? pair.second >= radius
                                   : pair.second <= radius;
            });
            EXPECT_EQ(sorted(range_search(index, q, radius))[0], expected)
                    << radius;
        }
    }
    for (auto metric : {faiss::METRIC_L1, faiss::METRIC_Canberra}) {
        EXPECT_TRUE(
                throws([&] { IndexKernelHash(hash.get(), &ladder, metric); },
                       "metric"));
    }
}

TEST(IndexKernelHash, InAnIDMap) {
    const auto x = uniform_vectors(n, d, 11);
    const auto q = near_vectors(x, nq, d, 0.02f, 12);
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 1000000007LL * (i + 1);
    }
    const auto plain = make_flat(faiss::METRIC_L2, x), sub = make_flat();
    faiss::IndexIDMap2 map(sub.get());
    map.add_with_ids(n, x.data(), ids.data());
    // a bad vector changes neither the ids nor the codes
    auto bad = rows(x, d, 0, 5);
    bad[4 * d] = NAN;
    EXPECT_TRUE(throws([&] { map.add_with_ids(5, bad.data(), ids.data()); }));
    EXPECT_EQ(map.id_map, ids);
    EXPECT_EQ(sub->ntotal, n);
    // removed vectors are not found any more, the others keep their ids
    EXPECT_EQ(map.remove_ids(faiss::IDSelectorRange(0, ids[300])), 300u);
    EXPECT_EQ(plain->remove_ids(faiss::IDSelectorRange(0, 300)), 300u);
    map.check_consistency();
    auto expected = search(*plain, q, 8);
    for (idx_t& id : expected.labels) {
        id = ids[id + 300];
    }
    expect_same(search(map, q, 8), expected);
    EXPECT_EQ(
            total_size(range_search(map, q, 20)),
            total_size(range_search(*plain, q, 20)));
}

// Long codes rank again what is found by vectors. Queries that a hash refuses
// in FAISS's own loops are an error there, too.
TEST(IndexKernelHash, RefinesAndTellsWhatItRefuses) {
    const auto x = uniform_vectors(50, d, 55);
    for (auto metric : metrics) {
        faiss::IndexFlat base(d, metric);
        const auto codes = make_flat(metric);
        faiss::IndexRefine refine(&base, codes.get());
        refine.add(50, x.data());
        refine.k_factor = 10;
        auto bad = rows(x, d, 0, 3);
        bad[d] = inf;
        {
            KernelExceptionGuard guard(&refine);
            search(refine, bad, 2);
            EXPECT_TRUE(throws([&] { guard.rethrow(); }, "component 0"));
        }
        KernelExceptionGuard guard(&refine);
        EXPECT_EQ(
                search(refine, x, 5).distances, search(*codes, x, 5).distances);
        guard.rethrow();
        refine.k_factor = 0.5;
        EXPECT_TRUE(throws(
                [&] { KernelExceptionGuard another(&refine); }, "k_factor"));
    }
}

TEST(IndexKernelHash, BehindTransformations) {
    const auto x = uniform_vectors(n, d, 15), q = uniform_vectors(nq, d, 16);
    faiss::PCAMatrix pca(d, 7);
    faiss::RandomRotationMatrix rotation(d, 20);
    for (faiss::VectorTransform* transform :
         std::vector<faiss::VectorTransform*>{&pca, &rotation}) {
        const ShiftInvariantHash hash(
                transform->d_out, nbits, GaussianKernel());
        const auto make = [&] {
            return owning<IndexKernelHash>(
                    hash.clone(),
                    std::make_unique<faiss::IndexBinaryFlat>(nbits));
        };
        const auto behind = make(), alone = make();
        faiss::IndexPreTransform pre(transform, behind.get());
        EXPECT_FALSE(pre.is_trained);
        pre.train(n, x.data());
        EXPECT_TRUE(pre.is_trained && behind->hash->is_trained);
        pre.add(n, x.data());
        const auto xt = applied(*transform, x);
        alone->train(n, xt.data());
        alone->add(n, xt.data());
        expect_same(
                search(pre, q, 10), search(*alone, applied(*transform, q), 10));
        ASSERT_EQ(pre.sa_code_size(), size_t(code_size));
        std::vector<uint8_t> sa_codes(n * code_size);
        pre.sa_encode(n, x.data(), sa_codes.data());
        EXPECT_EQ(sa_codes, codes_of(*alone->hash, xt));
    }
}

TEST(IndexKernelHash, InShardsAndReplicas) {
    const auto x = uniform_vectors(n, d, 17), q = uniform_vectors(nq, d, 18);
    for (auto metric : metrics) {
        const auto expected = search(*make_flat(metric, x), q, 10);
        for (bool threaded : {false, true}) {
            const auto a = make_flat(metric), b = make_flat(metric);
            faiss::IndexShards shards(d, threaded, true);
            shards.addIndex(a.get());
            shards.addIndex(b.get());
            shards.add(n, x.data());
            EXPECT_EQ(b->ntotal, n / 2);
            // (labels may differ among equals)
            EXPECT_EQ(search(shards, q, 10).distances, expected.distances);
            const std::vector<float> bad(d, NAN);
            EXPECT_TRUE(throws([&] { search(shards, bad, 1); }));

            const auto e = make_flat(metric), f = make_flat(metric);
            faiss::IndexReplicas replicas(d, threaded);
            replicas.addIndex(e.get());
            replicas.addIndex(f.get());
            replicas.add(n, x.data());
            EXPECT_EQ(f->ntotal, n);
            expect_same(search(replicas, q, 10), expected);
        }
    }
}

} // namespace
