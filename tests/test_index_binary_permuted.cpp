// IndexBinaryPermuted against a slow implementation of its description, made
// of explicit strings of bits.

#include <faiss_ext/indexes/IndexBinaryPermuted.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing_klsh.h"

using namespace faiss_ext;
using namespace testing_klsh;

namespace {

using Codes = std::vector<uint8_t>;

/// n random codes
Codes random_codes(size_t n, int d, uint64_t seed) {
    return random_bytes(n * d / 8, seed);
}

/// n codes, of which only `distinct` differ
Codes repeated_codes(size_t n, int d, size_t distinct, uint64_t seed) {
    const Codes some = random_codes(distinct, d, seed);
    std::mt19937_64 rng(seed + 1);
    Codes codes;
    for (size_t i = 0; i < n; i++) {
        const size_t j = rng() % distinct * (d / 8);
        codes.insert(codes.end(), some.begin() + j, some.begin() + j + d / 8);
    }
    return codes;
}

/// n codes of x with about `flips` of their bits flipped
Codes near_codes(const Codes& x, size_t n, int d, int flips, uint64_t seed) {
    std::mt19937_64 rng(seed);
    const size_t size = d / 8, nx = x.size() / size;
    Codes codes;
    for (size_t i = 0; i < n; i++) {
        const size_t j = rng() % nx * size;
        codes.insert(codes.end(), x.begin() + j, x.begin() + j + size);
        for (int f = 0; f < flips; f++) {
            codes[i * size + rng() % size] ^= uint8_t(1 << rng() % 8);
        }
    }
    return codes;
}

std::unique_ptr<IndexBinaryPermuted> make(
        int d,
        int M,
        int B,
        const Codes& codes = {}) {
    auto index = std::make_unique<IndexBinaryPermuted>(d, 0.5, B);
    index->M = M;
    index->add(codes.size() / (d / 8), codes.data());
    return index;
}

// The description, word for word.

/// the bits of a code, permuted, as text
std::string permuted(const uint8_t* code, const std::vector<int32_t>& order) {
    std::string bits;
    for (int32_t i : order) {
        bits += code[i / 8] >> (i % 8) & 1 ? '1' : '0';
    }
    return bits;
}

int common_prefix(const std::string& a, const std::string& b) {
    int n = 0;
    while (n < int(a.size()) && a[n] == b[n]) {
        n++;
    }
    return n;
}

std::vector<int32_t> slow_candidates(
        const IndexBinaryPermuted& index,
        const uint8_t* query) {
    struct Entry {
        int prefix, list, below, distance;
    };
    const int n = int(index.ntotal), M = int(index.lists.size());
    std::vector<Entry> entries;
    std::vector<std::vector<int32_t>> order(M);
    std::vector<int> low(M), high(M);
    for (int l = 0; l < M; l++) {
        const auto& permutation = index.lists[l].permutation;
        std::vector<std::pair<std::string, int32_t>> sorted;
        for (int i = 0; i < n; i++) {
            sorted.emplace_back(
                    permuted(
                            &index.xb[size_t(i) * index.code_size],
                            permutation),
                    i);
        }
        std::sort(sorted.begin(), sorted.end());
        const std::string q = permuted(query, permutation);
        int at = 0; // the first entry that is not before the query
        while (at < n && sorted[at].first < q) {
            at++;
        }
        low[l] = high[l] = at;
        for (int i = 0; i < n; i++) {
            const bool below = i < at;
            entries.push_back(
                    {common_prefix(sorted[i].first, q),
                     l,
                     below,
                     below ? at - 1 - i : i - at});
            order[l].push_back(sorted[i].second);
        }
    }
    std::sort(
            entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
                return std::tuple(-a.prefix, a.list, a.below, a.distance) <
                        std::tuple(-b.prefix, b.list, b.below, b.distance);
            });
    entries.resize(std::min<size_t>(entries.size(), 2 * M));
    for (const Entry& e : entries) {
        e.below ? low[e.list]-- : high[e.list]++;
    }
    std::set<int32_t> found;
    for (int l = 0; l < M; l++) {
        for (int i = std::max(0, low[l] - index.B);
             i < std::min(n, high[l] + index.B);
             i++) {
            found.insert(order[l][i]);
        }
    }
    return {found.begin(), found.end()};
}

int hamming(const uint8_t* a, const uint8_t* b, size_t size) {
    int sum = 0;
    for (size_t i = 0; i < 8 * size; i++) {
        sum += (a[i / 8] ^ b[i / 8]) >> (i % 8) & 1;
    }
    return sum;
}

// Results.

struct Found {
    std::vector<int32_t> distances;
    std::vector<idx_t> labels;

    bool operator==(const Found&) const = default;
};

Found search(
        const faiss::IndexBinary& index,
        const Codes& q,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    const idx_t n = q.size() / (index.d / 8);
    Found found{
            std::vector<int32_t>(n * k, -77), std::vector<idx_t>(n * k, -77)};
    index.search(
            n,
            q.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            params);
    return found;
}

using Range = std::vector<std::vector<std::pair<idx_t, int>>>;

Range range_search(
        const faiss::IndexBinary& index,
        const Codes& q,
        int radius,
        const faiss::SearchParameters* params = nullptr) {
    const size_t n = q.size() / (index.d / 8);
    faiss::RangeSearchResult result(n);
    index.range_search(n, q.data(), radius, &result, params);
    Range range(n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = result.lims[i]; j < result.lims[i + 1]; j++) {
            range[i].emplace_back(result.labels[j], int(result.distances[j]));
        }
    }
    return range;
}

/// the pairs (distance, id) that are accepted, by distance and id
std::vector<std::pair<int, idx_t>> ranked(
        const IndexBinaryPermuted& index,
        const std::vector<int32_t>& candidates,
        const uint8_t* q,
        const faiss::IDSelector* sel = nullptr) {
    std::vector<std::pair<int, idx_t>> all;
    for (int32_t id : candidates) {
        if (!sel || sel->is_member(id)) {
            const uint8_t* code = &index.xb[size_t(id) * index.code_size];
            all.emplace_back(hamming(code, q, index.code_size), id);
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

/// what a search among given candidates finds
Found expected_search(
        const IndexBinaryPermuted& index,
        const Codes& q,
        idx_t k,
        const faiss::IDSelector* sel = nullptr) {
    Found found;
    for (size_t i = 0; i < q.size(); i += index.code_size) {
        const auto all =
                ranked(index, slow_candidates(index, &q[i]), &q[i], sel);
        for (idx_t j = 0; j < k; j++) {
            const bool there = j < idx_t(all.size());
            found.distances.push_back(
                    there ? all[j].first : std::numeric_limits<int32_t>::max());
            found.labels.push_back(there ? all[j].second : -1);
        }
    }
    return found;
}

void expect_same_lists(
        const IndexBinaryPermuted& a,
        const IndexBinaryPermuted& b) {
    ASSERT_EQ(a.ntotal, b.ntotal);
    EXPECT_EQ(a.xb, b.xb);
    ASSERT_EQ(a.lists.size(), b.lists.size());
    for (size_t l = 0; l < a.lists.size(); l++) {
        EXPECT_EQ(a.lists[l].permutation, b.lists[l].permutation);
        EXPECT_EQ(a.lists[l].prefixes, b.lists[l].prefixes);
        EXPECT_EQ(a.lists[l].ids, b.lists[l].ids);
    }
}

class Dimensions : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(
        Bits,
        Dimensions,
        ::testing::Values(8, 16, 64, 72, 256),
        ::testing::PrintToStringParamName());

} // namespace

TEST_P(Dimensions, CandidatesEqualTheDescription) {
    const int d = GetParam(), size = d / 8;
    for (const auto& [n, M, B] : std::vector<std::tuple<int, int, int>>{
                 {1, 1, 0},
                 {2, 3, 0},
                 {150, 1, 0},
                 {150, 6, 0},
                 {150, 6, 3},
                 {90, 25, 1},
                 {40, 60, 0},
                 {60, 2, 100}}) {
        for (int kind = 0; kind < 3; kind++) {
            const Codes codes = kind == 0 ? random_codes(n, d, 1)
                    : kind == 1           ? repeated_codes(n, d, 5, 2)
                                          : Codes(size_t(n) * size, 0xa5);
            const auto index = make(d, M, B, codes);
            ASSERT_EQ(index->lists.size(), size_t(M));
            Codes q = random_codes(4, d, 3);
            const Codes near = near_codes(codes, 5, d, 2, 4);
            q.insert(q.end(), near.begin(), near.end());
            q.insert(q.end(), codes.begin(), codes.begin() + size);
            q.insert(q.end(), size, 0);
            q.insert(q.end(), size, 0xff);
            for (size_t i = 0; i < q.size(); i += size) {
                EXPECT_EQ(
                        index->candidates(&q[i]),
                        slow_candidates(*index, &q[i]))
                        << "n = " << n << ", M = " << M << ", B = " << B
                        << ", kind " << kind << ", query " << i / size;
            }
            EXPECT_EQ(search(*index, q, 7), expected_search(*index, q, 7));
        }
    }
}

// Each list is a permutation of its own, with the codes in its order.
TEST_P(Dimensions, ListsAreSorted) {
    const int d = GetParam(), n = 120;
    const Codes codes = repeated_codes(n, d, 60, 1);
    const auto index = make(d, 12, 10, codes);
    std::set<std::vector<int32_t>> different;
    for (const auto& list : index->lists) {
        std::vector<int32_t> identity(d);
        std::iota(identity.begin(), identity.end(), 0);
        EXPECT_TRUE(std::is_permutation(
                list.permutation.begin(),
                list.permutation.end(),
                identity.begin(),
                identity.end()));
        different.insert(list.permutation);
        ASSERT_EQ(list.ids.size(), size_t(n));
        ASSERT_EQ(list.prefixes.size(), size_t(n));
        std::vector<std::pair<std::string, int32_t>> entries;
        for (int i = 0; i < n; i++) {
            const std::string bits =
                    permuted(&codes[list.ids[i] * d / 8], list.permutation);
            entries.emplace_back(bits, list.ids[i]);
            uint64_t prefix = 0;
            for (int b = 0; b < 64; b++) {
                prefix = 2 * prefix + (b < d && bits[b] == '1');
            }
            EXPECT_EQ(list.prefixes[i], prefix);
        }
        EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end()));
        EXPECT_EQ(std::set(entries.begin(), entries.end()).size(), size_t(n));
    }
    EXPECT_EQ(different.size(), 12u);
}

// The first bit of a permutation is uniform, and so is the place of bit 0.
TEST(Permutations, AreUniform) {
    const int d = 16, M = 4000;
    const auto index = make(d, M, 0, random_codes(1, d, 1));
    std::vector<int> first(d), place(d);
    for (const auto& list : index->lists) {
        first[list.permutation[0]]++;
        const auto at =
                std::find(list.permutation.begin(), list.permutation.end(), 0);
        place[at - list.permutation.begin()]++;
    }
    for (int i = 0; i < d; i++) {
        EXPECT_NEAR(double(first[i]) / M, 1.0 / d, hoeffding(M));
        EXPECT_NEAR(double(place[i]) / M, 1.0 / d, hoeffding(M));
    }
}

// If all are candidates, search is that of the flat index, equal distances in
// the order of ids: with B >= n, and with many lists, among which every code is
// near the query in one.
TEST_P(Dimensions, ManyListsOrNeighborsEqualFlat) {
    const int d = GetParam(), n = 300, size = d / 8;
    for (int kind = 0; kind < 2; kind++) {
        const Codes codes =
                kind == 0 ? random_codes(n, d, 1) : repeated_codes(n, d, 9, 2);
        Codes q = random_codes(6, d, 3);
        const Codes near = near_codes(codes, 10, d, 2, 4);
        q.insert(q.end(), near.begin(), near.end());
        faiss::IndexBinaryFlat flat(d);
        flat.add(n, codes.data());
        std::vector<int32_t> ids(n);
        std::iota(ids.begin(), ids.end(), 0);
        std::vector<std::pair<int, int>> parameters = {{1, n}, {3, 1 << 30}};
        if (kind == 0 && d >= 64) {
            parameters.push_back({600, 20});
        }
        for (const auto& [M, B] : parameters) {
            const auto index = make(d, M, B, codes);
            for (size_t i = 0; i < q.size(); i += size) {
                ASSERT_EQ(index->candidates(&q[i]), ids);
            }
            for (idx_t k : {1, 10, n, n + 20}) {
                const Found found = search(*index, q, k);
                for (size_t i = 0; i < q.size() / size; i++) {
                    const auto all = ranked(*index, ids, &q[i * size]);
                    for (idx_t j = 0; j < k; j++) {
                        const idx_t label = found.labels[i * k + j];
                        EXPECT_EQ(label, j < n ? all[j].second : -1);
                    }
                }
                if (k <= n) {
                    EXPECT_EQ(found.distances, search(flat, q, k).distances);
                }
            }
            for (int radius : {0, 1, 3, d / 2, d + 1}) {
                Range expected = range_search(flat, q, radius);
                for (auto& r : expected) {
                    std::sort(r.begin(), r.end());
                }
                EXPECT_EQ(range_search(*index, q, radius), expected);
            }
        }
    }
}

// Neighbours are found where few codes are looked at: a code that differs in 3
// of 256 bits shares the first 20 of a random permutation with probability
// (1 - 20/256)^3 > 0.78, and 20 bits single out one of 2,000 random codes; so
// that of 20 lists one tells it with probability 1 - 0.22^20.
TEST(Search, FindsNeighborsAmongFewCandidates) {
    const int d = 256;
    const Codes codes = random_codes(2000, d, 1);
    const Codes q = near_codes(codes, 200, d, 3, 2);
    const auto index = make(d, 20, 1, codes);
    faiss::IndexBinaryFlat flat(d);
    flat.add(2000, codes.data());
    indexBinaryPermuted_stats.reset();
    EXPECT_EQ(search(*index, q, 1).labels, search(flat, q, 1).labels);
    // at most 2 M + 2 B M
    EXPECT_LE(indexBinaryPermuted_stats.ncandidates, 200u * 80);
}

TEST(Lists, NumberFromEps) {
    IndexBinaryPermuted index(64);
    for (double eps : {0.1, 0.5, 1.0, 2.74, 10.0}) {
        index.eps = eps;
        for (idx_t n : {1, 2, 10, 1000, 1000000}) {
            EXPECT_EQ(
                    index.num_lists(n),
                    std::ceil(2 * std::pow(double(n), 1 / (1 + eps))));
        }
    }
    EXPECT_EQ(index.num_lists(1), 2);
    index.M = 130;
    EXPECT_EQ(index.num_lists(1000000), 130);
    // Kulis and Grauman: 130 lists for 79,302,017 images is an eps of 2.74 if
    // M = n^(1 / (1 + eps))
    index.M = 0;
    index.eps = 2.74;
    EXPECT_NEAR(index.num_lists(79302017), 2 * 130, 6);
}

// Adding.

TEST_P(Dimensions, BatchesEqualOneAdd) {
    const int d = GetParam(), size = d / 8;
    const Codes codes = repeated_codes(200, d, 80, 1);
    for (int M : {0, 7}) {
        const auto at_once = make(d, M, 5, codes);
        EXPECT_EQ(at_once->lists.size(), M ? 7u : 69u); // 2 * 200^(2/3) = 68.4
        const auto in_batches = make(d, M, 5);
        size_t done = 0;
        for (size_t n : {1, 1, 50, 0, 17, 131}) {
            in_batches->add(n, codes.data() + done * size);
            done += n;
            expect_same_lists(
                    *in_batches, *make(d, M, 5, rows(codes, size, 0, done)));
        }
        expect_same_lists(*in_batches, *at_once);
        // the codes themselves are sorted, not the lists as they were
        at_once->rebuild();
        expect_same_lists(*in_batches, *at_once);
    }
}

TEST(Adding, SeedsDrawPermutations) {
    const Codes codes = random_codes(30, 64, 1);
    const auto make_seeded = [&](int64_t seed) {
        auto index = make(64, 5, 1);
        index->seed = seed;
        index->add(30, codes.data());
        return index;
    };
    const auto a = make_seeded(3), b = make_seeded(3), c = make_seeded(4);
    // the upper half counts too
    const auto e = make_seeded(3 + (int64_t(1) << 40));
    expect_same_lists(*a, *b);
    EXPECT_NE(a->lists[0].permutation, c->lists[0].permutation);
    EXPECT_NE(a->lists[0].permutation, e->lists[0].permutation);
}

TEST(Adding, ThreadsMakeNoDifference) {
    const int d = 72;
    const Codes codes = repeated_codes(400, d, 150, 1);
    const Codes q = near_codes(codes, 60, d, 3, 2);
    std::unique_ptr<IndexBinaryPermuted> one;
    Found found;
    Range range;
    {
        const Threads threads(1);
        one = make(d, 30, 2, codes);
        found = search(*one, q, 5);
        range = range_search(*one, q, 20);
    }
    for (int n : {2, 7}) {
        const Threads threads(n);
        const auto index = make(d, 30, 2, codes);
        expect_same_lists(*index, *one);
        EXPECT_EQ(search(*index, q, 5), found);
        EXPECT_EQ(range_search(*index, q, 20), range);
    }
    // nor do batches of queries
    Found parts;
    for (size_t i = 0; i < 60; i += 7) {
        const Found part =
                search(*one, rows(q, d / 8, i, std::min<size_t>(60, i + 7)), 5);
        parts.distances.insert(
                parts.distances.end(),
                part.distances.begin(),
                part.distances.end());
        parts.labels.insert(
                parts.labels.end(), part.labels.begin(), part.labels.end());
    }
    EXPECT_EQ(parts, found);
}

// 12 M n bytes.
TEST(Adding, LimitOfMemory) {
    const int d = 64;
    const Codes codes = random_codes(100, d, 1), q = random_codes(5, d, 2);
    auto index = make(d, 10, 3);
    index->max_gb = 10 * (12 * 50 + 4 * d + 0.5) / 1e9;
    index->add(50, codes.data());
    const auto before = clone_binary_index(index.get());
    EXPECT_TRUE(throws(
            [&] { index->add(1, codes.data() + 50 * 8); }, {"max_gb", "51"}));
    EXPECT_TRUE(throws([&] { index->add(50, codes.data() + 50 * 8); }));
    EXPECT_EQ(index->ntotal, 50);
    expect_same_lists(
            *index, dynamic_cast<const IndexBinaryPermuted&>(*before));
    EXPECT_EQ(search(*index, q, 4), search(*before, q, 4));
    index->max_gb *= 2;
    index->add(50, codes.data() + 50 * 8);
    expect_same_lists(*index, *make(d, 10, 3, codes));
    // M from eps grows with n
    IndexBinaryPermuted growing(d, 0.5);
    growing.max_gb = 69 * (12 * 200 + 4 * d + 0.5) / 1e9;
    const Codes more = random_codes(201, d, 1);
    growing.add(100, more.data());
    EXPECT_TRUE(throws([&] { growing.add(101, more.data() + 800); }));
    growing.add(100, more.data() + 800);
    EXPECT_EQ(growing.ntotal, 200);
    // an absurd number of lists is refused, not tried
    EXPECT_TRUE(throws([&] { make(d, 1 << 24, 1, random_codes(100, d, 1)); }));
}

TEST(Adding, BadCalls) {
    auto index = make(16, 3, 1, random_codes(10, 16, 1));
    const Codes codes = random_codes(4, 16, 2);
    EXPECT_TRUE(throws([&] { index->add(-1, codes.data()); }));
    EXPECT_TRUE(throws([&] { index->add(1, nullptr); }, {"null"}));
    index->add(0, nullptr);
    EXPECT_EQ(index->ntotal, 10);
    int32_t distance;
    idx_t label;
    for (idx_t k : {0, -1}) {
        EXPECT_TRUE(throws(
                [&] { index->search(1, codes.data(), k, &distance, &label); },
                {"k is"}));
    }
    EXPECT_TRUE(throws(
            [&] { index->search(-1, codes.data(), 1, &distance, &label); }));
    EXPECT_TRUE(
            throws([&] { index->search(1, nullptr, 1, &distance, &label); }));
    EXPECT_TRUE(throws([] { IndexBinaryPermuted(0); }));
    EXPECT_TRUE(throws([] { IndexBinaryPermuted(12); }));
    EXPECT_TRUE(throws([] { IndexBinaryPermuted(64, 0); }));
    EXPECT_TRUE(throws([] { IndexBinaryPermuted(64, std::nan("")); }));
    EXPECT_TRUE(throws([] { IndexBinaryPermuted(64, 0.5, -1); }));
}

// Removing, resetting.

TEST_P(Dimensions, RemovingEqualsAFreshIndexOfTheRest) {
    const int d = GetParam(), size = d / 8, n = 150;
    const Codes codes = repeated_codes(n, d, 60, 1);
    for (int M : {0, 9}) {
        for (int kind = 0; kind < 5; kind++) {
            std::vector<idx_t> gone;
            for (int i = 0; i < n; i++) {
                if (kind == 1           ? i % 3 == 0
                            : kind == 2 ? i < 140
                            : kind == 3 ? true
                                        : kind == 4 && i == n - 1) {
                    gone.push_back(i);
                }
            }
            const faiss::IDSelectorBatch sel(gone.size(), gone.data());
            Codes rest;
            for (int i = 0; i < n; i++) {
                if (!sel.is_member(i)) {
                    rest.insert(
                            rest.end(),
                            codes.begin() + i * size,
                            codes.begin() + (i + 1) * size);
                }
            }
            const auto index = make(d, M, 4, codes);
            EXPECT_EQ(index->remove_ids(sel), gone.size());
            const auto fresh = make(d, M, 4, rest);
            expect_same_lists(*index, *fresh);
            // and goes on like one
            index->add(30, codes.data());
            fresh->add(30, codes.data());
            expect_same_lists(*index, *fresh);
        }
    }
}

TEST(Removing, ResetAndAddAgain) {
    const Codes codes = random_codes(80, 64, 1), q = random_codes(3, 64, 2);
    const auto index = make(64, 0, 4, random_codes(50, 64, 3));
    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    EXPECT_EQ(search(*index, q, 2).labels, std::vector<idx_t>(6, -1));
    index->add(80, codes.data());
    expect_same_lists(*index, *make(64, 0, 4, codes));
}

TEST(Search, EmptyIndexAndNoQueries) {
    const auto index = make(64, 0, 4);
    const Codes q = random_codes(3, 64, 1);
    const Found found = search(*index, q, 2);
    EXPECT_EQ(found.labels, std::vector<idx_t>(6, -1));
    EXPECT_EQ(
            found.distances,
            std::vector<int32_t>(6, std::numeric_limits<int32_t>::max()));
    EXPECT_EQ(range_search(*index, q, 65), Range(3));
    EXPECT_TRUE(index->candidates(q.data()).empty());
    index->add(0, nullptr);
    EXPECT_EQ(index->ntotal, 0);
    EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(0, 10)), 0u);
    index->add(3, q.data());
    index->search(0, nullptr, 1, nullptr, nullptr);
    EXPECT_TRUE(search(*index, {}, 2).labels.empty());
    EXPECT_TRUE(range_search(*index, {}, 10).empty());
}

TEST(Search, PaddingBeyondTheCandidates) {
    const int d = 64;
    const Codes codes = random_codes(200, d, 1), q = random_codes(8, d, 2);
    const auto index = make(d, 2, 1, codes);
    // at most 2 M + 2 B M = 8 candidates
    const Found found = search(*index, q, 20);
    EXPECT_EQ(found, expected_search(*index, q, 20));
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(found.labels[i * 20 + 8], -1);
        EXPECT_NE(found.labels[i * 20], -1);
    }
}

TEST(Search, Selectors) {
    const int d = 72;
    const Codes codes = repeated_codes(200, d, 90, 1);
    const Codes q = near_codes(codes, 12, d, 4, 2);
    const auto index = make(d, 6, 3, codes);
    const faiss::IDSelectorRange some(50, 120);
    const std::vector<idx_t> none;
    const faiss::IDSelectorBatch nothing(0, none.data());
    for (const faiss::IDSelector* sel :
         std::vector<const faiss::IDSelector*>{&some, &nothing}) {
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelector*>(sel);
        EXPECT_EQ(
                search(*index, q, 10, &params),
                expected_search(*index, q, 10, sel));
        const Range found = range_search(*index, q, 30, &params);
        for (size_t i = 0; i < 12; i++) {
            const uint8_t* query = &q[i * d / 8];
            std::vector<std::pair<idx_t, int>> expected;
            for (const auto& [distance, id] :
                 ranked(*index, slow_candidates(*index, query), query, sel)) {
                if (distance < 30) {
                    expected.emplace_back(id, distance);
                }
            }
            std::sort(expected.begin(), expected.end());
            EXPECT_EQ(found[i], expected);
        }
    }
}

// distance < radius
TEST(Search, RangeIsStrict) {
    const int d = 16;
    Codes codes;
    for (int i = 0; i <= d; i++) { // code i has i ones
        const int bits = (1 << i) - 1;
        codes.push_back(uint8_t(bits & 255));
        codes.push_back(uint8_t(bits >> 8));
    }
    const auto index = make(d, 4, 100, codes);
    const Codes zero(2);
    for (int radius : {-1, 0, 1, 7, 16, 17, 1000}) {
        const Range found = range_search(*index, zero, radius);
        ASSERT_EQ(found[0].size(), size_t(std::clamp(radius, 0, d + 1)));
        for (size_t i = 0; i < found[0].size(); i++) {
            EXPECT_EQ(found[0][i].first, idx_t(i));
            EXPECT_EQ(found[0][i].second, int(i));
        }
    }
}

TEST(Search, Statistics) {
    const int d = 64;
    const Codes codes = random_codes(300, d, 1), q = random_codes(20, d, 2);
    const auto index = make(d, 5, 2, codes);
    size_t candidates = 0;
    for (int i = 0; i < 20; i++) {
        candidates += index->candidates(&q[i * 8]).size();
    }
    auto& stats = indexBinaryPermuted_stats;
    stats.reset();
    EXPECT_EQ(stats.nq + stats.ncandidates + stats.ntotal, 0u);
    search(*index, q, 3);
    EXPECT_EQ(stats.nq, 20u);
    EXPECT_EQ(stats.ncandidates, candidates);
    EXPECT_EQ(stats.ntotal, 20u * 300);
    search(*index, q, 1);
    EXPECT_EQ(stats.nq, 40u);
    EXPECT_EQ(stats.ncandidates, 2 * candidates);
    stats.reset();
    EXPECT_EQ(stats.nq + stats.ncandidates + stats.ntotal, 0u);
}

// "What searches have done": range searches too, as in FAISS's IndexBinaryHash.
TEST(Search, StatisticsOfRangeSearches) {
    const int d = 64;
    const Codes codes = random_codes(300, d, 1), q = random_codes(20, d, 2);
    const auto index = make(d, 5, 2, codes);
    auto& stats = indexBinaryPermuted_stats;
    stats.reset();
    search(*index, q, 3);
    const size_t candidates = stats.ncandidates;
    stats.reset();
    range_search(*index, q, 10);
    EXPECT_EQ(stats.nq, 20u);
    EXPECT_EQ(stats.ncandidates, candidates);
    EXPECT_EQ(stats.ntotal, 20u * 300);
}

// Codes back, merging.

TEST(Codes, Reconstruct) {
    const int d = 72, size = 9;
    const Codes codes = random_codes(40, d, 1);
    const auto index = make(d, 3, 2, codes);
    for (idx_t i : {0, 7, 39}) {
        Codes one(size);
        index->reconstruct(i, one.data());
        EXPECT_EQ(one, rows(codes, size, i, i + 1));
    }
    Codes some(20 * size);
    index->reconstruct_n(11, 20, some.data());
    EXPECT_EQ(some, rows(codes, size, 11, 31));
    index->reconstruct_n(40, 0, nullptr);
    for (idx_t i : {-1, 40}) {
        EXPECT_TRUE(
                throws([&] { index->reconstruct(i, some.data()); }, {"40"}));
    }
    EXPECT_TRUE(throws([&] { index->reconstruct_n(30, 11, some.data()); }));
    EXPECT_TRUE(throws([&] { index->reconstruct_n(3, -1, some.data()); }));
}

TEST(Codes, Merge) {
    const int d = 64;
    const Codes a = random_codes(40, d, 1), b = random_codes(60, d, 2);
    Codes both = a;
    both.insert(both.end(), b.begin(), b.end());
    for (int M : {0, 6}) {
        const auto index = make(d, M, 3, a);
        // its own parameters do not matter
        const auto other = make(d, 4, 9, b);
        index->merge_from(*other);
        expect_same_lists(*index, *make(d, M, 3, both));
        EXPECT_EQ(other->ntotal, 0);
        EXPECT_TRUE(other->xb.empty());
        other->add(3, b.data());
        EXPECT_EQ(other->ntotal, 3);
        const Codes before = index->xb;
        faiss::IndexBinaryFlat flat(d);
        EXPECT_TRUE(throws([&] { index->merge_from(flat); }, {"Permuted"}));
        EXPECT_TRUE(throws([&] { index->merge_from(*make(72, 4, 9)); }));
        EXPECT_TRUE(throws([&] { index->merge_from(*index); }));
        EXPECT_TRUE(throws([&] { index->merge_from(*other, 5); }, {"ids"}));
        EXPECT_EQ(index->xb, before);
        EXPECT_EQ(other->ntotal, 3);
    }
}

TEST(Codes, FilesAndCopies) {
    for (int d : {8, 72, 256}) {
        for (int n : {0, 1, 90}) {
            const Codes codes = repeated_codes(n, d, 40, 1);
            const Codes q = random_codes(6, d, 2);
            IndexBinaryPermuted index(d, 0.75, 3);
            index.M = n == 90 ? 11 : 0;
            index.seed = 77;
            index.max_gb = 0.01;
            index.add(n, codes.data());
            const TemporaryFile file;
            write_index_binary(&index, file.name.c_str());
            const auto read = read_index_binary(file.name.c_str());
            const auto copy = clone_binary_index(&index);
            for (faiss::IndexBinary* other : {read.get(), copy.get()}) {
                auto& same = dynamic_cast<IndexBinaryPermuted&>(*other);
                EXPECT_EQ(same.d, d);
                EXPECT_EQ(same.code_size, d / 8);
                EXPECT_EQ(same.eps, 0.75);
                EXPECT_EQ(same.M, index.M);
                EXPECT_EQ(same.B, 3);
                EXPECT_EQ(same.seed, 77);
                EXPECT_EQ(same.max_gb, 0.01);
                EXPECT_TRUE(same.is_trained);
                expect_same_lists(index, same);
                EXPECT_EQ(search(index, q, 3), search(same, q, 3));
                same.add(2, q.data());
                EXPECT_EQ(same.ntotal, n + 2);
            }
            EXPECT_EQ(index.ntotal, n);
        }
    }
}

TEST(Codes, TruncatedFiles) {
    const auto index = make(16, 3, 1, random_codes(20, 16, 1));
    const TemporaryFile file;
    write_index_binary(index.get(), file.name.c_str());
    for (auto size = std::filesystem::file_size(file.name); size > 0;) {
        size -= std::min<size_t>(size, 3);
        std::filesystem::resize_file(file.name, size);
        EXPECT_TRUE(throws([&] { read_index_binary(file.name.c_str()); }));
    }
}

// Strings.

TEST(Strings, Alone) {
    const auto check = [](const std::string& text,
                          double eps,
                          int M,
                          int B,
                          int64_t seed,
                          double max_gb) {
        const auto index = index_binary_factory(64, text);
        auto& permuted = dynamic_cast<IndexBinaryPermuted&>(*index);
        EXPECT_EQ(permuted.d, 64) << text;
        EXPECT_EQ(permuted.eps, eps) << text;
        EXPECT_EQ(permuted.M, M) << text;
        EXPECT_EQ(permuted.B, B) << text;
        EXPECT_EQ(permuted.seed, seed) << text;
        EXPECT_EQ(permuted.max_gb, max_gb) << text;
        EXPECT_TRUE(permuted.is_trained);
        EXPECT_TRUE(is_faiss_ext_string(text));
    };
    check("BPerm", 0.5, 0, 10, 1234, 8);
    check("BPerm(eps=0.5,B=10)", 0.5, 0, 10, 1234, 8);
    check("BPerm(eps=2.74)", 2.74, 0, 10, 1234, 8);
    check("BPerm(M=130,B=100,seed=3)", 0.5, 130, 100, 3, 8);
    check("BPerm(B=0,max_gb=0.5)", 0.5, 0, 0, 1234, 0.5);
    // below a map of ids
    const Codes codes = random_codes(20, 64, 1);
    const auto mapped = index_binary_factory(64, "IDMap2,BPerm(M=4,B=20)");
    std::vector<idx_t> ids(20);
    std::iota(ids.begin(), ids.end(), 100);
    mapped->add_with_ids(20, codes.data(), ids.data());
    EXPECT_EQ(search(*mapped, codes, 1).labels, ids);
    // the limit of the string holds
    const auto small = index_binary_factory(64, "BPerm(M=100,max_gb=3.52e-5)");
    small->add(8, codes.data());
    EXPECT_TRUE(throws([&] { small->add(1, codes.data()); }, {"max_gb"}));
}

TEST(Strings, BehindHashes) {
    const int d = 24, n = 400;
    const auto x = clustered_histograms(n, d, 5, 30, 1);
    for (const std::string scheme :
         {"SIK128(gaussian,gamma=20)", "KLSH128(chi2,p=60,t=12)"}) {
        const std::string text = scheme + ",BPerm(M=13,B=2,seed=5)";
        const auto binary = index_binary_factory(d, text);
        const auto index = index_factory(d, text);
        auto& hashed = dynamic_cast<IndexBinaryKernelHash&>(*binary);
        auto& storage = dynamic_cast<IndexBinaryPermuted&>(*hashed.storage);
        EXPECT_EQ(storage.d, 128);
        EXPECT_EQ(storage.M, 13);
        EXPECT_EQ(storage.B, 2);
        EXPECT_EQ(storage.seed, 5);
        hashed.train(n, x.data());
        hashed.add(n, x.data());
        index->train(n, x.data());
        index->add(n, x.data());
        EXPECT_EQ(storage.ntotal, n);
        Codes codes(n * 16);
        hashed.hash->encode(n, x.data(), codes.data());
        EXPECT_EQ(storage.xb, codes);
        const Found expected = search(storage, codes, 4);
        std::vector<float> distances(n * 4);
        std::vector<idx_t> labels(n * 4);
        index->search(n, x.data(), 4, distances.data(), labels.data());
        EXPECT_EQ(labels, expected.labels);
        for (int i = 0; i < n; i++) { // finds itself or an equal code
            EXPECT_EQ(distances[i * 4], 0);
        }
        // files and copies of the whole
        const TemporaryFile file;
        write_index(index.get(), file.name.c_str());
        const auto read = read_index(file.name.c_str());
        const auto copy = clone_index(index.get());
        for (faiss::Index* other : {read.get(), copy.get()}) {
            std::vector<idx_t> found(n * 4);
            other->search(n, x.data(), 4, distances.data(), found.data());
            EXPECT_EQ(found, labels);
        }
        index->reset();
        EXPECT_EQ(index->ntotal, 0);
        index->add(n, x.data());
        EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(0, 100)), 100u);
        EXPECT_EQ(index->ntotal, n - 100);
    }
}

TEST(Strings, Errors) {
    for (const auto& [text, says] :
         std::vector<std::pair<std::string, std::string>>{
                 {"BPerm(eps=0)", "eps"},
                 {"BPerm(eps=-1)", "eps"},
                 {"BPerm(eps=nan)", "eps"},
                 {"BPerm(M=-1)", "M"},
                 {"BPerm(M=1.5)", "M"},
                 {"BPerm(M=10,eps=0.5)", "'eps'"},
                 {"BPerm(B=-1)", "B"},
                 {"BPerm(seed=-1)", "seed"},
                 {"BPerm(max_gb=-1)", "max_gb"},
                 {"BPerm(b=3)", "'b'"},
                 {"BPerm(3)", "3"},
                 {"BPerm()", "argument"},
                 {"BPerm(M=3", "("},
                 {"BPerm(M=3)x", "x"},
                 {"BPerm(M=3),BFlat", ""},
                 {"BPerm,BPerm", ""}}) {
        EXPECT_TRUE(
                throws([&] { index_binary_factory(64, text); }, {text, says}))
                << text;
    }
    EXPECT_TRUE(throws([] { index_binary_factory(12, "BPerm"); }, {"12"}));
    EXPECT_TRUE(throws([] { index_binary_factory(0, "BPerm"); }, {"0"}));
    EXPECT_TRUE(throws([] { index_factory(64, "BPerm"); }, {"BPerm"}));
    EXPECT_TRUE(throws(
            [] { index_factory(8, "SIK64(gaussian),BPerm(M=0.5)"); }, {"M"}));
    EXPECT_TRUE(
            throws([] { index_factory(8, "SIK64(gaussian),BPermuted"); },
                   {"'BPermuted'", "BPerm(...)"}));
}

// Interrupts.

namespace {

/// Interrupts as often as it says.
struct Interrupt : faiss::InterruptCallback {
    int times;

    explicit Interrupt(int times) : times(times) {}

    bool want_interrupt() override {
        return times-- > 0;
    }
};

} // namespace

TEST(Interrupts, AddLeavesTheIndexAsItWas) {
    const int d = 64;
    const Codes codes = random_codes(300, d, 1);
    const Threads threads(1);
    const auto index = make(d, 0, 2, rows(codes, 8, 0, 200));
    const auto before = make(d, 0, 2, rows(codes, 8, 0, 200));
    // wait until the loop asks again
    const double asked = omp_get_wtime();
    while (omp_get_wtime() < asked + 0.15) {
    }
    faiss::InterruptCallback::instance = std::make_unique<Interrupt>(1);
    EXPECT_TRUE(throws(
            [&] { index->add(100, codes.data() + 1600); }, {"interrupted"}));
    faiss::InterruptCallback::clear_instance();
    EXPECT_EQ(index->ntotal, 200);
    expect_same_lists(*index, *before);
    index->add(100, codes.data() + 1600);
    expect_same_lists(*index, *make(d, 0, 2, codes));
}
