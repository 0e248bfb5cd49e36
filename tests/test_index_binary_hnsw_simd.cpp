// SPDX-License-Identifier: MIT
// IndexBinaryHNSWSIMD: a graph of codes that come and go, beside brute force.

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr size_t num_centers = 30;

/// Codes in clusters, as hashes of real vectors are.
Bytes clustered(
        idx_t n,
        size_t size,
        int seed,
        std::vector<size_t>* clusters = nullptr) {
    std::mt19937 rng(seed), of_centers(1);
    Bytes centers(num_centers * size), x(n * size);
    for (uint8_t& byte : centers) {
        byte = uint8_t(of_centers());
    }
    for (idx_t i = 0; i < n; i++) {
        const size_t cluster = rng() % num_centers, from = cluster * size;
        if (clusters) {
            clusters->push_back(cluster);
        }
        for (size_t j = 0; j < size; j++) { // each bit flips with chance 1/8
            x[i * size + j] =
                    uint8_t(centers[from + j] ^ (rng() & rng() & rng() & 255));
        }
    }
    return x;
}

struct Found {
    std::vector<int32_t> distances;
    std::vector<idx_t> labels;

    bool operator==(const Found&) const = default;
};

template <class IndexT>
Found search(
        const IndexT& index,
        const Bytes& q,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = idx_t(q.size()) / index.code_size;
    Found found{std::vector<int32_t>(n * k), std::vector<idx_t>(n * k)};
    index.search(
            n,
            q.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            params);
    return found;
}

/// The share of the distances of `exact` that were found.
double recall(const Found& found, const Found& exact, idx_t k) {
    double hits = 0;
    for (size_t begin = 0; begin < exact.labels.size(); begin += k) {
        for (size_t i = begin; i < begin + k; i++) {
            hits += found.labels[i] >= 0 &&
                    found.distances[i] <= exact.distances[begin + k - 1];
        }
    }
    return hits / double(exact.labels.size());
}

struct EachSize : testing::TestWithParam<int> {
    const int d = GetParam();
    const size_t size = d / 8;
};
INSTANTIATE_TEST_SUITE_P(
        Bits,
        EachSize,
        testing::Values(8, 24, 64, 72, 128, 256, 512, 1000));

TEST_P(EachSize, AllCodesAreFoundIfAsManyAreWanted) {
    const idx_t n = 300;
    const Bytes x = clustered(n, size, 2), q = clustered(20, size, 3);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    index.hnsw.efSearch = 1;
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    for (const idx_t k : {n, n + 1, 2 * n}) {
        EXPECT_EQ(search(index, q, k), search(flat, q, k)) << k;
    }
}

// A walk that keeps all codes meets all of them.
TEST_P(EachSize, AnExhaustiveSearchIsExact) {
    const idx_t n = 500;
    const Bytes x = clustered(n, size, 2), q = clustered(20, size, 3);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    index.hnsw.efSearch = 2 * n;
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    for (const idx_t k : {idx_t(1), idx_t(10), n + 5}) {
        EXPECT_EQ(search(index, q, k), search(flat, q, k)) << k;
    }
}

TEST_P(EachSize, ReconstructsAndWrites) {
    const idx_t n = 300;
    const Bytes x = clustered(n, size, 2), q = clustered(5, size, 3);
    IndexBinaryHNSWSIMD index(d, 8);
    index.add(n, x.data());
    EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(50, 150)), 100u);
    Bytes rest(x.begin(), x.begin() + 50 * size);
    rest.insert(rest.end(), x.begin() + 150 * size, x.end());
    Bytes codes(rest.size());
    index.reconstruct_n(0, 200, codes.data());
    EXPECT_EQ(codes, rest);
    const auto copy = reread(index);
    ASSERT_TRUE(dynamic_cast<IndexBinaryHNSWSIMD*>(copy.get()));
    EXPECT_EQ(search(*copy, q, 10), search(index, q, 10));
    copy->reconstruct_n(0, 200, codes.data());
    EXPECT_EQ(codes, rest);
}

/// The same codes in a graph of FAISS's class and of ours.
TEST(IndexBinaryHNSWSIMD, FindsAsMuchAsFaiss) {
    const int d = 128;
    const idx_t n = 5000, nq = 200, k = 10;
    const Bytes x = clustered(n, d / 8, 4), q = clustered(nq, d / 8, 5);
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    const Found exact = search(flat, q, k);
    faiss::IndexBinaryHNSW theirs(d, 16);
    theirs.add(n, x.data());
    IndexBinaryHNSWSIMD ours(d, 16);
    ours.add(n, x.data());
    theirs.hnsw.efSearch = ours.hnsw.efSearch = 40;
    const double found = recall(search(ours, q, k), exact, k);
    EXPECT_GE(
            found, recall(search(theirs, q, k), exact, k) - 2 * hoeffding(nq));
    EXPECT_GT(found, 0.8);
}

TEST(IndexBinaryHNSWSIMD, TakesOverAGraphOfFaiss) {
    const int d = 64;
    const idx_t n = 1000;
    const Bytes x = clustered(n, d / 8, 6), q = clustered(20, d / 8, 7);
    faiss::IndexBinaryHNSW theirs(d, 16);
    theirs.add(n, x.data());
    theirs.hnsw.efSearch = 2 * n;
    IndexBinaryHNSWSIMD ours(std::move(theirs));
    EXPECT_EQ(ours.ntotal, n);
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    EXPECT_EQ(search(ours, q, 10), search(flat, q, 10));
    ours.add(20, q.data());
    EXPECT_EQ(ours.ntotal, n + 20);
    EXPECT_EQ(search(ours, q, 1).distances, std::vector<int32_t>(20, 0));
}

TEST(IndexBinaryHNSWSIMD, FiltersLoseNothing) {
    const int d = 128;
    const idx_t n = 4000, nq = 100, k = 10;
    const Bytes x = clustered(n, d / 8, 8), q = clustered(nq, d / 8, 9);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    std::mt19937 rng(10);
    for (const int percent : {1, 10, 30, 50, 90}) {
        std::vector<idx_t> allowed;
        for (idx_t i = 0; i < n; i++) {
            if (int(rng() % 100) < percent) {
                allowed.push_back(i);
            }
        }
        faiss::IDSelectorBatch sel(allowed.size(), allowed.data());
        faiss::SearchParameters params;
        params.sel = &sel;
        const Found found = search(index, q, k, &params),
                    exact = search(flat, q, k, &params);
        for (const idx_t id : found.labels) {
            EXPECT_TRUE(std::ranges::binary_search(allowed, id)) << id;
        }
        const double without =
                recall(search(index, q, k), search(flat, q, k), k);
        EXPECT_GE(recall(found, exact, k), without - 2 * hoeffding(nq))
                << percent;
    }
}

// The nearest allowed codes of most queries are in other clusters.
TEST(IndexBinaryHNSWSIMD, FiltersOfWholeClustersLoseNothing) {
    const int d = 128;
    const idx_t n = 6000, nq = 300, k = 10;
    std::vector<size_t> clusters;
    const Bytes x = clustered(n, d / 8, 50, &clusters);
    const Bytes q = clustered(nq, d / 8, 51);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    std::vector<idx_t> allowed;
    for (idx_t i = 0; i < n; i++) {
        if (clusters[i] < 2 * num_centers / 5) {
            allowed.push_back(i);
        }
    }
    ASSERT_GT(allowed.size(), n / 4); // otherwise all of them are compared
    faiss::IDSelectorBatch sel(allowed.size(), allowed.data());
    faiss::SearchParameters params;
    params.sel = &sel;
    for (const int ef : {32, 64, 128}) {
        index.hnsw.efSearch = ef;
        const double without =
                recall(search(index, q, k), search(flat, q, k), k);
        const double with = recall(
                search(index, q, k, &params), search(flat, q, k, &params), k);
        EXPECT_GE(with, without - 0.01) << ef;
    }
}

// Links lead to equal codes, and from them to others.
TEST(IndexBinaryHNSWSIMD, EqualCodesAreFound) {
    const int d = 64;
    const idx_t n = 2000;
    for (const idx_t num_equal : {100, 1000, 2000}) {
        SCOPED_TRACE(num_equal);
        Bytes x = clustered(n, d / 8, 60);
        const idx_t step = n / num_equal;
        for (idx_t i = 0; i < n; i += step) {
            std::fill_n(&x[i * d / 8], d / 8, 7);
        }
        const Bytes q(d / 8, 7), others = clustered(200, d / 8, 63);
        IndexBinaryHNSWSIMD index(d, 16);
        index.add(n, x.data());
        IndexBinaryFlatSIMD flat(d);
        flat.add(n, x.data());
        const auto distances = [](const auto& storage, auto&&... arguments) {
            return search(storage, arguments...).distances;
        };
        EXPECT_EQ(distances(index, q, 40), std::vector<int32_t>(40, 0));
        faiss::IndexBinaryHNSW theirs(d, 16);
        theirs.add(n, x.data());
        theirs.hnsw.efSearch = index.hnsw.efSearch = 40;
        const Found exact = search(flat, others, 10);
        EXPECT_GE(
                recall(search(index, others, 10), exact, 10),
                recall(search(theirs, others, 10), exact, 10) - 0.01);
        EXPECT_EQ(distances(index, q, n), distances(flat, q, n));
        index.hnsw.efSearch = n;
        faiss::RangeSearchResult found(1);
        index.range_search(1, q.data(), 1, &found);
        EXPECT_GE(found.lims[1], 0.99 * double(num_equal));
    }
}

// A walk of a graph in which no link leads to any other vertex finds one code.
TEST(IndexBinaryHNSWSIMD, CodesWithoutLinksAreFound) {
    const int d = 64;
    const idx_t n = 300;
    const Bytes x = clustered(n, d / 8, 61), q = clustered(10, d / 8, 62);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    std::ranges::fill(index.hnsw.neighbors, -1);
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    const faiss::IDSelectorRange most(0, 200);
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorRange*>(&most);
    EXPECT_EQ(search(index, q, 40), search(flat, q, 40));
    EXPECT_EQ(search(index, q, 40, &params), search(flat, q, 40, &params));
}

TEST(IndexBinaryHNSWSIMD, RangesAreThoseOfAnExhaustiveSearch) {
    const int d = 64;
    const idx_t n = 600;
    const Bytes x = clustered(n, d / 8, 11), q = clustered(10, d / 8, 12);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    index.hnsw.efSearch = 2 * n;
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    const faiss::IDSelectorRange removed(100, 400);
    for (const bool are_removed : {false, true}) {
        if (are_removed) {
            EXPECT_EQ(index.remove_ids(removed), 300u);
            EXPECT_EQ(flat.remove_ids(removed), 300u);
        }
        for (const int radius : {0, 1, 15, 20, d + 1}) {
            faiss::RangeSearchResult ours(10), expected(10);
            index.range_search(10, q.data(), radius, &ours);
            flat.range_search(10, q.data(), radius, &expected);
            ASSERT_TRUE(std::equal(ours.lims, ours.lims + 11, expected.lims));
            const size_t total = expected.lims[10];
            EXPECT_TRUE(std::equal(
                    ours.labels, ours.labels + total, expected.labels));
            EXPECT_TRUE(std::equal(
                    ours.distances,
                    ours.distances + total,
                    expected.distances));
        }
    }
}

// Half of the codes are replaced, a twentieth at a time.
TEST(IndexBinaryHNSWSIMD, AChangedGraphFindsAsMuchAsAFreshOne) {
    const int d = 128;
    const size_t size = d / 8;
    const idx_t n = 3000, step = n / 20, nq = 200, k = 10;
    Bytes x = clustered(n, size, 13);
    const Bytes q = clustered(nq, size, 14);
    IndexBinaryHNSWSIMD index(d, 16);
    index.add(n, x.data());
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(0, step)), step);
        const Bytes added = clustered(step, size, 20 + i);
        index.add(step, added.data());
        x.erase(x.begin(), x.begin() + step * size);
        x.insert(x.end(), added.begin(), added.end());
    }
    IndexBinaryFlatSIMD flat(d);
    flat.add(n, x.data());
    IndexBinaryHNSWSIMD fresh(d, 16);
    fresh.add(n, x.data());
    const Found exact = search(flat, q, k);
    const double least =
            recall(search(fresh, q, k), exact, k) - 2 * hoeffding(nq);
    EXPECT_GE(recall(search(index, q, k), exact, k), least);
    Bytes codes(x.size());
    index.reconstruct_n(0, n, codes.data());
    EXPECT_EQ(codes, x);
    index.compact();
    EXPECT_EQ(index.num_removed(), 0);
    EXPECT_GE(recall(search(index, q, k), exact, k), least);
}

TEST(IndexBinaryHNSWSIMD, MergesIndexesWithIds) {
    const int d = 64;
    const idx_t n = 100;
    const Bytes x = clustered(2 * n, d / 8, 21);
    std::vector<idx_t> ids(n);
    for (const bool are_reversed : {false, true}) {
        for (idx_t i = 0; i < n; i++) {
            ids[i] = are_reversed ? n - 1 - i : 5000 + i;
        }
        const auto index = index_binary_factory(d, "BHNSW8");
        const auto other = index_binary_factory(d, "BHNSW8");
        index->add(n, x.data());
        other->add_with_ids(n, &x[n * d / 8], ids.data());
        const faiss::IDSelectorRange removed(ids[7], ids[7] + 1);
        EXPECT_EQ(other->remove_ids(removed), 1u);
        index->merge_from(*other, 1000);
        EXPECT_EQ(index->ntotal, 2 * n - 1);
        for (idx_t i = 0; i < n; i++) {
            Bytes code(d / 8);
            const auto get = [&] {
                index->reconstruct(1000 + ids[i], code.data());
            };
            if (i == 7) {
                EXPECT_THROW(get(), faiss::FaissException);
            } else {
                get();
                EXPECT_TRUE(std::equal(
                        code.begin(), code.end(), &x[(n + i) * d / 8]));
            }
        }
    }
}

TEST(IndexBinaryHNSWSIMD, Merges) {
    const int d = 72;
    const size_t size = d / 8;
    const Bytes x = clustered(400, size, 15), q = clustered(10, size, 16);
    IndexBinaryHNSWSIMD index(d, 8), other(d, 8), wide(2 * d);
    index.add(150, x.data());
    other.add(250, x.data() + 150 * size);
    EXPECT_EQ(other.remove_ids(faiss::IDSelectorRange(0, 50)), 50u);
    EXPECT_TRUE(throws([&] { index.merge_from(wide); }, "cannot merge"));
    EXPECT_TRUE(throws([&] { index.merge_from(index); }, ""));
    index.merge_from(other);
    EXPECT_EQ(index.ntotal, 350);
    EXPECT_EQ(other.ntotal, 0);
    Bytes codes(350 * size), expected(x.begin(), x.begin() + 150 * size);
    expected.insert(expected.end(), x.begin() + 200 * size, x.end());
    index.reconstruct_n(0, 350, codes.data());
    EXPECT_EQ(codes, expected);
    other.add(5, x.data());
    EXPECT_EQ(other.ntotal, 5);
}

TEST(IndexBinaryHNSWSIMD, DoesNotDependOnThreadsAndBatches) {
    const int d = 128;
    const idx_t n = 2000, nq = 50, k = 10;
    const Bytes x = clustered(n, d / 8, 17), q = clustered(nq, d / 8, 18);
    const auto find = [&](int threads) {
        const Threads use(threads);
        IndexBinaryHNSWSIMD index(d, 8);
        index.add(n, x.data());
        const Found all = search(index, q, k);
        for (idx_t i = 0; i < nq; i++) {
            const Found one = search(
                    index,
                    Bytes(q.begin() + i * d / 8, q.begin() + (i + 1) * d / 8),
                    k);
            EXPECT_TRUE(std::equal(
                    one.labels.begin(),
                    one.labels.end(),
                    all.labels.begin() + i * k));
        }
        return all;
    };
    EXPECT_EQ(find(1), find(3));
}

TEST(IndexBinaryHNSWSIMD, Errors) {
    EXPECT_TRUE(throws([] { IndexBinaryHNSWSIMD(64, 1); }, "M is 1"));
    EXPECT_TRUE(throws([] { IndexBinaryHNSWSIMD(60); }, "60"));
    IndexBinaryHNSWSIMD index(64);
    const Bytes x = clustered(50, 8, 19);
    EXPECT_EQ(search(index, x, 2).labels, std::vector<idx_t>(100, -1)); // empty
    index.add(0, nullptr);
    index.add(50, x.data());
    EXPECT_TRUE(throws([&] { index.add(-1, x.data()); }, "add"));
    EXPECT_TRUE(throws([&] { search(index, x, 0); }, "k"));
    EXPECT_TRUE(throws([&] { index.reconstruct(50, nullptr); }, "50"));
    const idx_t id = 3;
    EXPECT_TRUE(throws(
            [&] { index.add_with_ids(1, x.data(), &id); }, "put an IDMap"));
    index.hnsw.efSearch = 0;
    EXPECT_TRUE(throws([&] { search(index, x, 1); }, "efSearch"));
    index.hnsw.efSearch = 16;
    EXPECT_EQ(search(index, x, 1).distances, std::vector<int32_t>(50, 0));
    index.ntotal = 49;
    EXPECT_TRUE(throws([&] { search(index, x, 1); }, "49"));
    index.ntotal = 50;
    index.reset();
    EXPECT_EQ(index.ntotal, 0);
    index.add(50, x.data());
    EXPECT_EQ(search(index, x, 1).distances, std::vector<int32_t>(50, 0));
}

} // namespace
