// SPDX-License-Identifier: MIT
// IndexBinaryPermuted against a slow implementation of its description with
// strings of bits.

#include <faiss_ext/indexes/IndexBinaryPermuted.h>

#include <set>
#include <tuple>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/impl/io.h>

#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

Codes random_codes(size_t n, int d, uint64_t seed) {
    return random_bytes(n * d / 8, seed);
}

/// Returns n codes of x with up to `flips` of their bits flipped.
Codes near_codes(const Codes& x, size_t n, int d, int flips, uint64_t seed) {
    std::mt19937_64 rng(seed);
    const size_t size = d / 8, nx = x.size() / size;
    Codes codes;
    for (size_t i = 0; i < n; i++) {
        const auto from = x.begin() + rng() % nx * size;
        codes.insert(codes.end(), from, from + size);
        for (int f = 0; f < flips; f++) {
            codes[i * size + rng() % size] ^= uint8_t(1 << rng() % 8);
        }
    }
    return codes;
}

/// Returns n codes, of which at most `distinct` differ.
Codes repeated_codes(size_t n, int d, size_t distinct, uint64_t seed) {
    return near_codes(random_codes(distinct, d, seed), n, d, 0, seed + 1);
}

std::unique_ptr<IndexBinaryPermuted> make(
        int d,
        int M,
        int B,
        const Codes& codes = {},
        double eps = 0.5) {
    auto index = std::make_unique<IndexBinaryPermuted>(d, eps, B);
    index->M = M;
    index->add(codes.size() / (d / 8), codes.data());
    return index;
}

// A literal implementation of the description.

/// Returns the permuted bits of a code as text.
std::string permuted(const uint8_t* code, const std::vector<int32_t>& order) {
    std::string bits;
    for (int32_t i : order) {
        bits += code[i / 8] >> (i % 8) & 1 ? '1' : '0';
    }
    return bits;
}

int common_prefix(const std::string& a, const std::string& b) {
    return int(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

/// Returns all codes, permuted and sorted, with their ids.
std::vector<std::pair<std::string, int32_t>> sorted_codes(
        const IndexBinaryPermuted& index,
        const std::vector<int32_t>& order) {
    std::vector<std::pair<std::string, int32_t>> list;
    for (int i = 0; i < index.ntotal; i++) {
        list.emplace_back(permuted(&index.xb[i * index.code_size], order), i);
    }
    std::sort(list.begin(), list.end());
    return list;
}

std::vector<int32_t> slow_candidates(
        const IndexBinaryPermuted& index,
        const uint8_t* query) {
    // for each entry -prefix, list, whether below, distance
    std::vector<std::tuple<int, int, bool, int>> entries;
    const int n = int(index.ntotal), M = int(index.lists.size());
    std::vector<std::vector<std::pair<std::string, int32_t>>> lists;
    std::vector<int> low, high; // visited entries are [low, high)
    for (int l = 0; l < M; l++) {
        const auto& permutation = index.lists[l].permutation;
        const auto& list = lists.emplace_back(sorted_codes(index, permutation));
        const std::string q = permuted(query, permutation);
        const int at = int( // the first entry that is not before the query
                std::lower_bound(list.begin(), list.end(), std::pair(q, 0)) -
                list.begin());
        low.push_back(at);
        high.push_back(at);
        for (int i = 0; i < n; i++) {
            const int prefix = common_prefix(list[i].first, q);
            const bool below = i < at;
            entries.emplace_back(-prefix, l, below, below ? at - i : i - at);
        }
    }
    std::sort(entries.begin(), entries.end());
    entries.resize(std::min<size_t>(entries.size(), 2 * M));
    for (const auto& [prefix, l, below, distance] : entries) {
        below ? low[l]-- : high[l]++;
    }
    std::set<int32_t> found;
    for (int l = 0; l < M; l++) {
        const int end = std::min(n, high[l] + index.B);
        for (int i = std::max(0, low[l] - index.B); i < end; i++) {
            found.insert(lists[l][i].second);
        }
    }
    return {found.begin(), found.end()};
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

struct Dimensions : testing::TestWithParam<int> {
    const int d = GetParam(), size = d / 8;
};

INSTANTIATE_TEST_SUITE_P(
        Bits,
        Dimensions,
        testing::Values(8, 64, 72, 256),
        testing::PrintToStringParamName());

TEST_P(Dimensions, CandidatesEqualTheDescription) {
    for (const auto& [n, M, B] :
         {std::tuple(1, 1, 0),
          {2, 3, 0},
          {120, 6, 3},
          {90, 25, 1},
          {40, 60, 0},
          {50, 2, 50}, // all are candidates
          {50, 1, 1 << 30}}) {
        for (const Codes& codes :
             {random_codes(n, d, 1),
              repeated_codes(n, d, 5, 2),
              Codes(size_t(n) * size, 0xa5)}) {
            SCOPED_TRACE(testing::Message() << n << ' ' << M << ' ' << B);
            const auto index = make(d, M, B, codes);
            ASSERT_EQ(index->lists.size(), size_t(M));
            const auto slow = [&, n = n, B = B](const uint8_t* x) {
                const auto expected = slow_candidates(*index, x);
                EXPECT_EQ(index->candidates(x), expected);
                EXPECT_TRUE(B < n || int(expected.size()) == n);
                return expected;
            };
            Codes q = joined(
                    random_codes(3, d, 3), near_codes(codes, 5, d, 2, 4));
            q.insert(q.end(), size, 0);
            q.insert(q.end(), size, 0xff);
            expect_hamming_search(*index, codes, q, 20, d / 3, nullptr, slow);
            // few selected codes are all compared
            faiss::IDSelectorRange some(n / 4, n / 2);
            expect_hamming_search(*index, codes, q, 7, d / 2, &some);
        }
    }
}

TEST(Filters, ManySelectedCodes) {
    const int d = 64, n = 50'000, k = 10;
    const Codes codes = random_codes(n, d, 1), q = random_codes(5, d, 2);
    faiss::IDSelectorRange half(0, n / 2), third(0, n / 3);
    // the lists of this one give fewer than k: then all are compared
    expect_hamming_search(*make(d, 1, 0, codes), codes, q, k, 0, &half);
    const auto index = make(d, 3, 100, codes);
    const auto num_compared = [&](faiss::IDSelector* sel) {
        indexBinaryPermuted_stats.reset();
        faiss::SearchParameters params;
        params.sel = sel;
        std::vector<int32_t> distances(5 * k);
        std::vector<idx_t> labels(5 * k);
        index->search(5, q.data(), k, distances.data(), labels.data(), &params);
        for (idx_t label : labels) {
            EXPECT_TRUE(sel->is_member(label));
        }
        return double(indexBinaryPermuted_stats.ncandidates);
    };
    faiss::IDSelectorRange all(0, n);
    const double without = num_compared(&all);
    // as many selected codes are compared on average; up to 9,000 are asked for
    const double error = 9000 * hoeffding(9000);
    EXPECT_NEAR(num_compared(&half), without, error);
    EXPECT_NEAR(num_compared(&third), without, error);
}

// Each list has its own permutation and contains the codes in its order.
TEST_P(Dimensions, ListsAreSorted) {
    const auto index = make(d, 12, 10, repeated_codes(120, d, 60, 1));
    std::set<std::vector<int32_t>> different;
    for (const auto& list : index->lists) {
        different.insert(list.permutation);
        std::vector<int32_t> bits = list.permutation;
        std::sort(bits.begin(), bits.end());
        for (int i = 0; i < d; i++) {
            EXPECT_EQ(bits[i], i);
        }
        const auto expected = sorted_codes(*index, list.permutation);
        for (size_t i = 0; i < 120; i++) {
            uint64_t prefix = 0;
            for (int b = 0; b < 64; b++) {
                prefix = 2 * prefix + (b < d && expected[i].first[b] == '1');
            }
            ASSERT_EQ(list.prefixes[i], prefix);
            ASSERT_EQ(list.ids[i], expected[i].second);
        }
    }
    EXPECT_EQ(different.size(), 12u);
}

// The first bit of a permutation is uniform, and so is the position of bit 0.
TEST(Permutations, AreUniform) {
    const int d = 16, M = 4000;
    const auto index = make(d, M, 0, random_codes(1, d, 1));
    std::vector<int> first(d), place(d);
    for (const auto& list : index->lists) {
        const auto& p = list.permutation;
        first[p[0]]++;
        place[std::find(p.begin(), p.end(), 0) - p.begin()]++;
    }
    for (int i = 0; i < d; i++) {
        EXPECT_NEAR(double(first[i]) / M, 1.0 / d, hoeffding(M));
        EXPECT_NEAR(double(place[i]) / M, 1.0 / d, hoeffding(M));
    }
}

TEST(Permutations, AreDrawnByTheSeed) {
    const auto first_of = [&](int64_t seed) {
        auto index = make(64, 5, 1);
        index->seed = seed;
        index->add(1, random_codes(1, 64, 1).data());
        return index->lists[0].permutation;
    };
    EXPECT_EQ(first_of(3), first_of(3));
    EXPECT_NE(first_of(3), first_of(4));
    // all bits of the seed matter
    EXPECT_NE(first_of(3), first_of(3 + (int64_t(1) << 40)));
}

// Neighbours are found among few candidates. A code that differs in 3 of 256
// bits shares the first 20 bits of a random permutation with probability (1 -
// 20/256)^3 > 0.78, and 20 bits single out one of 2,000 random codes. Hence one
// of 20 lists finds it with probability 1 - 0.22^20.
TEST(Search, FindsNeighborsAmongFewCandidates) {
    const int d = 256;
    const Codes codes = random_codes(2000, d, 1);
    const Codes q = near_codes(codes, 100, d, 3, 2);
    const auto index = make(d, 20, 1, codes);
    faiss::IndexBinaryFlat flat(d);
    flat.add(2000, codes.data());
    size_t candidates = 0;
    for (size_t i = 0; i < q.size(); i += 32) {
        candidates += index->candidates(&q[i]).size();
    }
    EXPECT_LE(candidates, 100u * 80); // at most 2 M + 2 B M

    auto& stats = indexBinaryPermuted_stats;
    stats.reset();
    EXPECT_EQ(search(*index, q, 1).labels, search(flat, q, 1).labels);
    for (size_t searches : {1, 2}) {
        EXPECT_EQ(stats.nq, searches * 100);
        EXPECT_EQ(stats.ncandidates, searches * candidates);
        EXPECT_EQ(stats.ntotal, searches * 100 * 2000);
        range_search(*index, q, 10); // this counts, too
    }
    stats.reset();
    EXPECT_EQ(stats.nq + stats.ncandidates + stats.ntotal, 0u);
    const Ranges ranges = range_search(*index, q, 10);
    const Threads threads(3);
    EXPECT_EQ(range_search(*index, q, 10), ranges);
}

TEST(Lists, NumberFromEps) {
    IndexBinaryPermuted index(64);
    for (double eps : {0.1, 1.0, 10.0}) {
        index.eps = eps;
        for (idx_t n : {1, 2, 1000, 1000000}) {
            EXPECT_EQ(
                    index.num_lists(n),
                    std::ceil(2 * std::pow(double(n), 1 / (1 + eps))));
        }
    }
    // Kulis and Grauman use 130 lists for 79,302,017 images; this is an eps of
    // 2.74 if M = n^(1 / (1 + eps))
    index.eps = 2.74;
    EXPECT_NEAR(index.num_lists(79302017), 2 * 130, 6);
    index.M = 130;
    EXPECT_EQ(index.num_lists(1000000), 130);
}

// Adding and removing.

TEST_P(Dimensions, BatchesEqualOneAdd) {
    const Codes codes = repeated_codes(200, d, 80, 1);
    for (int M : {0, 7}) {
        const auto all = make(d, M, 5, codes), in_batches = make(d, M, 5);
        size_t done = 0;
        for (size_t n : {1, 50, 0, 100}) {
            in_batches->add(n, codes.data() + done * size);
            done += n;
            expect_same_lists(
                    *in_batches, *make(d, M, 5, rows(codes, size, 0, done)));
        }
        // the parameters of the merged index do not matter
        const auto rest = make(d, 4, 9, rows(codes, size, done, 200));
        in_batches->merge_from(*rest);
        expect_same_lists(*in_batches, *all);
        expect_same_lists(*rest, *make(d, 4, 9));
        EXPECT_EQ(all->lists.size(), M ? 7u : 69u); // 2 n^(2/3) = 68.4
        const Threads threads(3);
        in_batches->rebuild();
        expect_same_lists(*in_batches, *all);
        in_batches->reset();
        in_batches->add(200, codes.data());
        expect_same_lists(*in_batches, *all);
    }
}

TEST_P(Dimensions, RemovingEqualsAFreshIndexOfTheRest) {
    const int n = 150;
    const Codes codes = repeated_codes(n, d, 60, 1);
    const std::vector<idx_t> ids = {0, 3, 4, 70, 71, 75, 149};
    faiss::IDSelectorBatch some(ids.size(), ids.data());
    faiss::IDSelectorRange none(0, 0), most(0, 140), all(0, n);
    for (faiss::IDSelector* sel :
         std::vector<faiss::IDSelector*>{&none, &some, &most, &all}) {
        Codes rest;
        for (int i = 0; i < n; i++) {
            if (!sel->is_member(i)) {
                rest = joined(rest, rows(codes, size, i, i + 1));
            }
        }
        for (int M : {0, 9}) {
            const auto index = make(d, M, 4, codes);
            EXPECT_EQ(index->remove_ids(*sel), n - rest.size() / size);
            expect_same_lists(*index, *make(d, M, 4, rest));
            // and continues like one
            index->add(n, codes.data());
            expect_same_lists(*index, *make(d, M, 4, joined(rest, codes)));
        }
    }
}

// Few codes are found by binary search; many are removed in one pass.
TEST_P(Dimensions, LastCodesTakeThePlacesOfRemovedOnes) {
    const int n = 1200;
    const Codes codes = repeated_codes(n, d, 60, 1),
                more = repeated_codes(300, d, 60, 1);
    std::mt19937 random(2);
    constexpr double eps = 1; // 70 lists for M = 0
    for (const int M : {0, 9}) {
        const auto all = make(d, M, 4, codes, eps);
        for (const idx_t count : {1, 2, 300, n}) {
            for (const bool is_replaced : {false, true}) {
                SCOPED_TRACE(testing::Message() << count << ' ' << M);
                if (is_replaced && count == n) {
                    continue;
                }
                std::vector<idx_t> places(n);
                std::iota(places.begin(), places.end(), 0);
                std::shuffle(places.begin(), places.end(), random);
                places.resize(count);
                IndexBinaryPermuted index(*all);
                Codes rest = codes;
                if (is_replaced) {
                    const Codes added = rows(more, size, 0, count);
                    const auto moves = PlaceMoves::of_last(n + count, places);
                    const auto move = index.prepare_moves(moves);
                    index.add(count, added.data());
                    move();
                    rest = joined(rest, added);
                    moves.apply_to(rest.data(), size);
                } else {
                    std::sort(places.begin(), places.end());
                    const PlaceMoves moves(n, places);
                    index.prepare_moves(moves)();
                    moves.apply_to(rest.data(), size);
                }
                rest.resize(index.ntotal * size);
                expect_same_lists(index, *make(d, M, 4, rest, eps));
            }
        }
    }
}

TEST(Removing, CodesThatWereChangedByHandAreRefused) {
    const auto index = make(64, 2, 4, random_codes(600, 64, 1));
    index->xb[0] ^= 1;
    const PlaceMoves moves(600, {0});
    EXPECT_TRUE(throws([&] { index->prepare_moves(moves); }, "rebuild()"));
    index->rebuild();
    index->prepare_moves(moves)();
    EXPECT_EQ(index->ntotal, 599);
}

/// Returns the size in bytes, including the lists' own overhead.
double size_of_lists(int M, int n, int d) {
    return M * (12.0 * n + 4.0 * d + 120);
}

TEST(Adding, LimitOfMemory) {
    const int d = 64;
    const Codes codes = random_codes(201, d, 1);
    auto index = make(d, 10, 3);
    index->max_gb = (size_of_lists(10, 50, d) + 5) / 1e9;
    index->add(50, codes.data());
    EXPECT_TRUE(throws([&] { index->add(1, &codes[400]); }, "max_gb", "51"));
    expect_same_lists(*index, *make(d, 10, 3, rows(codes, 8, 0, 50)));
    index->max_gb *= 2;
    index->add(50, &codes[400]);
    EXPECT_EQ(index->ntotal, 100);
    // M from eps grows with n
    IndexBinaryPermuted growing(d, 0.5);
    growing.max_gb = (size_of_lists(69, 200, d) + 35) / 1e9;
    growing.add(100, codes.data());
    EXPECT_TRUE(throws([&] { growing.add(101, &codes[800]); }));
    growing.add(100, &codes[800]);
    EXPECT_EQ(growing.ntotal, 200);
    // an absurd number of lists is refused, not tried
    EXPECT_TRUE(throws([&] { make(d, 1 << 24, 1, codes); }));
}

TEST(Reading, LimitOfMemory) {
    const auto index = make(64, 10, 3, random_codes(50, 64, 1));
    const Bytes bytes = bytes_of(*index);
    const auto read = [&] { return from_bytes<faiss::IndexBinary>(bytes); };
    struct Restored {
        const double usual = IndexBinaryPermuted::max_gb_read;
        ~Restored() {
            IndexBinaryPermuted::max_gb_read = usual;
        }
    } restored;
    const double needed = size_of_lists(10, 50, 64) / 1e9;
    IndexBinaryPermuted::max_gb_read = needed / 1.01;
    EXPECT_TRUE(throws(read, "max_gb_read", "10 sorted lists of 50 codes"));
    EXPECT_EQ(clone_binary_index(index.get())->ntotal, 50);
    IndexBinaryPermuted::max_gb_read = needed * 1.01;
    EXPECT_EQ(read()->ntotal, 50);
    // with lists of one code, most memory is overhead
    EXPECT_TRUE(throws(
            [] {
                IndexBinaryPermuted small(8);
                small.M = 1 << 20;
                small.max_gb = 0.1;
                const uint8_t code = 0;
                small.add(1, &code);
            },
            "max_gb"));
}

TEST(Adding, AnInterruptLeavesTheIndexAsItWas) {
    const Codes codes = random_codes(300, 64, 1);
    const auto index = make(64, 0, 2, rows(codes, 8, 0, 200));
    EXPECT_TRUE(interrupted_at(1, [&] { index->add(100, &codes[1600]); }));
    expect_same_lists(*index, *make(64, 0, 2, rows(codes, 8, 0, 200)));
    index->add(100, &codes[1600]);
    expect_same_lists(*index, *make(64, 0, 2, codes));
}

TEST(Calls, WithNothingOrBad) {
    const auto index = make(16, 0, 1);
    const Codes q = random_codes(3, 16, 1);
    expect_hamming_search(*index, {}, q, 2, 17);
    EXPECT_TRUE(index->candidates(q.data()).empty());
    EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(0, 10)), 0u);
    index->add(3, q.data());
    index->add(0, nullptr);
    index->search(0, nullptr, 1, nullptr, nullptr);
    EXPECT_TRUE(range_search(*index, {}, 10).empty());
    Codes some(20);
    index->reconstruct_n(1, 2, some.data());
    EXPECT_EQ(rows(some, 2, 0, 2), rows(q, 2, 1, 3));
    index->reconstruct(2, some.data());
    EXPECT_EQ(rows(some, 2, 0, 1), rows(q, 2, 2, 3));
    index->reconstruct_n(3, 0, nullptr);

    faiss::IndexBinaryFlat flat(16);
    const auto find = [&](idx_t n, const uint8_t* x, idx_t k) {
        index->search(n, x, k, nullptr, nullptr);
    };
    expect_throws(
            {{[&] { index->add(-1, q.data()); }, "-1"},
             {[&] { index->add(1, nullptr); }, "null"},
             {[&] { find(1, q.data(), 0); }, "k is 0"},
             {[&] { find(-1, q.data(), 1); }, "-1"},
             {[&] { find(1, nullptr, 1); }, "null"},
             {[&] { index->reconstruct(-1, some.data()); }, "3 vectors"},
             {[&] { index->reconstruct(3, some.data()); }, "3 vectors"},
             {[&] { index->reconstruct_n(1, 3, some.data()); }, "3 vectors"},
             {[&] { index->reconstruct_n(1, -1, some.data()); }, "3 vectors"},
             {[&] { index->merge_from(flat); }, "Permuted"},
             {[&] { index->merge_from(*make(72, 4, 9)); }, "bits"},
             {[&] { index->merge_from(*index); }, "itself"},
             {[&] { index->merge_from(*make(16, 4, 9, q), 5); }, "ids"},
             {[] { IndexBinaryPermuted(0); }, "0"},
             {[] { IndexBinaryPermuted(12); }, "8"},
             {[] { IndexBinaryPermuted(64, NAN); }, "eps"},
             {[] { IndexBinaryPermuted(64, 0.5, -1); }, "B"}});
    EXPECT_EQ(index->xb, q);
}

// Strings and copies keep the parameters.
TEST(Strings, Parameters) {
    using Parameters = std::tuple<double, int, int, int64_t, double>;
    for (const auto& [text, expected] :
         {std::pair("BPerm(eps=2.74)", Parameters(2.74, 0, 0, 1234, 8)),
          {"BPerm(M=130,B=100,seed=3)", Parameters(0.5, 130, 100, 3, 8)},
          {"BPerm(B=7,max_gb=0.5)", Parameters(0.5, 0, 7, 1234, 0.5)}}) {
        const auto made = index_binary_factory(64, text);
        const auto copy = clone_binary_index(made.get());
        const auto& i = dynamic_cast<IndexBinaryPermuted&>(*copy);
        EXPECT_EQ(Parameters(i.eps, i.M, i.B, i.seed, i.max_gb), expected)
                << text;
    }
}

TEST(Strings, Errors) {
    for (const auto& [text, names] :
         {std::pair("BPerm(eps=0)", "eps"),
          {"BPerm(M=-1)", "M"},
          {"BPerm(M=1.5)", "M"},
          {"BPerm(M=10,eps=0.5)", "'eps'"},
          {"BPerm(B=-1)", "B"},
          {"BPerm(seed=-1)", "seed"},
          {"BPerm(max_gb=-1)", "max_gb"},
          {"BPerm(3)", "3"},
          {"BPerm()", "argument"},
          {"BPerm(M=3),BFlat", "BFlat"}}) {
        EXPECT_TRUE(
                throws([&text = text] { index_binary_factory(64, text); },
                       text,
                       names));
    }
    expect_throws(
            {{[] { index_factory(64, "BPerm"); }, "BPerm"},
             {[] { index_factory(8, "RHBE64,BPermuted"); }, "'BPermuted'"}});
}

} // namespace
