// SPDX-License-Identifier: MIT
// IndexBinaryKernelHash and IndexKernelHash.

#include <stdexcept>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>

#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/io/index_factory.h>
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

constexpr auto l2 = faiss::METRIC_L2, ip = faiss::METRIC_INNER_PRODUCT;
const std::string sik = "SIK64(gaussian,gamma=0.2)",
                  untrained_sik = "SIK64(gaussian)";

std::vector<uint8_t> hashed(const std::vector<float>& x) {
    return codes_of(*kernel_hash_factory(d, sik), x);
}

/// Makes an index that owns its parts.
template <class HashIndex, class... Metric>
std::unique_ptr<HashIndex> make(
        const std::string& hash,
        faiss::IndexBinary* storage,
        Metric... metric) {
    auto index = std::make_unique<HashIndex>(
            kernel_hash_factory(d, hash).release(), storage, metric...);
    index->own_fields = true;
    return index;
}

std::unique_ptr<IndexKernelHash> make_flat(
        faiss::MetricType metric = l2,
        const std::vector<float>& x = {}) {
    auto index = make<IndexKernelHash>(
            sik, new faiss::IndexBinaryFlat(nbits), metric);
    index->add(x.size() / d, x.data());
    return index;
}

/// Converts results of the storage as an IndexKernelHash does.
Found<float> as_floats(const Found<int32_t>& found) {
    Found<float> same{{}, found.labels};
    for (size_t i = 0; i < found.labels.size(); i++) {
        same.distances.push_back(
                found.labels[i] < 0 ? max_float : float(found.distances[i]));
    }
    return same;
}

/// Both indexes over a FAISS binary index can do what it can do. If it throws,
/// they throw.
struct EachStorage : testing::TestWithParam<const char*> {
    const std::string name = GetParam();
    const bool needs_training = name == "BIVF8", is_graph = name == "BHNSW16";
    const std::vector<float> x = uniform_vectors(n, d, 1);
    const std::vector<float> q = near_vectors(x, nq, d, 0.02f, 2);
    const std::vector<uint8_t> codes = hashed(x), query_codes = hashed(q);

    using Binary = IndexBinaryKernelHash;
    const std::unique_ptr<faiss::IndexBinary> bare{storage()};
    const std::unique_ptr<Binary> of_codes = make<Binary>(sik, storage());
    const std::unique_ptr<Binary> binary = make<Binary>(sik, storage());
    const std::unique_ptr<IndexKernelHash> floats =
            make<IndexKernelHash>(sik, storage());

    faiss::IndexBinary* storage() const {
        return faiss::index_binary_factory(nbits, name.c_str());
    }

    /// Adds in two batches, which makes a difference to a graph.
    template <class Index, class T>
    static void fill(Index& index, const std::vector<T>& vectors) {
        const idx_t size = std::is_same_v<T, float> ? d : code_size;
        const idx_t count = vectors.size() / size, half = count / 2;
        index.train(count, vectors.data());
        index.add(half, vectors.data());
        index.add(count - half, vectors.data() + half * size);
    }

    void fill_all() {
        fill(*bare, codes);
        fill(*of_codes, codes);
        fill(*binary, x);
        fill(*floats, x);
    }

    /// Expects f(index) to throw for both kinds of index with vectors.
    template <class F>
    void expect_refused(F&& f, const std::string& names = "") {
        EXPECT_TRUE(throws([&] { f(*binary); }, names));
        EXPECT_TRUE(throws([&] { f(*floats); }, names));
    }

    /// Returns whether FAISS's index can do f(index, codes, or vectors that
    /// have these codes). If it can, ours do the same or refuse.
    template <class F>
    bool can(
            F&& f,
            const std::vector<uint8_t>& codes,
            const std::vector<float>& vectors) {
        if (throws([&] { f(*bare, codes); })) {
            EXPECT_TRUE(throws([&] { f(*of_codes, codes); }));
            expect_refused([&](auto& index) { f(index, vectors); });
            return false;
        }
        f(*of_codes, codes);
        f(*binary, vectors);
        f(*floats, vectors);
        return true;
    }

    void expect_all_alike(idx_t k) const {
        const auto found = search(*bare, query_codes, k);
        for (const auto* index : {of_codes.get(), binary.get()}) {
            EXPECT_EQ(index->ntotal, bare->ntotal);
            EXPECT_EQ(index->storage->ntotal, bare->ntotal);
            expect_same(search(*index, q, k), found);
            expect_same(search(*index, query_codes, k), found);
        }
        EXPECT_EQ(floats->ntotal, bare->ntotal);
        expect_same(search(*floats, q, k), as_floats(found));
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
    EXPECT_TRUE(
            of_codes->is_trained && binary->is_trained && floats->is_trained);
    faiss::IDSelectorRange first_ten(0, 10);
    faiss::SearchParameters params;
    params.sel = &first_ten;
    for (int nthreads : {1, 3}) {
        const Threads threads(nthreads);
        for (idx_t k : {idx_t(1), idx_t(10), n + 100}) {
            expect_all_alike(k);
        }
        std::vector<std::vector<idx_t>> labels;
        const auto select = [&](auto& index, const auto& queries) {
            labels.push_back(search(index, queries, 5, &params).labels);
            EXPECT_EQ(labels.back(), labels[0]);
        };
        if (name.find("BHash") == 0) { // filters are ours
            IndexBinaryFlatSIMD scan(nbits);
            scan.add(n, codes.data());
            select(scan, query_codes);
            select(*of_codes, query_codes);
            select(*binary, q);
            select(*floats, q);
        } else {
            can(select, query_codes, q);
        }
        for (int radius : {0, 1, 20, 65}) {
            std::vector<Ranges> found;
            const auto find = [&](auto& index, const auto& queries) {
                found.push_back(range_search(index, queries, radius));
                EXPECT_EQ(found.back(), found[0]);
            };
            if (can(find, query_codes, q) && radius >= 20) {
                EXPECT_GT(total_size(found[0]), nq / 2);
            }
        }
    }
}

TEST_P(EachStorage, Reconstructs) {
    fill_all();
    // codes have no gaps between them, and nothing after them is written
    std::vector<uint8_t> expected = rows(codes, code_size, 30, 50);
    expected.resize(21 * code_size, 0xa5);
    std::vector<uint8_t> back(21 * code_size, 0xa5), one(code_size);
    const auto many = [&] { binary->reconstruct_n(30, 20, back.data()); };
    if (name.find("BHash") == 0) {
        EXPECT_TRUE(throws(many));
    } else {
        many();
        EXPECT_EQ(back, expected);
    }
    if (name == "BFlat" || is_graph) {
        binary->reconstruct(n - 1, one.data());
        EXPECT_EQ(one, rows(codes, code_size, n - 1, n));
        EXPECT_TRUE(throws([&] { binary->reconstruct(n, one.data()); }));
    } else {
        EXPECT_TRUE(throws([&] { binary->reconstruct(17, one.data()); }));
    }
}

TEST_P(EachStorage, Changes) {
    fill_all();
    const auto more = uniform_vectors(20, d, 3), few = rows(x, d, 200, 250);
    std::vector<idx_t> ids(20);
    std::iota(ids.begin(), ids.end(), 1000);
    const auto add = [&](auto& index, const auto& vectors) {
        index.add_with_ids(20, vectors.data(), ids.data());
    };
    can(add, hashed(more), more);
    expect_all_alike(n);
    const auto remove = [](auto& index, const auto&) {
        index.remove_ids(faiss::IDSelectorRange(100, 350));
    };
    EXPECT_EQ(can(remove, codes, x), name == "BFlat" || needs_training);
    expect_all_alike(10);

    for (int round = 0; round < 2; round++) {
        binary->reset();
        floats->reset();
        EXPECT_EQ(binary->ntotal + binary->storage->ntotal + floats->ntotal, 0);
        EXPECT_EQ(search(*binary, q, 1).labels, std::vector<idx_t>(nq, -1));
        binary->add(50, few.data());
        floats->add(50, few.data());
    }
    const std::unique_ptr<faiss::IndexBinary> fresh(storage());
    fresh->train(n, codes.data());
    fresh->add(50, hashed(few).data());
    const idx_t k = is_graph ? 1 : 10; // a graph has other levels
    const auto found = search(*fresh, query_codes, k);
    EXPECT_EQ(search(*binary, q, k).distances, found.distances);
    EXPECT_EQ(search(*floats, q, k).distances, as_floats(found).distances);
}

/// Interrupts come in the middle, although FAISS's own loops do not check.
TEST_P(EachStorage, InterruptsChangeNothing) {
    fill_all();
    const Bytes many = random_bytes(5000 * code_size, 5);
    if (needs_training || is_graph) {
        EXPECT_TRUE(
                interrupted_at(4, [&] { of_codes->add(5000, many.data()); }));
        expect_all_alike(5);
        for (auto* index : {bare.get(), of_codes->storage}) {
            index->add(500, many.data());
        }
        of_codes->ntotal = of_codes->storage->ntotal;
        expect_same(
                search(*of_codes, query_codes, 5),
                search(*bare, query_codes, 5));
    }
    EXPECT_TRUE(interrupted_at(3, [&] { search(*of_codes, many, 5); }));
    if (!is_graph) {
        EXPECT_TRUE(
                interrupted_at(3, [&] { range_search(*of_codes, many, 10); }));
    }
}

TEST_P(EachStorage, BadAndEmptyCallsChangeNothing) {
    fill_all();
    const float* no_floats = nullptr;
    const uint8_t* no_codes = nullptr;
    const std::vector<idx_t> ids(nq, 5);
    std::vector<float> y = q;
    y[3 * d + 5] = NAN;
    const float* bad = y.data();
    const char* at = "component 5 of vector 3";
    expect_refused([&](auto& i) { i.train(nq, bad); }, at);
    expect_refused([&](auto& i) { i.add(nq, bad); }, at);
    expect_refused([&](auto& i) { i.add_with_ids(nq, bad, ids.data()); }, at);
    expect_refused([&](auto& i) { search(i, y, 2); }, at);
    expect_refused([&](auto& i) { range_search(i, y, 2); }, at);
    expect_refused([&](auto& i) { i.train(3, no_floats); }, "null");
    expect_refused([&](auto& i) { i.add(3, no_floats); }, "null");
    expect_refused([&](auto& i) { i.add_with_ids(3, &x[0], nullptr); }, "null");
    expect_refused([&](auto& i) { i.add(-1, x.data()); }, "-1");
    expect_refused(
            [&](auto& i) { i.search(0, no_floats, 0, nullptr, nullptr); }, "0");
    expect_throws(
            {{[&] { floats->sa_encode(nq, bad, nullptr); }, at},
             {[&] { range_search(*floats, q, NAN); }, "NaN"},
             {[&] { binary->train(3, no_codes); }, "null"},
             {[&] { binary->add(3, no_codes); }, "null"},
             {[&] { binary->search(1, no_codes, 1, nullptr, nullptr); },
              "null"},
             {[&] { binary->add(-1, codes.data()); }, "-1"}});

    binary->search(0, no_codes, 3, nullptr, nullptr);
    binary->search(0, no_floats, 3, nullptr, nullptr);
    binary->add(0, no_codes);
    binary->add(0, no_floats);
    floats->add(0, no_floats);
    if (name == "BHash16" || needs_training) {
        binary->add_with_ids(0, no_codes, nullptr);
        binary->add_with_ids(0, no_floats, nullptr);
        floats->add_with_ids(0, no_floats, nullptr);
    }
    const auto find_in_range = [](auto& index, const auto& nothing) {
        EXPECT_TRUE(range_search(index, nothing, 9).empty());
    };
    EXPECT_EQ(can(find_in_range, {}, {}), !is_graph);
    expect_all_alike(10);
}

TEST_P(EachStorage, DistanceComputer) {
    for (auto metric : {l2, ip}) {
        const auto index = make<IndexKernelHash>(sik, storage(), metric);
        fill(*index, x);
        if (name == "BHash16" || needs_training) {
            // an object that cannot compute distances must not be returned,
            // since FAISS calls it where exceptions cannot pass
            EXPECT_TRUE(throws([&] { index->get_distance_computer(); }));
            continue;
        }
        const std::unique_ptr<faiss::DistanceComputer> computer(
                index->get_distance_computer());
        const auto flat = make_flat(metric, x);
        const auto all = search(*flat, q, n);
        for (idx_t i = 0; i < nq * n; i++) {
            computer->set_query(&q[i / n * d]);
            ASSERT_EQ((*computer)(all.labels[i]), all.distances[i]);
        }
        const auto among = search(*flat, rows(x, d, 5, 6), n);
        for (idx_t j = 0; j < n; j++) {
            const idx_t id = among.labels[j];
            ASSERT_EQ(computer->symmetric_dis(5, id), among.distances[j]);
        }
    }
}

TEST_P(EachStorage, TrainsHashAndStorage) {
    if (needs_training) { // although this hash needs no training
        expect_throws(
                {{[&] { binary->add(n, codes.data()); }, "train"},
                 {[&] { search(*binary, codes, 2); }, "train"},
                 {[&] { range_search(*binary, codes, 2); }, "train"}});
    }
    const auto hash = kernel_hash_factory(d, untrained_sik);
    hash->train(n, x.data());
    fill(*bare, codes_of(*hash, x));
    const auto expected = search(*bare, codes_of(*hash, q), 10);
    const auto trained = [&](auto&& index) {
        // three vectors are enough for the hash, but not for eight lists
        const idx_t too_few = needs_training ? 3 : 1;
        expect_throws(
                {{[&] { index->add(n, x.data()); }, "train"},
                 {[&] { search(*index, q, 2); }, "train"},
                 {[&] { range_search(*index, q, 2); }, "train"},
                 {[&] { index->train(too_few, x.data()); }, ""}});
        EXPECT_FALSE(index->is_trained);
        fill(*index, x);
        EXPECT_TRUE(index->is_trained && index->hash->is_trained);
        index->train(50, x.data()); // has no effect on trained parts
        return search(*index, q, 10);
    };
    expect_same(trained(make<Binary>(untrained_sik, storage())), expected);
    expect_same(
            trained(make<IndexKernelHash>(untrained_sik, storage())),
            as_floats(expected));
}

/// Counts the living objects of a class.
template <class Base>
struct Counted : Base {
    static inline int alive = 0;

    template <class... Arguments>
    explicit Counted(const Arguments&... arguments) : Base(arguments...) {
        alive++;
    }
    ~Counted() override {
        alive--;
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

TYPED_TEST(EachHashIndex, MergesWithItsLikeOnly) {
    const auto x = uniform_vectors(n, d, 30);
    const auto filled = [&](const std::string& hash, auto* storage) {
        auto index = make<TypeParam>(hash, storage);
        index->add(n, x.data());
        return index;
    };
    const auto permuted = [] { return new IndexBinaryPermuted(nbits); };
    const auto a = filled(sik, permuted()), b = filled(sik, permuted()),
               seeded = filled("SIK64(gaussian,gamma=0.2,seed=2)", permuted()),
               flat = filled(sik, new faiss::IndexBinaryFlat(nbits));
    TypeParam twin(a->hash, a->storage);
    expect_throws(
            {{[&] { a->merge_from(*seeded); }, "seeds"},
             {[&] { a->check_compatible_for_merge(*seeded); }, "seeds"},
             {[&] { a->merge_from(*flat); }, "Permuted"},
             {[&] { a->merge_from(*b, 5); }, "ids"},
             {[&] { a->merge_from(*a); }, "itself"},
             {[&] { a->merge_from(twin); }, "itself"}});
    if constexpr (std::is_same_v<TypeParam, IndexKernelHash>) {
        faiss::IndexFlat vectors(d);
        EXPECT_TRUE(throws([&] { a->merge_from(vectors); }, "another"));
        const auto products = make_flat(ip);
        EXPECT_TRUE(throws([&] { a->merge_from(*products); }, "metric"));
    } else {
        EXPECT_TRUE(throws([&] { a->merge_from(*b->storage); }, "another"));
    }
    EXPECT_EQ(a->storage->ntotal, n);
    EXPECT_EQ(b->storage->ntotal, n);
    a->check_compatible_for_merge(*b);
}

TYPED_TEST(EachHashIndex, Ownership) {
    using Hash = Counted<ShiftInvariantHash>;
    using Storage = Counted<faiss::IndexBinaryFlat>;
    const auto alive = [] { return std::pair(Hash::alive, Storage::alive); };
    {
        const GaussianKernel kernel(1);
        Hash hash(8, 8, kernel);
        Storage storage(8);
        const std::vector<uint8_t> codes = {3, 5};
        storage.add(2, codes.data());
        {
            TypeParam index(&hash, &storage);
            EXPECT_FALSE(index.own_fields);
            EXPECT_EQ(index.ntotal, 2); // the stored codes
            EXPECT_TRUE(index.is_trained);
        }
        // on failure the caller keeps the parts
        faiss::IndexBinaryFlat wide(16);
        EXPECT_TRUE(throws([&] { TypeParam(&hash, &wide); }, "8 bits"));
        EXPECT_TRUE(throws([&] { TypeParam(nullptr, &storage); }, "null"));
        EXPECT_TRUE(throws([&] { TypeParam(&hash, nullptr); }, "null"));
        EXPECT_EQ(alive(), std::pair(1, 1));

        TypeParam index(new Hash(8, 8, kernel), new Storage(8));
        index.own_fields = true;
        EXPECT_EQ(alive(), std::pair(2, 2));
    }
    EXPECT_EQ(alive(), std::pair(0, 0));
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
        // pointers to the kernel stay valid
        const auto* sik_hash = dynamic_cast<ShiftInvariantHash*>(hash.get());
        const Kernel* kernel = sik_hash ? sik_hash->kernel.get() : nullptr;
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
        EXPECT_TRUE(!sik_hash || sik_hash->kernel.get() == kernel);
    }
}

// Only for the float index.

// Codes at every Hamming distance from a query, 0 to nbits.
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
    for (float r = -70; r <= 70; r += 0.5f) {
        for (float to : {-inf, r, inf}) {
            radii.push_back(std::nextafter(r, to));
        }
    }
    const auto hash = kernel_hash_factory(d, sik);
    for (auto metric : {l2, ip}) {
        const bool is_l2 = metric == l2;
        const IndexKernelHash index(hash.get(), &ladder, metric);
        Found<float> nearest;
        for (int i = 0; i < nbits + 3; i++) {
            const bool there = i <= nbits;
            nearest.labels.push_back(there ? i : -1);
            nearest.distances.push_back(
                    !there ? (is_l2 ? 1 : -1) * max_float
                           : float(is_l2 ? i : nbits - 2 * i));
        }
        expect_same(search(index, q, nbits + 3), nearest);
        for (float radius : radii) {
            Ranges expected(1);
            for (int i = 0; i <= nbits; i++) {
                const float v = nearest.distances[i];
                if (is_l2 ? v < radius : v > radius) {
                    expected[0].emplace_back(i, v);
                }
            }
            EXPECT_EQ(sorted(range_search(index, q, radius)), expected)
                    << radius;
        }
    }
    const auto wrong = [&] {
        IndexKernelHash(hash.get(), &ladder, faiss::METRIC_L1);
    };
    EXPECT_TRUE(throws(wrong, "METRIC_"));
}

// Long codes rerank results of a vector search. If FAISS's own loop meets a
// query that the hash refuses, this is an error, too.
TEST(IndexKernelHash, RefinesAndTellsWhatItRefuses) {
    const auto x = uniform_vectors(50, d, 55);
    for (auto metric : {l2, ip}) {
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

TEST(IndexKernelHash, NoVectorHasTheIdOfPadding) {
    const auto x = uniform_vectors(3, d, 57);
    const std::vector<idx_t> ids{5, -1, 6};
    for (const std::string storage : {"BHash8", "BIVF2"}) {
        const auto floats = index_factory(d, sik + "," + storage);
        const auto binary = index_binary_factory(d, sik + "," + storage);
        auto& hashed = dynamic_cast<IndexBinaryKernelHash&>(*binary);
        floats->train(3, x.data());
        hashed.train(3, x.data());
        const char* reason = "an id is -1";
        expect_throws(
                {{[&] { floats->add_with_ids(3, x.data(), ids.data()); },
                  reason},
                 {[&] { hashed.add_with_ids(3, x.data(), ids.data()); },
                  reason}});
        EXPECT_EQ(floats->ntotal, 0);
        EXPECT_EQ(hashed.ntotal, 0);
    }
}

TEST(IndexKernelHash, GraphsWhoseCodesWereRemovedAreNotRead) {
    const auto x = uniform_vectors(50, d, 58);
    const auto floats = index_factory(d, sik + ",BHNSW8");
    const auto binary = index_binary_factory(d, sik + ",BHNSW8");
    auto& hashed = dynamic_cast<IndexBinaryKernelHash&>(*binary);
    floats->add(50, x.data());
    hashed.add(50, x.data());
    auto& of_floats = dynamic_cast<IndexKernelHash&>(*floats);
    const auto empty = [](faiss::IndexBinary* storage) {
        dynamic_cast<faiss::IndexBinaryHNSW&>(*storage).storage->reset();
    };
    empty(of_floats.storage);
    empty(hashed.storage);
    uint8_t code[code_size];
    const char* reason = "parts do not match";
    expect_throws(
            {{[&] { floats->get_distance_computer(); }, reason},
             {[&] { hashed.reconstruct(0, code); }, reason},
             {[&] { hashed.reconstruct_n(0, 1, code); }, reason},
             {[&] { search(*floats, x, 1); }, reason}});
}

TEST(IndexRefineKernel, BothIndexesAreAlike) {
    IndexFlatKernel exact(d, GaussianKernel(0.1));
    faiss::IndexFlatL2 shorter(d - 1);
    faiss::IndexFlatIP other_metric(d);
    faiss::IndexFlatL2 filled(d);
    filled.add(1, std::vector<float>(d).data());
    expect_throws(
            {{[&] { IndexRefineKernel(&shorter, &exact); },
              "base_index has 11 dimensions and refine_index 12"},
             {[&] { IndexRefineKernel(&other_metric, &exact); },
              "metric_type 0 and refine_index 1"},
             {[&] { IndexRefineKernel(&filled, &exact); },
              "base_index has 1 vectors and refine_index 0"},
             {[&] { IndexRefineKernel(nullptr, &exact); }, "null"}});
}

/// Fails after half of the vectors were added.
struct IndexThatFails : faiss::IndexFlat {
    using faiss::IndexFlat::IndexFlat;
    void add(idx_t n, const float* x) override {
        faiss::IndexFlat::add(n / 2, x);
        FAISS_THROW_MSG("no room");
    }
};

TEST(IndexRefineKernel, AnAddThatFailsHalfWayLeavesNothing) {
    const auto x = uniform_vectors(50, d, 56);
    IndexThatFails base(d);
    IndexFlatKernel exact(d, GaussianKernel(0.1));
    IndexRefineKernel index(&base, &exact);
    EXPECT_TRUE(throws([&] { index.add(50, x.data()); }, "no room"));
    EXPECT_EQ(base.ntotal, 0);
    EXPECT_EQ(exact.ntotal, 0);
    EXPECT_EQ(index.ntotal, 0);
    EXPECT_EQ(search(index, x, 1).labels, std::vector<idx_t>(50, -1));
}

/// Some files of FAISS have empty buckets.
TEST(IndexKernelHash, RemovalFromHashTablesWithAnEmptyBucket) {
    const auto x = uniform_vectors(n, d, 57);
    const auto made = index_factory(d, "SIK64(gaussian),BHash8");
    auto& index = dynamic_cast<IndexKernelHash&>(*made);
    index.train(n, x.data());
    index.add(n, x.data());
    auto& table = dynamic_cast<faiss::IndexBinaryHash&>(*index.storage);
    table.invlists[1000];
    const idx_t id = 3;
    EXPECT_EQ(index.remove_ids(faiss::IDSelectorBatch(1, &id)), 1u);
    EXPECT_EQ(index.ntotal, n - 1);
    EXPECT_EQ(table.invlists.count(1000), 0u);
    table.invlists[1000].vecs.resize(8);
    EXPECT_TRUE(
            throws([&] { index.remove_ids(faiss::IDSelectorRange(5, 6)); },
                   "more codes than ids"));
    EXPECT_EQ(index.ntotal, n - 1);
}

} // namespace
