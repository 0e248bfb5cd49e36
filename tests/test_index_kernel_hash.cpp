// IndexBinaryKernelHash and IndexKernelHash.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
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
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>

#include "testing_indexes.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 12, nbits = 64, code_size = nbits / 8;
constexpr idx_t n = 600, nq = 25;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float max_float = std::numeric_limits<float>::max();

/// An index that owns its parts.
template <class HashIndex, class... Metric>
std::unique_ptr<HashIndex> owning(
        std::unique_ptr<KernelHash> hash,
        std::unique_ptr<faiss::IndexBinary> storage,
        Metric... metric) {
    auto index =
            std::make_unique<HashIndex>(hash.get(), storage.get(), metric...);
    hash.release();
    storage.release();
    index->own_fields = true;
    return index;
}

std::unique_ptr<KernelHash> make_hash(int64_t seed = 1) {
    return std::make_unique<ShiftInvariantHash>(
            d, nbits, GaussianKernel(0.2), seed);
}

std::unique_ptr<IndexKernelHash> make_float_index(
        faiss::MetricType metric = faiss::METRIC_L2,
        const std::vector<float>& x = {}) {
    auto index = owning<IndexKernelHash>(
            make_hash(),
            std::make_unique<faiss::IndexBinaryFlat>(nbits),
            metric);
    index->add(x.size() / d, x.data());
    return index;
}

/// A binary index of FAISS and what it can do besides add, search and reset.
/// What it cannot do ends in a faiss::FaissException.
struct Storage {
    const char* name;
    bool needs_training;
    bool add_with_ids;
    bool range_search;
    bool remove_ids;
    bool reconstruct;
    bool merge;
    bool selector;
    bool distances; ///< to codes by their ids
};

constexpr bool old = is_faiss_1_7;

const Storage storages[] = {
        // name, needs_training, add_with_ids, range_search, remove_ids,
        // reconstruct, merge, selector, distances
        {"BFlat", false, false, true, true, true, false, !old, true},
        {"BHash16", false, true, true, false, false, false, false, false},
        {"BHash4x16", false, false, true, false, false, false, false, true},
        {"BIVF8", true, true, true, true, false, !old, false, false},
        {"BHNSW16", false, false, false, false, true, false, false, true}};

void PrintTo(const Storage& storage, std::ostream* out) {
    *out << storage.name;
}

struct EachStorage : testing::TestWithParam<Storage> {
    const Storage can = GetParam();
    const std::vector<float> x = random_vectors(n, d, 1);
    const std::vector<float> q = near_vectors(x, nq, d, 0.02f, 2);

    std::unique_ptr<faiss::IndexBinary> make_storage() const {
        std::unique_ptr<faiss::IndexBinary> storage(
                faiss::index_binary_factory(nbits, can.name));
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

    template <class HashIndex>
    static void fill(HashIndex& index, const std::vector<float>& vectors) {
        const idx_t count = vectors.size() / d, half = count / 2;
        index.train(count, vectors.data());
        index.add(half, vectors.data());
        index.add(count - half, vectors.data() + half * d);
    }

    std::unique_ptr<IndexBinaryKernelHash> make_binary(int64_t seed = 1) const {
        return owning<IndexBinaryKernelHash>(make_hash(seed), make_storage());
    }

    std::unique_ptr<IndexKernelHash> make_float(
            faiss::MetricType metric = faiss::METRIC_L2,
            int64_t seed = 1) const {
        return owning<IndexKernelHash>(make_hash(seed), make_storage(), metric);
    }

    /// FAISS's index alone, with the codes of some vectors, added in two
    /// batches (which makes a difference to a graph).
    std::unique_ptr<faiss::IndexBinary> bare(
            const std::vector<float>& vectors) const {
        auto storage = make_storage();
        const auto codes = codes_of(*make_hash(), vectors);
        const idx_t count = codes.size() / code_size, half = count / 2;
        storage->train(count, codes.data());
        storage->add(half, codes.data());
        storage->add(count - half, codes.data() + half * code_size);
        return storage;
    }
};

INSTANTIATE_TEST_SUITE_P(
        Hash,
        EachStorage,
        testing::ValuesIn(storages),
        [](const auto& info) { return info.param.name; });

TEST_P(EachStorage, SearchEqualsStorageOverCodes) {
    const auto expected_index = bare(x);
    const auto query_codes = codes_of(*make_hash(), q);
    const auto base_codes = codes_of(*make_hash(), x);
    for (bool code_input : {false, true}) {
        SCOPED_TRACE(code_input ? "codes" : "floats");
        const auto index = make_binary();
        EXPECT_EQ(index->d, nbits);
        EXPECT_EQ(index->code_size, code_size);
        EXPECT_EQ(index->is_trained, !can.needs_training);
        if (code_input) {
            index->train(n, base_codes.data());
            index->add(n / 2, base_codes.data());
            index->add(n - n / 2, base_codes.data() + n / 2 * code_size);
        } else {
            index->train(n, x.data());
            index->add(n / 2, x.data());
            index->add(n - n / 2, x.data() + n / 2 * d);
        }
        EXPECT_TRUE(index->is_trained);
        EXPECT_EQ(index->ntotal, n);
        EXPECT_EQ(index->storage->ntotal, n);
        for (idx_t k : {1, 10, 700}) {
            const auto expected = search(*expected_index, query_codes, k);
            EXPECT_GE(
                    std::count_if(
                            expected.labels.begin(),
                            expected.labels.end(),
                            [](idx_t id) { return id >= 0; }),
                    nq / 2);
            expect_same(search(*index, query_codes, k), expected);
            expect_same(search(*index, q, k), expected);
        }
        if (can.range_search) {
            for (int radius : {0, 1, 5, 20, 65}) {
                const auto expected =
                        range_search(*expected_index, query_codes, radius);
                EXPECT_EQ(range_search(*index, query_codes, radius), expected);
                EXPECT_EQ(range_search(*index, q, radius), expected);
            }
            EXPECT_GE(total_size(range_search(*index, q, 20)), size_t(nq) / 2);
        }
    }
}

TEST_P(EachStorage, FloatIndexEqualsBinaryIndex) {
    const auto expected_index = bare(x);
    const auto query_codes = codes_of(*make_hash(), q);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const bool is_distance = metric == faiss::METRIC_L2;
        const auto index = make_float(metric);
        EXPECT_EQ(index->d, d);
        EXPECT_EQ(index->metric_type, metric);
        EXPECT_EQ(index->is_trained, !can.needs_training);
        index->train(n, x.data());
        index->add(n / 2, x.data());
        index->add(n - n / 2, x.data() + n / 2 * d);
        EXPECT_TRUE(index->is_trained);
        EXPECT_EQ(index->ntotal, n);
        const auto to_metric = [&](float hamming) {
            return is_distance ? hamming : nbits - 2 * hamming;
        };
        for (idx_t k : {1, 10, 700}) {
            const auto expected = search(*expected_index, query_codes, k);
            const auto found = search(*index, q, k);
            ASSERT_EQ(found.labels, expected.labels);
            for (size_t i = 0; i < found.labels.size(); i++) {
                const float padding = is_distance ? max_float : -max_float;
                EXPECT_EQ(
                        found.distances[i],
                        found.labels[i] < 0 ? padding
                                            : to_metric(expected.distances[i]));
            }
        }
        if (can.range_search) {
            Ranges expected = range_search(*expected_index, query_codes, 20);
            for (auto& range : expected) {
                for (auto& [id, distance] : range) {
                    distance = to_metric(distance);
                }
            }
            EXPECT_GE(total_size(expected), size_t(nq) / 2);
            EXPECT_EQ(range_search(*index, q, to_metric(20)), expected);
        }
    }
}

TEST_P(EachStorage, ThreadsDoNotMatter) {
    const auto index = make_binary();
    const auto floats = make_float(faiss::METRIC_INNER_PRODUCT);
    fill(*index, x); // by one thread: a graph depends on their number
    fill(*floats, x);
    const auto many = near_vectors(x, 300, d, 0.02f, 7);
    const auto found = search(*index, many, 10);
    const auto found_floats = search(*floats, many, 10);
    const Ranges ranges =
            can.range_search ? range_search(*floats, many, 20) : Ranges();
    for (int nthreads : {2, 5}) {
        Threads threads(nthreads);
        expect_same(search(*index, many, 10), found);
        expect_same(search(*floats, many, 10), found_floats);
        if (can.range_search) {
            EXPECT_EQ(range_search(*floats, many, 20), ranges);
        }
        const auto again = make_binary();
        fill(*again, x);
        EXPECT_EQ(search(*again, x, 1).distances, std::vector<int32_t>(n, 0));
    }
}

TEST_P(EachStorage, AddWithIds) {
    const auto codes = codes_of(*make_hash(), x);
    const idx_t half = n / 2;
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 1000 + i;
    }
    const auto index = make_binary();
    const auto same = make_binary();
    const auto floats = make_float();
    index->train(n, x.data());
    same->train(n, codes.data());
    floats->train(n, x.data());
    if (!can.add_with_ids) {
        EXPECT_TRUE(
                throws([&] { index->add_with_ids(n, x.data(), ids.data()); }));
        EXPECT_TRUE(throws(
                [&] { same->add_with_ids(n, codes.data(), ids.data()); }));
        EXPECT_TRUE(
                throws([&] { floats->add_with_ids(n, x.data(), ids.data()); }));
        EXPECT_EQ(index->ntotal, 0);
        EXPECT_EQ(same->ntotal, 0);
        EXPECT_EQ(floats->ntotal, 0);
        return;
    }
    for (idx_t begin : {idx_t(0), half}) {
        const idx_t count = begin == 0 ? half : n - half;
        const idx_t* some = ids.data() + begin;
        index->add_with_ids(count, x.data() + begin * d, some);
        same->add_with_ids(count, codes.data() + begin * code_size, some);
        floats->add_with_ids(count, x.data() + begin * d, some);
    }
    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(same->ntotal, n);
    EXPECT_EQ(floats->ntotal, n);
    auto expected = search(*bare(x), codes_of(*make_hash(), q), 5);
    for (idx_t& id : expected.labels) {
        id += id < 0 ? 0 : 1000;
    }
    expect_same(search(*index, q, 5), expected);
    expect_same(search(*same, q, 5), expected);
    EXPECT_EQ(search(*floats, q, 5).labels, expected.labels);
}

TEST_P(EachStorage, RemoveIds) {
    const auto index = make_binary();
    const auto floats = make_float();
    fill(*index, x);
    fill(*floats, x);
    const auto before = search(*index, q, 10);
    faiss::IDSelectorRange some(100, 350);
    if (!can.remove_ids) {
        EXPECT_TRUE(throws([&] { index->remove_ids(some); }));
        EXPECT_TRUE(throws([&] { floats->remove_ids(some); }));
        EXPECT_EQ(index->ntotal, n);
        EXPECT_EQ(floats->ntotal, n);
        expect_same(search(*index, q, 10), before);
        return;
    }
    EXPECT_EQ(index->remove_ids(some), 250u);
    EXPECT_EQ(floats->remove_ids(some), 250u);
    EXPECT_EQ(index->ntotal, n - 250);
    EXPECT_EQ(index->storage->ntotal, n - 250);
    EXPECT_EQ(floats->ntotal, n - 250);
    const auto alone = bare(x);
    alone->remove_ids(some);
    const auto expected = search(*alone, codes_of(*make_hash(), q), 10);
    EXPECT_NE(expected.labels, before.labels);
    expect_same(search(*index, q, 10), expected);
    EXPECT_EQ(search(*floats, q, 10).labels, expected.labels);
}

TEST_P(EachStorage, Merge) {
    const auto index = make_binary(), other = make_binary();
    const auto floats = make_float(), other_floats = make_float();
    fill(*index, x);
    fill(*other, x);
    fill(*floats, x);
    fill(*other_floats, x);
    const auto before = search(*index, q, 10);
    if (!can.merge) {
        EXPECT_TRUE(throws([&] { index->check_compatible_for_merge(*other); }));
        EXPECT_TRUE(throws([&] { index->merge_from(*other); }));
        EXPECT_TRUE(throws([&] { floats->merge_from(*other_floats); }));
        EXPECT_EQ(index->ntotal, n);
        EXPECT_EQ(other->ntotal, n);
        EXPECT_EQ(floats->ntotal, n);
        EXPECT_EQ(other_floats->ntotal, n);
        expect_same(search(*index, q, 10), before);
        expect_same(search(*other, q, 10), before);
        return;
    }
    index->check_compatible_for_merge(*other);
    index->merge_from(*other, n);
    floats->merge_from(*other_floats, n);
    EXPECT_EQ(index->ntotal, 2 * n);
    EXPECT_EQ(floats->ntotal, 2 * n);
    EXPECT_EQ(other->ntotal, 0);
    EXPECT_EQ(other_floats->ntotal, 0);
    const auto found = search(*index, q, 20);
    const auto found_floats = search(*floats, q, 20);
    for (idx_t i = 0; i < nq; i++) {
        for (idx_t j = 0; j < 20; j++) { // each distance is there twice
            const auto distance = before.distances[i * 10 + j / 2];
            EXPECT_EQ(found.distances[i * 20 + j], distance);
            EXPECT_EQ(found_floats.distances[i * 20 + j], distance);
        }
    }
}

TEST_P(EachStorage, Selectors) {
    const auto index = make_binary();
    const auto floats = make_float();
    fill(*index, x);
    fill(*floats, x);
    faiss::IDSelectorRange first_ten(0, 10);
    faiss::SearchParameters params;
    params.sel = &first_ten;
    if (!can.selector) {
        EXPECT_TRUE(throws([&] { search(*index, q, 5, &params); }));
        EXPECT_TRUE(throws([&] { search(*floats, q, 5, &params); }));
        return;
    }
    const auto ten = bare(rows(x, d, 0, 10));
    const auto expected = search(*ten, codes_of(*make_hash(), q), 5);
    expect_same(search(*index, q, 5, &params), expected);
    expect_same(
            search(*index, codes_of(*make_hash(), q), 5, &params), expected);
    EXPECT_EQ(search(*floats, q, 5, &params).labels, expected.labels);
    EXPECT_EQ(
            sorted(range_search(*floats, q, 65, &params)),
            sorted(range_search(*ten, codes_of(*make_hash(), q), 65)));
}

TEST_P(EachStorage, RangeSearchWhereThereIsNone) {
    if (can.range_search) {
        return;
    }
    const auto index = make_binary();
    const auto floats = make_float();
    fill(*index, x);
    fill(*floats, x);
    EXPECT_TRUE(throws([&] { range_search(*index, q, 3); }));
    EXPECT_TRUE(throws([&] { range_search(*floats, q, 3); }));
}

TEST_P(EachStorage, Reconstruct) {
    const auto codes = codes_of(*make_hash(), x);
    const auto index = make_binary();
    const auto floats = make_float();
    fill(*index, x);
    fill(*floats, x);
    std::vector<uint8_t> one(code_size);
    if (can.reconstruct) {
        for (idx_t id : {0, 17, 599}) {
            index->reconstruct(id, one.data());
            EXPECT_EQ(one, rows(codes, code_size, id, id + 1));
        }
    } else {
        EXPECT_TRUE(throws([&] { index->reconstruct(17, one.data()); }));
    }
    // codes cannot be turned into vectors
    std::vector<float> vector(d);
    EXPECT_TRUE(throws([&] { floats->reconstruct(17, vector.data()); }));
}

TEST_P(EachStorage, ReconstructSeveral) {
    // codes follow each other without gaps
    const auto codes = codes_of(*make_hash(), x);
    const auto index = make_binary();
    index->train(n, x.data());
    index->add(n, x.data());
    std::vector<uint8_t> back(20 * nbits, 0xa5);
    const auto reconstruct = [&] { index->reconstruct_n(30, 20, back.data()); };
    const bool can_do = can.reconstruct || std::string(can.name) == "BIVF8";
    if (!can_do) {
        EXPECT_TRUE(throws(reconstruct));
        return;
    }
    reconstruct();
    EXPECT_EQ(rows(back, code_size, 0, 20), rows(codes, code_size, 30, 50));
    // and nothing is written behind them
    EXPECT_EQ(
            std::vector<uint8_t>(back.begin() + 20 * code_size, back.end()),
            std::vector<uint8_t>(20 * (nbits - code_size), 0xa5));
}

TEST_P(EachStorage, ResetAndAddFewer) {
    const auto few = rows(x, d, 200, 250);
    const auto near_few = near_vectors(few, nq, d, 0.02f, 3);
    const auto alone = make_storage();
    const auto codes = codes_of(*make_hash(), x);
    alone->train(n, codes.data());
    alone->add(50, codes_of(*make_hash(), few).data());
    const auto expected = search(*alone, codes_of(*make_hash(), near_few), 10);

    const auto index = make_binary();
    const auto floats = make_float();
    index->train(n, x.data());
    floats->train(n, x.data());
    for (int round = 0; round < 3; round++) {
        index->add(n, x.data());
        floats->add(n, x.data());
        index->reset();
        floats->reset();
        EXPECT_EQ(index->ntotal, 0);
        EXPECT_EQ(floats->ntotal, 0);
        EXPECT_EQ(index->storage->ntotal, 0);
        EXPECT_TRUE(index->is_trained);
        EXPECT_EQ(
                search(*index, near_few, 4).labels,
                std::vector<idx_t>(nq * 4, -1));
        EXPECT_EQ(
                search(*floats, near_few, 4).distances,
                std::vector<float>(nq * 4, max_float));
    }
    index->add(50, few.data());
    floats->add(50, few.data());
    EXPECT_EQ(index->ntotal, 50);
    const auto found = search(*index, near_few, 10);
    const auto found_floats = search(*floats, near_few, 10);
    if (std::string(can.name) == "BHNSW16") {
        // the levels of a graph are drawn anew
        for (idx_t i = 0; i < nq; i++) {
            EXPECT_EQ(found.distances[i * 10], expected.distances[i * 10]);
            EXPECT_EQ(found_floats.distances[i * 10], found.distances[i * 10]);
        }
    } else {
        expect_same(found, expected);
        EXPECT_EQ(found_floats.labels, expected.labels);
    }
}

TEST_P(EachStorage, BadVectorsChangeNothing) {
    const auto index = make_binary();
    const auto floats = make_float();
    index->train(n, x.data());
    index->add(n, x.data());
    floats->train(n, x.data());
    floats->add(n, x.data());
    const auto before = search(*index, q, 10);
    const auto before_floats = search(*floats, q, 10);
    std::vector<idx_t> ids(nq, 5);
    for (float bad : {nan_value, inf, -inf}) {
        std::vector<float> y = q;
        y[3 * d + 5] = bad;
        EXPECT_TRUE(throws([&] { index->add(nq, y.data()); }, "vector 3"));
        EXPECT_TRUE(
                throws([&] { index->add_with_ids(nq, y.data(), ids.data()); }));
        EXPECT_TRUE(throws([&] { index->train(nq, y.data()); }, "vector 3"));
        EXPECT_TRUE(throws([&] { search(*index, y, 2); }, "vector 3"));
        EXPECT_TRUE(throws([&] { range_search(*index, y, 2); }, "vector 3"));
        EXPECT_TRUE(throws([&] { floats->add(nq, y.data()); }, "vector 3"));
        EXPECT_TRUE(throws(
                [&] { floats->add_with_ids(nq, y.data(), ids.data()); }));
        EXPECT_TRUE(throws([&] { floats->train(nq, y.data()); }, "vector 3"));
        EXPECT_TRUE(throws([&] { search(*floats, y, 2); }, "vector 3"));
        EXPECT_TRUE(throws([&] { range_search(*floats, y, 2); }, "vector 3"));
        std::vector<uint8_t> codes(nq * code_size);
        EXPECT_TRUE(
                throws([&] { floats->sa_encode(nq, y.data(), codes.data()); },
                       "vector 3"));
    }
    const float* no_floats = nullptr;
    const uint8_t* no_codes = nullptr;
    std::vector<int32_t> out(nq * 10);
    std::vector<float> out_floats(nq * 10);
    std::vector<idx_t> labels(nq * 10);
    EXPECT_TRUE(throws([&] { index->add(3, no_floats); }, "null"));
    EXPECT_TRUE(throws([&] { index->add(3, no_codes); }, "null"));
    EXPECT_TRUE(throws([&] { index->train(3, no_floats); }, "null"));
    EXPECT_TRUE(throws([&] { index->train(3, no_codes); }, "null"));
    EXPECT_TRUE(throws([&] { index->add(-1, x.data()); }));
    EXPECT_TRUE(throws([&] {
        index->add(-1, reinterpret_cast<const uint8_t*>(x.data()));
    }));
    EXPECT_TRUE(throws(
            [&] { index->search(3, no_codes, 2, out.data(), labels.data()); },
            "null"));
    EXPECT_TRUE(throws([&] { floats->add(3, nullptr); }, "null"));
    EXPECT_TRUE(throws([&] { floats->add(-1, x.data()); }));
    for (idx_t k : {0, -5}) {
        EXPECT_TRUE(throws(
                [&] {
                    index->search(nq, q.data(), k, out.data(), labels.data());
                },
                "expected a positive number"));
        EXPECT_TRUE(throws(
                [&] {
                    floats->search(
                            nq, q.data(), k, out_floats.data(), labels.data());
                },
                "expected a positive number"));
    }
    EXPECT_TRUE(throws([&] { range_search(*floats, q, nan_value); }, "NaN"));

    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(floats->ntotal, n);
    EXPECT_TRUE(index->is_trained && floats->is_trained);
    expect_same(search(*index, q, 10), before);
    expect_same(search(*floats, q, 10), before_floats);
    index->add(nq, q.data());
    floats->add(nq, q.data());
    EXPECT_EQ(index->ntotal, n + nq);
    EXPECT_EQ(floats->ntotal, n + nq);
}

TEST_P(EachStorage, DistanceComputer) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto index = make_float(metric);
        fill(*index, x);
        std::unique_ptr<faiss::DistanceComputer> computer;
        const std::string error = error_of(
                [&] { computer.reset(index->get_distance_computer()); });
        // one that cannot tell distances must not be handed out: FAISS asks it
        // for them where no exception can pass
        EXPECT_EQ(error.empty(), can.distances) << error;
        if (!computer) {
            continue;
        }
        const auto all = search(*make_float_index(metric, x), q, n);
        for (idx_t i = 0; i < nq; i++) {
            computer->set_query(&q[i * d]);
            for (idx_t j = 0; j < n; j++) {
                EXPECT_EQ(
                        (*computer)(all.labels[i * n + j]),
                        all.distances[i * n + j]);
            }
        }
        const auto among =
                search(*make_float_index(metric, x), rows(x, d, 5, 6), n);
        for (idx_t j = 0; j < n; j++) {
            EXPECT_EQ(
                    computer->symmetric_dis(5, among.labels[j]),
                    among.distances[j]);
        }
    }
}

TEST_P(EachStorage, RefinesShorterCodes) {
    if (!can.distances) {
        return;
    }
    faiss::IndexRefine refine(
            owning<IndexKernelHash>(
                    std::make_unique<ShiftInvariantHash>(
                            d, 16, GaussianKernel(0.2)),
                    std::make_unique<faiss::IndexBinaryFlat>(16))
                    .release(),
            make_float().release());
    refine.own_fields = refine.own_refine_index = true;
    refine.train(n, x.data());
    refine.add(n, x.data());
    refine.k_factor = float(n) / 5;
    const auto flat = make_float_index(faiss::METRIC_L2, x);
    EXPECT_EQ(search(refine, q, 5).distances, search(*flat, q, 5).distances);
    // a bad query is an exception
    auto bad = q;
    bad[40] = nan_value;
    EXPECT_TRUE(throws([&] { search(refine, bad, 5); }));
}

TEST_P(EachStorage, TrainsHashAndStorage) {
    const auto untrained_hash = [] {
        return std::make_unique<ShiftInvariantHash>(d, nbits, GaussianKernel());
    };
    const auto index =
            owning<IndexBinaryKernelHash>(untrained_hash(), make_storage());
    const auto floats =
            owning<IndexKernelHash>(untrained_hash(), make_storage());
    EXPECT_FALSE(index->is_trained);
    EXPECT_FALSE(floats->is_trained);
    EXPECT_TRUE(throws([&] { index->add(n, x.data()); }, "train"));
    EXPECT_TRUE(throws([&] { search(*index, q, 2); }, "train"));
    EXPECT_TRUE(throws([&] { range_search(*index, q, 2); }, "train"));
    EXPECT_TRUE(throws([&] { floats->add(n, x.data()); }, "train"));
    EXPECT_TRUE(throws([&] { search(*floats, q, 2); }, "train"));
    EXPECT_TRUE(throws([&] { range_search(*floats, q, 2); }, "train"));
    EXPECT_EQ(index->ntotal, 0);
    EXPECT_TRUE(throws([&] { index->train(1, x.data()); }));
    EXPECT_FALSE(index->is_trained);

    index->train(n, x.data());
    floats->train(n, x.data());
    EXPECT_TRUE(index->is_trained && index->hash->is_trained);
    EXPECT_TRUE(index->storage->is_trained);
    EXPECT_TRUE(floats->is_trained);
    const auto alone_hash = untrained_hash();
    alone_hash->train(n, x.data());
    EXPECT_EQ(codes_of(*index->hash, q), codes_of(*alone_hash, q));
    EXPECT_EQ(codes_of(*floats->hash, q), codes_of(*alone_hash, q));

    const auto alone = make_storage();
    const auto codes = codes_of(*alone_hash, x);
    alone->train(n, codes.data());
    alone->add(n, codes.data());
    index->add(n, x.data());
    const auto found = search(*index, q, 10);
    expect_same(found, search(*alone, codes_of(*alone_hash, q), 10));

    // a second training does not touch what is trained
    index->train(50, x.data());
    expect_same(search(*index, q, 10), found);
}

TEST_P(EachStorage, AddBeforeTraining) {
    if (!can.needs_training) {
        return;
    }
    const auto codes = codes_of(*make_hash(), x);
    const auto index = make_binary();
    const auto floats = make_float();
    EXPECT_TRUE(index->hash->is_trained);
    EXPECT_FALSE(index->is_trained);
    EXPECT_TRUE(throws([&] { index->add(n, x.data()); }, "train"));
    EXPECT_TRUE(throws([&] { index->add(n, codes.data()); }, "train"));
    EXPECT_TRUE(throws([&] { search(*index, codes, 2); }, "train"));
    EXPECT_TRUE(throws([&] { range_search(*index, codes, 2); }, "train"));
    EXPECT_TRUE(throws([&] { floats->add(n, x.data()); }, "train"));
    EXPECT_TRUE(throws([&] { search(*floats, q, 2); }, "train"));
    // too few vectors for eight lists
    EXPECT_TRUE(throws([&] { index->train(3, x.data()); }));
    EXPECT_FALSE(index->is_trained);
    EXPECT_TRUE(throws([&] { floats->train(3, x.data()); }));
    EXPECT_FALSE(floats->is_trained);
    index->train(n, codes.data());
    EXPECT_TRUE(index->is_trained);
    index->add(n, codes.data());
    EXPECT_EQ(index->ntotal, n);
}

TEST_P(EachStorage, TrainingThatFails) {
    // three vectors are enough for the hash, but not for eight lists
    if (!can.needs_training) {
        return;
    }
    const auto index = owning<IndexKernelHash>(
            std::make_unique<ShiftInvariantHash>(d, nbits, GaussianKernel()),
            make_storage());
    EXPECT_TRUE(throws([&] { index->train(3, x.data()); }));
    EXPECT_FALSE(index->is_trained);
    EXPECT_TRUE(throws([&] { index->add(n, x.data()); }, "train"));
    // and the next training is not influenced
    index->train(n, x.data());
    ShiftInvariantHash alone(d, nbits, GaussianKernel());
    alone.train(n, x.data());
    EXPECT_EQ(codes_of(*index->hash, q), codes_of(alone, q));
}

TEST_P(EachStorage, WrapsAFilledStorage) {
    auto storage = bare(x);
    const auto expected = search(*storage, codes_of(*make_hash(), q), 10);
    const auto index =
            owning<IndexBinaryKernelHash>(make_hash(), std::move(storage));
    const auto floats = owning<IndexKernelHash>(make_hash(), bare(x));
    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(floats->ntotal, n);
    EXPECT_TRUE(index->is_trained);
    EXPECT_TRUE(floats->is_trained);
    expect_same(search(*index, q, 10), expected);
    EXPECT_EQ(search(*floats, q, 10).labels, expected.labels);
}

TEST_P(EachStorage, MergeOfWhatDoesNotFit) {
    const auto index = make_binary();
    const auto floats = make_float();
    index->train(n, x.data());
    index->add(n, x.data());
    floats->train(n, x.data());
    floats->add(n, x.data());
    const auto other = make_binary(2); // another seed, other codes
    other->train(n, x.data());
    EXPECT_TRUE(throws([&] { index->merge_from(*other); }, "seeds"));
    EXPECT_TRUE(throws([&] { index->check_compatible_for_merge(*other); }));
    EXPECT_TRUE(throws([&] { index->merge_from(*index->storage); }, "another"));
    const auto other_floats = make_float(faiss::METRIC_L2, 2);
    other_floats->train(n, x.data());
    EXPECT_TRUE(throws([&] { floats->merge_from(*other_floats); }, "seeds"));
    const auto other_metric = make_float(faiss::METRIC_INNER_PRODUCT);
    other_metric->train(n, x.data());
    EXPECT_TRUE(throws([&] { floats->merge_from(*other_metric); }, "metric"));
    faiss::IndexFlat flat(d);
    EXPECT_TRUE(throws([&] { floats->merge_from(flat); }, "another"));
    EXPECT_EQ(index->ntotal, n);
    EXPECT_EQ(floats->ntotal, n);
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

template <class HashIndex>
void check_merge() {
    const auto x = random_vectors(n, d, 30), q = random_vectors(nq, d, 31);
    const auto make = [&](int64_t seed, idx_t begin, idx_t end) {
        auto index = owning<HashIndex>(
                make_hash(seed), std::make_unique<MergingStorage>());
        index->add(end - begin, x.data() + begin * d);
        return index;
    };
    const auto a = make(1, 0, 200), b = make(1, 200, n), all = make(1, 0, n);
    const auto strange = make(2, 0, 10);
    const auto flat = owning<HashIndex>(
            make_hash(), std::make_unique<faiss::IndexBinaryFlat>(nbits));
    const auto found = search(*all, q, 10);
    EXPECT_TRUE(throws([&] { a->merge_from(*strange); }, "seeds"));
    EXPECT_TRUE(throws([&] { a->merge_from(*flat); }, "no MergingStorage"));
    EXPECT_TRUE(throws([&] { a->merge_from(*b, 5); }, "ids"));
    EXPECT_EQ(a->ntotal, 200);
    EXPECT_EQ(b->ntotal, n - 200);
    EXPECT_EQ(strange->ntotal, 10);
    a->check_compatible_for_merge(*b);
    a->merge_from(*b);
    EXPECT_EQ(a->ntotal, n);
    EXPECT_EQ(b->ntotal, 0);
    EXPECT_EQ(b->storage->ntotal, 0);
    expect_same(search(*a, q, 10), found);
}

TEST(IndexBinaryKernelHash, Merge) {
    check_merge<IndexBinaryKernelHash>();
}

TEST(IndexKernelHash, Merge) {
    check_merge<IndexKernelHash>();
}

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

template <class HashIndex>
void check_ownership() {
    ASSERT_EQ(hashes_alive, 0);
    {
        CountedHash hash;
        CountedStorage storage;
        {
            HashIndex index(&hash, &storage);
            EXPECT_FALSE(index.own_fields);
            const std::vector<float> one = {1, -1, 1, 1, -1, -1, -1, 1};
            index.add(1, one.data());
            EXPECT_EQ(storage.ntotal, 1);
        }
        EXPECT_EQ(hashes_alive, 1);
        EXPECT_EQ(storages_alive, 1);
        uint8_t code;
        storage.reconstruct(0, &code);
        EXPECT_EQ(code, 0b10001101);
    }
    {
        HashIndex index(new CountedHash, new CountedStorage);
        index.own_fields = true;
        EXPECT_EQ(hashes_alive, 1);
        EXPECT_EQ(storages_alive, 1);
    }
    EXPECT_EQ(hashes_alive, 0);
    EXPECT_EQ(storages_alive, 0);

    // parts that do not fit stay the caller's
    CountedHash hash;
    CountedStorage storage;
    faiss::IndexBinaryFlat wide(16);
    EXPECT_TRUE(throws([&] { HashIndex(&hash, &wide); }, "8 bits"));
    EXPECT_TRUE(throws([&] { HashIndex(nullptr, &storage); }, "null"));
    EXPECT_TRUE(throws([&] { HashIndex(&hash, nullptr); }, "null"));
    EXPECT_TRUE(throws([&] { HashIndex(nullptr, nullptr); }, "null"));
    EXPECT_EQ(hashes_alive, 1);
    EXPECT_EQ(storages_alive, 1);
}

TEST(IndexBinaryKernelHash, Ownership) {
    check_ownership<IndexBinaryKernelHash>();
}

TEST(IndexKernelHash, Ownership) {
    check_ownership<IndexKernelHash>();
}

TEST(IndexBinaryKernelHash, InAnIDMap) {
    const auto x = random_vectors(n, d, 4);
    const auto codes = codes_of(*make_hash(), x);
    const auto index = owning<IndexBinaryKernelHash>(
            make_hash(), std::make_unique<faiss::IndexBinaryFlat>(nbits));
    faiss::IndexBinaryIDMap2 map(index.get());
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 3 * i + 7;
    }
    map.add_with_ids(n, codes.data(), ids.data());
    const auto found = search(map, rows(codes, code_size, 0, 20), 3);
    auto expected = search(*index, rows(codes, code_size, 0, 20), 3);
    for (idx_t& id : expected.labels) {
        id = 3 * id + 7;
    }
    expect_same(found, expected);
    std::vector<uint8_t> one(code_size);
    map.reconstruct(3 * 5 + 7, one.data());
    EXPECT_EQ(one, rows(codes, code_size, 5, 6));
}

// Only the float index.

TEST(IndexKernelHash, Metrics) {
    auto hash = make_hash();
    auto storage = std::make_unique<faiss::IndexBinaryFlat>(nbits);
    for (auto metric : {faiss::METRIC_L1, faiss::METRIC_Canberra}) {
        EXPECT_TRUE(throws(
                [&] { IndexKernelHash(hash.get(), storage.get(), metric); },
                "metric"));
    }
}

/// Codes at every Hamming distance from that of one vector, 0 to nbits.
std::unique_ptr<IndexKernelHash> ladder(
        faiss::MetricType metric,
        const std::vector<float>& query) {
    auto hash = make_hash();
    const auto code = codes_of(*hash, query);
    auto storage = std::make_unique<faiss::IndexBinaryFlat>(nbits);
    for (int hamming = 0; hamming <= nbits; hamming++) {
        auto other = code;
        for (int bit = 0; bit < hamming; bit++) {
            other[bit / 8] ^= 1 << bit % 8;
        }
        storage->add(1, other.data());
    }
    return owning<IndexKernelHash>(std::move(hash), std::move(storage), metric);
}

TEST(IndexKernelHash, DistancesOfBothMetrics) {
    const auto q = random_vectors(1, d, 5);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const bool is_distance = metric == faiss::METRIC_L2;
        const auto index = ladder(metric, q);
        ASSERT_EQ(index->ntotal, nbits + 1);
        const auto found = search(*index, q, nbits + 3);
        for (int i = 0; i <= nbits; i++) {
            EXPECT_EQ(found.labels[i], i);
            EXPECT_EQ(found.distances[i], is_distance ? i : nbits - 2 * i);
        }
        for (int i = nbits + 1; i < nbits + 3; i++) {
            EXPECT_EQ(found.labels[i], -1);
            EXPECT_EQ(found.distances[i], is_distance ? max_float : -max_float);
        }
    }
}

TEST(IndexKernelHash, RangeSearchAtEveryRadius) {
    const auto q = random_vectors(1, d, 6);
    std::vector<float> radii = {
            inf, -inf, max_float, -max_float, 1e10f, -1e10f, 1e-30f, -1e-30f};
    for (int i = -70; i <= 70; i++) {
        for (float r : {float(i), i + 0.25f, i + 0.5f, i + 0.75f}) {
            radii.push_back(r);
        }
        radii.push_back(std::nextafter(float(i), inf));
        radii.push_back(std::nextafter(float(i), -inf));
    }
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto index = ladder(metric, q);
        for (float radius : radii) {
            Ranges expected(1);
            for (int i = 0; i <= nbits; i++) {
                if (metric == faiss::METRIC_L2) {
                    if (i < radius) {
                        expected[0].emplace_back(i, i);
                    }
                } else if (nbits - 2 * i > radius) {
                    expected[0].emplace_back(i, nbits - 2 * i);
                }
            }
            EXPECT_EQ(sorted(range_search(*index, q, radius)), expected)
                    << radius;
        }
    }
}

TEST(IndexKernelHash, RangeSearchOfNothing) {
    const auto index = make_float_index();
    const auto q = random_vectors(3, d, 7);
    EXPECT_EQ(total_size(range_search(*index, q, inf)), 0u);
    EXPECT_TRUE(range_search(*index, {}, inf).empty());
}

TEST(IndexKernelHash, StandaloneCodec) {
    const auto index = make_float_index();
    const auto x = random_vectors(30, d, 8);
    ASSERT_EQ(index->sa_code_size(), size_t(code_size));
    std::vector<uint8_t> codes(30 * code_size);
    index->sa_encode(30, x.data(), codes.data());
    EXPECT_EQ(codes, codes_of(*make_hash(), x));

    // bits as FAISS packs them
    std::vector<float> margins(30 * nbits);
    index->hash->apply_noalloc(30, x.data(), margins.data());
    std::vector<uint8_t> packed(codes.size());
    for (size_t i = 0; i < margins.size(); i++) {
        packed[i / 8] |= (margins[i] >= 0) << i % 8;
    }
    EXPECT_EQ(codes, packed);

    std::vector<float> back(30 * d);
    EXPECT_TRUE(
            throws([&] { index->sa_decode(30, codes.data(), back.data()); }));
    EXPECT_EQ(index->ntotal, 0);
}

TEST(IndexKernelHash, IVFSearchParameters) {
    if (is_faiss_1_7) {
        GTEST_SKIP() << "this FAISS's binary indexes take no parameters";
    }
    const auto x = random_vectors(n, d, 9), q = random_vectors(nq, d, 10);
    auto storage = std::make_unique<faiss::IndexBinaryIVF>(
            new faiss::IndexBinaryFlat(nbits), nbits, 8);
    storage->own_fields = true;
    const auto index = owning<IndexKernelHash>(make_hash(), std::move(storage));
    index->train(n, x.data());
    index->add(n, x.data());
    faiss::IVFSearchParameters params;
    params.nprobe = 8;
    const auto flat = make_float_index(faiss::METRIC_L2, x);
    EXPECT_NE(search(*index, q, 5).distances, search(*flat, q, 5).distances);
    EXPECT_EQ(
            search(*index, q, 5, &params).distances,
            search(*flat, q, 5).distances);
}

TEST(IndexKernelHash, InIDMaps) {
    const auto x = random_vectors(n, d, 11);
    const auto q = near_vectors(x, nq, d, 0.02f, 12);
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 1000000007LL * (i + 1);
    }
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto plain = make_float_index(metric, x);
        auto expected = search(*plain, q, 8);
        for (idx_t& id : expected.labels) {
            id = ids[id];
        }
        const float radius = expected.distances[7];
        Ranges expected_ranges = range_search(*plain, q, radius);
        for (auto& range : expected_ranges) {
            for (auto& [id, distance] : range) {
                id = ids[id];
            }
        }
        EXPECT_GT(total_size(expected_ranges), 0u);

        const auto sub = make_float_index(metric),
                   sub2 = make_float_index(metric);
        faiss::IndexIDMap map(sub.get());
        faiss::IndexIDMap2 map2(sub2.get());
        EXPECT_EQ(map.metric_type, metric);
        for (faiss::IndexIDMap* m :
             {&map, static_cast<faiss::IndexIDMap*>(&map2)}) {
            m->add_with_ids(n, x.data(), ids.data());
            expect_same(search(*m, q, 8), expected);
            EXPECT_EQ(range_search(*m, q, radius), expected_ranges);

            // a bad vector changes neither the ids nor the codes
            auto bad = rows(x, d, 0, 5);
            bad[4 * d] = nan_value;
            EXPECT_TRUE(throws(
                    [&] { m->add_with_ids(5, bad.data(), ids.data()); }));
            EXPECT_EQ(m->ntotal, n);
            EXPECT_EQ(m->id_map.size(), size_t(n));
            EXPECT_EQ(m->index->ntotal, n);
            expect_same(search(*m, q, 8), expected);
        }
        EXPECT_EQ(map2.rev_map.size(), size_t(n));
        std::vector<float> vector(d);
        EXPECT_TRUE(throws([&] { map2.reconstruct(ids[3], vector.data()); }));

        // removed vectors are not found any more, the others keep their ids
        faiss::IDSelectorRange low(0, ids[300]);
        EXPECT_EQ(map2.remove_ids(low), 300u);
        EXPECT_EQ(map2.ntotal, 300);
        EXPECT_EQ(sub2->ntotal, 300);
        const auto half = make_float_index(metric, rows(x, d, 300, n));
        auto rest = search(*half, q, 8);
        for (idx_t& id : rest.labels) {
            id = ids[id + 300];
        }
        expect_same(search(map2, q, 8), rest);
        map2.check_consistency();
        map2.reset();
        EXPECT_EQ(sub2->ntotal, 0);
    }
}

TEST(IndexKernelHash, InRefine) {
    const auto x = random_vectors(n, d, 13);
    const auto q = near_vectors(x, nq, d, 0.1f, 14);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto base = make_float_index(metric);
        faiss::IndexFlat flat(d, metric);
        faiss::IndexRefine refine(base.get(), &flat);
        refine.add(n, x.data());
        EXPECT_EQ(base->ntotal, n);
        refine.k_factor = 6;
        const auto candidates = search(*base, q, 60);
        const auto found = search(refine, q, 10);
        // the best ten of the sixty nearest in Hamming distance
        for (idx_t i = 0; i < nq; i++) {
            std::vector<std::pair<float, idx_t>> all;
            for (idx_t j = 0; j < 60; j++) {
                const idx_t id = candidates.labels[i * 60 + j];
                float v = 0;
                for (int c = 0; c < d; c++) {
                    const float a = q[i * d + c], b = x[id * d + c];
                    v += metric == faiss::METRIC_L2 ? (a - b) * (a - b)
                                                    : -a * b;
                }
                all.emplace_back(v, id);
            }
            std::sort(all.begin(), all.end());
            for (idx_t j = 0; j < 10; j++) {
                EXPECT_EQ(found.labels[i * 10 + j], all[j].second);
            }
        }
        refine.k_factor = float(n) / 10;
        EXPECT_EQ(search(refine, q, 10).labels, search(flat, q, 10).labels);
        refine.reset();
        EXPECT_EQ(base->ntotal, 0);
    }

    // the metrics must agree
    const auto base = make_float_index(faiss::METRIC_L2);
    faiss::IndexFlat flat(d, faiss::METRIC_INNER_PRODUCT);
    EXPECT_TRUE(throws([&] { faiss::IndexRefine(base.get(), &flat); }));
}

TEST(IndexKernelHash, BehindTransformations) {
    const auto x = random_vectors(n, d, 15), q = random_vectors(nq, d, 16);
    const auto train_and_compare = [&](faiss::VectorTransform& transform) {
        const auto index = owning<IndexKernelHash>(
                std::make_unique<ShiftInvariantHash>(
                        transform.d_out, nbits, GaussianKernel()),
                std::make_unique<faiss::IndexBinaryFlat>(nbits));
        faiss::IndexPreTransform pre(&transform, index.get());
        EXPECT_EQ(pre.d, d);
        EXPECT_FALSE(pre.is_trained);
        pre.train(n, x.data());
        EXPECT_TRUE(pre.is_trained);
        EXPECT_TRUE(index->hash->is_trained);
        pre.add(n, x.data());

        std::unique_ptr<const float[]> xt(transform.apply(n, x.data()));
        std::unique_ptr<const float[]> qt(transform.apply(nq, q.data()));
        const std::vector<float> transformed(
                qt.get(), qt.get() + nq * transform.d_out);
        ShiftInvariantHash hash(transform.d_out, nbits, GaussianKernel());
        hash.train(n, xt.get());
        faiss::IndexBinaryFlat flat(nbits);
        std::vector<uint8_t> codes(n * code_size);
        hash.encode(n, xt.get(), codes.data());
        flat.add(n, codes.data());
        const auto found = search(pre, q, 10);
        const auto expected = search(flat, codes_of(hash, transformed), 10);
        EXPECT_EQ(found.labels, expected.labels);
        EXPECT_EQ(
                found.distances,
                std::vector<float>(
                        expected.distances.begin(), expected.distances.end()));
        EXPECT_GT(total_size(range_search(pre, q, 20)), 0u);
        // sa_encode goes through the transformation
        ASSERT_EQ(pre.sa_code_size(), size_t(code_size));
        std::vector<uint8_t> sa_codes(n * code_size);
        pre.sa_encode(n, x.data(), sa_codes.data());
        EXPECT_EQ(sa_codes, codes);
    };
    faiss::PCAMatrix pca(d, 7);
    train_and_compare(pca);
    faiss::RandomRotationMatrix rotation(d, 20);
    train_and_compare(rotation);
}

/// Labels may differ among equals; each must be at its distance.
void expect_same_up_to_ties(
        const Found<float>& found,
        const Found<float>& expected,
        const IndexKernelHash& index,
        const std::vector<float>& q) {
    EXPECT_EQ(found.distances, expected.distances);
    const auto all = search(index, q, index.ntotal);
    const idx_t k = found.labels.size() / (q.size() / d);
    for (size_t i = 0; i < found.labels.size(); i++) {
        const auto row = all.labels.begin() + i / k * index.ntotal;
        const auto at =
                std::find(row, row + index.ntotal, found.labels[i]) - row;
        ASSERT_LT(at, index.ntotal);
        EXPECT_EQ(all.distances[i / k * index.ntotal + at], found.distances[i]);
    }
}

TEST(IndexKernelHash, InShards) {
    const auto x = random_vectors(n, d, 17), q = random_vectors(nq, d, 18);
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = i;
    }
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto whole = make_float_index(metric, x);
        const auto expected = search(*whole, q, 10);
        for (bool threaded : {false, true}) {
            {
                std::vector<std::unique_ptr<IndexKernelHash>> parts;
                faiss::IndexShards shards(d, threaded, true);
                for (int i = 0; i < 3; i++) {
                    parts.push_back(make_float_index(metric));
                    shards.addIndex(parts.back().get());
                }
                shards.add(n, x.data());
                EXPECT_EQ(shards.ntotal, n);
                EXPECT_EQ(parts[1]->ntotal, n / 3);
                expect_same_up_to_ties(
                        search(shards, q, 10), expected, *whole, q);
                EXPECT_TRUE(throws([&] {
                    std::vector<float> bad(d, nan_value);
                    search(shards, bad, 1);
                }));
            }
            {
                // ids of their own
                std::vector<std::unique_ptr<IndexKernelHash>> parts;
                std::vector<std::unique_ptr<faiss::IndexIDMap2>> maps;
                faiss::IndexShards shards(d, threaded, false);
                for (int i = 0; i < 3; i++) {
                    parts.push_back(make_float_index(metric));
                    maps.push_back(std::make_unique<faiss::IndexIDMap2>(
                            parts.back().get()));
                    shards.addIndex(maps.back().get());
                }
                shards.add_with_ids(n, x.data(), ids.data());
                expect_same_up_to_ties(
                        search(shards, q, 10), expected, *whole, q);
            }
        }
    }
}

TEST(IndexKernelHash, InReplicas) {
    const auto x = random_vectors(n, d, 19), q = random_vectors(nq, d, 20);
    for (bool threaded : {false, true}) {
        const auto whole = make_float_index(faiss::METRIC_L2, x);
        const auto a = make_float_index(), b = make_float_index();
        faiss::IndexReplicas replicas(d, threaded);
        replicas.addIndex(a.get());
        replicas.addIndex(b.get());
        replicas.add(n, x.data());
        EXPECT_EQ(replicas.ntotal, n);
        EXPECT_EQ(a->ntotal, n);
        EXPECT_EQ(b->ntotal, n);
        expect_same(search(replicas, q, 10), search(*whole, q, 10));
    }
}

TEST(IndexKernelHash, NearVectorsAreFound) {
    // a sanity check without any reference
    const auto x = random_vectors(n, d, 21);
    const auto q = near_vectors(x, 100, d, 0.001f, 22);
    const auto index = owning<IndexKernelHash>(
            std::make_unique<ShiftInvariantHash>(d, 512, GaussianKernel(1)),
            std::make_unique<faiss::IndexBinaryFlat>(512));
    index->add(n, x.data());
    faiss::IndexFlatL2 flat(d);
    flat.add(n, x.data());
    EXPECT_GE(
            recall(search(*index, q, 1).labels, search(flat, q, 1).labels, 1),
            0.99);
}

TEST_P(EachStorage, NoVectors) {
    const float* no_floats = nullptr;
    const uint8_t* no_codes = nullptr;
    const idx_t* no_ids = nullptr;
    for (bool filled : {false, true}) {
        SCOPED_TRACE(filled ? "filled" : "empty");
        const idx_t count = filled ? n : 0;
        const auto index = make_binary();
        const auto floats = make_float();
        index->train(n, x.data());
        floats->train(n, x.data());
        if (filled) {
            index->add(n, x.data());
            floats->add(n, x.data());
        }
        const auto before = search(*index, q, 5);
        index->search(0, no_floats, 3, nullptr, nullptr);
        index->search(0, no_codes, 3, nullptr, nullptr);
        floats->search(0, no_floats, 3, nullptr, nullptr);
        if (can.range_search) {
            EXPECT_TRUE(range_search(*index, std::vector<float>(), 9).empty());
            EXPECT_TRUE(
                    range_search(*index, std::vector<uint8_t>(), 9).empty());
            EXPECT_TRUE(range_search(*floats, {}, 9).empty());
        }
        index->add(0, no_floats);
        index->add(0, no_codes);
        floats->add(0, no_floats);
        if (can.add_with_ids) {
            index->add_with_ids(0, no_floats, no_ids);
            index->add_with_ids(0, no_codes, no_ids);
            floats->add_with_ids(0, no_floats, no_ids);
        }
        EXPECT_EQ(index->ntotal, count);
        EXPECT_EQ(floats->ntotal, count);
        expect_same(search(*index, q, 5), before);
    }
}

TEST_P(EachStorage, VectorsCannotBeReconstructed) {
    const auto floats = make_float();
    fill(*floats, x);
    std::vector<float> vectors(5 * d);
    std::vector<float> distances(5);
    std::vector<idx_t> labels(5);
    EXPECT_TRUE(throws([&] { floats->reconstruct(17, vectors.data()); }));
    EXPECT_TRUE(throws([&] { floats->reconstruct_n(17, 2, vectors.data()); }));
    EXPECT_TRUE(throws([&] {
        floats->search_and_reconstruct(
                1,
                x.data(),
                5,
                distances.data(),
                labels.data(),
                vectors.data());
    }));
}

// Queries that a hash refuses in FAISS's own loops are an error there, too.
TEST(IndexKernelHash, RefusedQueriesOfRefineReachTheCaller) {
    const auto x = random_vectors(50, d, 55);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        faiss::IndexFlat base(d, metric);
        const auto codes = owning<IndexKernelHash>(
                kernel_hash_factory(d, "RHBE64"),
                std::make_unique<faiss::IndexBinaryFlat>(nbits),
                metric);
        faiss::IndexRefine refine(&base, codes.get());
        refine.add(50, x.data());
        auto bad = rows(x, d, 0, 3);
        bad[d] = inf;
        {
            KernelExceptionGuard guard(&refine);
            search(refine, bad, 2);
            EXPECT_TRUE(throws([&] { guard.rethrow(); }, "component 0"));
        }
        KernelExceptionGuard guard(&refine);
        EXPECT_EQ(search(refine, rows(x, d, 0, 1), 1).labels[0], 0);
        guard.rethrow();
        refine.k_factor = 0.5;
        EXPECT_TRUE(throws(
                [&] { KernelExceptionGuard another(&refine); }, "k_factor"));
    }
}

/// A storage whose training fails as often as it is told to.
struct FailingStorage : faiss::IndexBinaryFlat {
    int failures = 1;

    FailingStorage() : IndexBinaryFlat(nbits) {
        is_trained = false;
    }
    void train(idx_t, const uint8_t*) override {
        if (failures-- > 0) {
            throw std::runtime_error("the storage fails");
        }
        is_trained = true;
    }
};

template <class HashIndex>
void check_failed_training(const std::string& scheme) {
    SCOPED_TRACE(scheme);
    const auto bad = random_vectors(200, d, 50),
               good = random_vectors(n, d, 51);
    auto hash = kernel_hash_factory(d, scheme);
    const auto state = [&] {
        faiss::VectorIOWriter f;
        write_VectorTransform(hash.get(), &f);
        return f.data;
    };
    const auto before = state();
    const bool was_trained = hash->is_trained;
    FailingStorage storage;
    HashIndex index(hash.get(), &storage);
    EXPECT_THROW(index.train(200, bad.data()), std::runtime_error);
    EXPECT_EQ(hash->is_trained, was_trained);
    EXPECT_FALSE(index.is_trained);
    EXPECT_EQ(state(), before);
    index.train(n, good.data());
    EXPECT_TRUE(index.is_trained);
    const auto fresh = kernel_hash_factory(d, scheme);
    fresh->train(n, good.data());
    EXPECT_EQ(codes_of(*hash, good), codes_of(*fresh, good));
}

TEST(Training, OfHashAndStorageIsOneTransaction) {
    for (const char* scheme :
         {"SIK64(gaussian)",
          "SIK64(laplacian)",
          "SIK64(matern,proj=dense)",
          "BSIK64(3x4)",
          "AHK64(chi2,center=1)",
          "RHBE64(center=1)",
          "RHBE64",
          "SCR64",
          "KLSH64(chi2,p=40)",
          "KLSH64(expchi2,p=40,rank=auto,scale=auto)",
          "KLSH64(normalized(exponential(gaussian,scale=2)),p=40)"}) {
        check_failed_training<IndexKernelHash>(scheme);
        check_failed_training<IndexBinaryKernelHash>(scheme);
    }
}

// Pointers to a kernel that somebody has taken stay valid.
TEST(Training, AFailureLeavesTheKernelWhereItIs) {
    const auto same = std::vector<float>(300 * d, 0.5f);
    const auto x = random_vectors(300, d, 52);
    ShiftInvariantHash sik(d, nbits, GaussianKernel());
    const Kernel* kernel = sik.kernel.get();
    EXPECT_TRUE(throws([&] { sik.train(300, same.data()); }, "all the same"));
    FailingStorage storage;
    IndexKernelHash index(&sik, &storage);
    EXPECT_THROW(index.train(300, x.data()), std::runtime_error);
    EXPECT_EQ(sik.kernel.get(), kernel);
    EXPECT_EQ(kernel->description(), "gaussian");
    EXPECT_FALSE(kernel->is_trained);
    index.train(300, x.data());
    EXPECT_EQ(sik.kernel.get(), kernel);
    EXPECT_TRUE(kernel->is_trained);
}

// KLSH may fail late, when landmarks and bandwidth are there.
TEST(Training, KlshThatFailsIsAsItWas) {
    const auto x = random_vectors(300, d, 53);
    const auto hash = kernel_hash_factory(
            d, "KLSH64(expchi2,p=40,rank=40,tolerance=0.5)");
    const auto state = [&] {
        faiss::VectorIOWriter f;
        write_VectorTransform(hash.get(), &f);
        return f.data;
    };
    const auto before = state();
    EXPECT_TRUE(throws([&] { hash->train(300, x.data()); }, "has rank"));
    EXPECT_EQ(state(), before);
}

TEST(Merging, WithItselfIsRefused) {
    const auto x = random_vectors(20, d, 54);
    const auto floats = owning<IndexKernelHash>(
            make_hash(), std::make_unique<MergingStorage>());
    const auto binary = owning<IndexBinaryKernelHash>(
            make_hash(), std::make_unique<MergingStorage>());
    floats->add(20, x.data());
    binary->add(20, x.data());
    EXPECT_TRUE(throws([&] { floats->merge_from(*floats); }, "itself"));
    EXPECT_TRUE(throws([&] { binary->merge_from(*binary); }, "itself"));
    // nor with another one over the same storage
    IndexKernelHash twin(floats->hash, floats->storage);
    EXPECT_TRUE(throws([&] { floats->merge_from(twin); }, "itself"));
    EXPECT_EQ(floats->ntotal, 20);
    EXPECT_EQ(binary->ntotal, 20);
    EXPECT_EQ(floats->storage->ntotal, 20);
}

} // namespace
