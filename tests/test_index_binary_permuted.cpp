// IndexBinaryPermuted against a slow implementation of its description, made
// of explicit strings of bits.

#include <faiss_ext/indexes/IndexBinaryPermuted.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/impl/IDSelector.h>
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

/// n codes of x with up to `flips` of their bits flipped
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

/// n codes, of which at most `distinct` differ
Codes repeated_codes(size_t n, int d, size_t distinct, uint64_t seed) {
    return near_codes(random_codes(distinct, d, seed), n, d, 0, seed + 1);
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
    return int(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

std::vector<int32_t> slow_candidates(
        const IndexBinaryPermuted& index,
        const uint8_t* query) {
    struct Entry {
        int prefix, list, below, distance;
    };
    const int n = int(index.ntotal), M = int(index.lists.size());
    std::vector<Entry> entries;
    std::vector<std::vector<std::pair<std::string, int32_t>>> lists(M);
    std::vector<int> low(M), high(M);
    for (int l = 0; l < M; l++) {
        const auto& permutation = index.lists[l].permutation;
        auto& list = lists[l];
        for (int i = 0; i < n; i++) {
            const uint8_t* code = &index.xb[size_t(i) * index.code_size];
            list.emplace_back(permuted(code, permutation), i);
        }
        std::sort(list.begin(), list.end());
        const std::string q = permuted(query, permutation);
        int at = 0; // the first entry that is not before the query
        while (at < n && list[at].first < q) {
            at++;
        }
        low[l] = high[l] = at;
        for (int i = 0; i < n; i++) {
            const bool below = i < at;
            entries.push_back(
                    {common_prefix(list[i].first, q),
                     l,
                     below,
                     below ? at - 1 - i : i - at});
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
          {40, 60, 0}}) {
        for (const Codes& codes :
             {random_codes(n, d, 1),
              repeated_codes(n, d, 5, 2),
              Codes(size_t(n) * size, 0xa5)}) {
            SCOPED_TRACE(testing::Message() << n << ' ' << M << ' ' << B);
            const auto index = make(d, M, B, codes);
            ASSERT_EQ(index->lists.size(), size_t(M));
            const auto slow = [&](const uint8_t* x) {
                const auto expected = slow_candidates(*index, x);
                EXPECT_EQ(index->candidates(x), expected);
                return expected;
            };
            Codes q = joined(
                    random_codes(3, d, 3), near_codes(codes, 5, d, 2, 4));
            q.insert(q.end(), size, 0);
            q.insert(q.end(), size, 0xff);
            expect_hamming_search(*index, codes, q, 20, d / 3, nullptr, slow);
            faiss::IDSelectorRange some(n / 4, n / 2);
            expect_hamming_search(*index, codes, q, 7, d / 2, &some, slow);
        }
    }
}

// Each list is a permutation of its own, with the codes in its order.
TEST_P(Dimensions, ListsAreSorted) {
    const int n = 120;
    const Codes codes = repeated_codes(n, d, 60, 1);
    const auto index = make(d, 12, 10, codes);
    std::set<std::vector<int32_t>> different;
    for (const auto& list : index->lists) {
        different.insert(list.permutation);
        const std::set<int32_t> bits_of_list(
                list.permutation.begin(), list.permutation.end());
        EXPECT_EQ(bits_of_list.size(), size_t(d));
        EXPECT_EQ(*bits_of_list.rbegin(), d - 1);
        std::set<std::pair<std::string, int32_t>> entries;
        for (int i = 0; i < n; i++) {
            entries.emplace(permuted(&codes[i * size], list.permutation), i);
        }
        std::vector<uint64_t> prefixes;
        std::vector<int32_t> ids;
        for (const auto& [bits, id] : entries) {
            uint64_t prefix = 0;
            for (int b = 0; b < 64; b++) {
                prefix = 2 * prefix + (b < d && bits[b] == '1');
            }
            prefixes.push_back(prefix);
            ids.push_back(id);
        }
        EXPECT_EQ(list.prefixes, prefixes);
        EXPECT_EQ(list.ids, ids);
    }
    EXPECT_EQ(different.size(), 12u);
}

// If all are candidates, search is that of a flat index: with B >= n, and with
// many lists, among which every code is near the query in one.
TEST_P(Dimensions, ManyListsOrNeighborsEqualFlat) {
    const int n = 200;
    std::vector<int32_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    const auto check = [&](int M, int B, const Codes& codes) {
        const auto index = make(d, M, B, codes);
        const Codes q =
                joined(random_codes(6, d, 3), near_codes(codes, 10, d, 2, 4));
        for (size_t i = 0; i < q.size(); i += size) {
            EXPECT_EQ(index->candidates(&q[i]), ids);
        }
        for (int radius : {0, 3, d / 2, d + 1}) {
            expect_hamming_search(*index, codes, q, n + 20, radius);
        }
    };
    for (int B : {n, 1 << 30}) {
        check(1, B, random_codes(n, d, 1));
        check(3, B, repeated_codes(n, d, 9, 2));
    }
    if (d >= 64) {
        check(600, 20, random_codes(n, d, 1));
    }
}

// The first bit of a permutation is uniform, and so is the place of bit 0.
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
    EXPECT_NE(first_of(3), first_of(3 + (int64_t(1) << 40))); // all of its bits
}

// Neighbours are found where few codes are looked at: a code that differs in 3
// of 256 bits shares the first 20 of a random permutation with probability
// (1 - 20/256)^3 > 0.78, and 20 bits single out one of 2,000 random codes; so
// that of 20 lists one tells it with probability 1 - 0.22^20.
TEST(Search, FindsNeighborsAmongFewCandidates) {
    const int d = 256;
    const Codes codes = random_codes(2000, d, 1);
    const Codes q = near_codes(codes, 100, d, 3, 2);
    const auto index = make(d, 20, 1, codes);
    faiss::IndexBinaryFlat flat(d);
    flat.add(2000, codes.data());
    size_t candidates = 0;
    for (int i = 0; i < 100; i++) {
        candidates += index->candidates(&q[i * 32]).size();
    }
    EXPECT_LE(candidates, 100u * 80); // at most 2 M + 2 B M

    auto& stats = indexBinaryPermuted_stats;
    stats.reset();
    EXPECT_EQ(search(*index, q, 1).labels, search(flat, q, 1).labels);
    for (size_t searches : {1, 2}) {
        EXPECT_EQ(stats.nq, searches * 100);
        EXPECT_EQ(stats.ncandidates, searches * candidates);
        EXPECT_EQ(stats.ntotal, searches * 100 * 2000);
        range_search(*index, q, 10); // counts, too
    }
    stats.reset();
    EXPECT_EQ(stats.nq + stats.ncandidates + stats.ntotal, 0u);
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
    // Kulis and Grauman: 130 lists for 79,302,017 images is an eps of 2.74 if
    // M = n^(1 / (1 + eps))
    index.eps = 2.74;
    EXPECT_NEAR(index.num_lists(79302017), 2 * 130, 6);
    index.M = 130;
    EXPECT_EQ(index.num_lists(1000000), 130);
}

// Adding and removing.

TEST_P(Dimensions, BatchesEqualOneAdd) {
    const Codes codes = repeated_codes(200, d, 80, 1);
    for (int M : {0, 7}) {
        const auto in_batches = make(d, M, 5);
        size_t done = 0;
        for (size_t n : {1, 50, 0, 149}) {
            in_batches->add(n, codes.data() + done * size);
            done += n;
            expect_same_lists(
                    *in_batches, *make(d, M, 5, rows(codes, size, 0, done)));
        }
        EXPECT_EQ(in_batches->lists.size(), M ? 7u : 69u); // 2 n^(2/3) = 68.4
        const auto again = make(d, M, 5, codes);
        again->rebuild();
        expect_same_lists(*again, *in_batches);
        again->reset();
        EXPECT_EQ(again->ntotal, 0);
        again->add(200, codes.data());
        expect_same_lists(*again, *in_batches);
    }
}

TEST_P(Dimensions, RemovingEqualsAFreshIndexOfTheRest) {
    const int n = 150;
    const Codes codes = repeated_codes(n, d, 60, 1);
    const std::function<bool(int)> are_removed[] = {
            [](int) { return false; },
            [](int i) { return i % 3 == 0; },
            [](int i) { return i < 140; },
            [](int) { return true; }};
    for (int M : {0, 9}) {
        for (const auto& is_removed : are_removed) {
            std::vector<idx_t> gone;
            Codes rest;
            for (int i = 0; i < n; i++) {
                if (is_removed(i)) {
                    gone.push_back(i);
                } else {
                    rest = joined(rest, rows(codes, size, i, i + 1));
                }
            }
            const auto index = make(d, M, 4, codes);
            const faiss::IDSelectorBatch sel(gone.size(), gone.data());
            EXPECT_EQ(index->remove_ids(sel), gone.size());
            expect_same_lists(*index, *make(d, M, 4, rest));
            // and goes on like one
            index->add(n, codes.data());
            expect_same_lists(*index, *make(d, M, 4, joined(rest, codes)));
        }
    }
}

TEST(Adding, ThreadsAndBatchesMakeNoDifference) {
    const int d = 72;
    const Codes codes = repeated_codes(400, d, 150, 1);
    const Codes q = near_codes(codes, 20, d, 3, 2);
    const auto one = make(d, 30, 2, codes);
    const auto found = search(*one, q, 5);
    const Ranges ranges = range_search(*one, q, 20);
    const Threads threads(5);
    expect_same_lists(*make(d, 30, 2, codes), *one);
    expect_same(search(*one, q, 5), found);
    EXPECT_EQ(range_search(*one, q, 20), ranges);
    EXPECT_EQ(
            search(*one, rows(q, d / 8, 7, 8), 5).labels,
            rows(found.labels, 5, 7, 8));
}

// 12 M n bytes.
TEST(Adding, LimitOfMemory) {
    const int d = 64;
    const Codes codes = random_codes(201, d, 1);
    auto index = make(d, 10, 3);
    index->max_gb = 10 * (12 * 50 + 4 * d + 0.5) / 1e9;
    index->add(50, codes.data());
    EXPECT_TRUE(throws([&] { index->add(1, &codes[400]); }, "max_gb", "51"));
    expect_same_lists(*index, *make(d, 10, 3, rows(codes, 8, 0, 50)));
    index->max_gb *= 2;
    index->add(50, &codes[400]);
    EXPECT_EQ(index->ntotal, 100);
    // M from eps grows with n
    IndexBinaryPermuted growing(d, 0.5);
    growing.max_gb = 69 * (12 * 200 + 4 * d + 0.5) / 1e9;
    growing.add(100, codes.data());
    EXPECT_TRUE(throws([&] { growing.add(101, &codes[800]); }));
    growing.add(100, &codes[800]);
    EXPECT_EQ(growing.ntotal, 200);
    // an absurd number of lists is refused, not tried
    EXPECT_TRUE(throws([&] { make(d, 1 << 24, 1, codes); }));
}

/// Interrupts once.
struct Interrupt : faiss::InterruptCallback {
    int left = 1;

    bool want_interrupt() override {
        return left-- > 0;
    }
};

TEST(Adding, AnInterruptLeavesTheIndexAsItWas) {
    const Codes codes = random_codes(300, 64, 1);
    const auto index = make(64, 0, 2, rows(codes, 8, 0, 200));
    // wait until the loop asks again
    const double asked = omp_get_wtime();
    while (omp_get_wtime() < asked + 0.15) {
    }
    faiss::InterruptCallback::instance = std::make_unique<Interrupt>();
    EXPECT_TRUE(throws([&] { index->add(100, &codes[1600]); }, "interrupted"));
    faiss::InterruptCallback::clear_instance();
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

    int32_t distance;
    idx_t label;
    Codes some(20);
    const auto find = [&](idx_t n, const uint8_t* x, idx_t k) {
        index->search(n, x, k, &distance, &label);
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
             {[] { IndexBinaryPermuted(0); }, "0"},
             {[] { IndexBinaryPermuted(12); }, "8"},
             {[] { IndexBinaryPermuted(64, 0); }, "eps"},
             {[] { IndexBinaryPermuted(64, NAN); }, "eps"},
             {[] { IndexBinaryPermuted(64, 0.5, -1); }, "B"}});
    EXPECT_EQ(index->ntotal, 3);
}

TEST(Codes, MergeAndReconstruct) {
    const Codes a = random_codes(40, 64, 1), b = random_codes(60, 64, 2);
    const auto index = make(64, 0, 3, a);
    const auto other = make(64, 4, 9, b); // its parameters do not matter
    faiss::IndexBinaryFlat flat(64);
    expect_throws(
            {{[&] { index->merge_from(flat); }, "Permuted"},
             {[&] { index->merge_from(*make(72, 4, 9)); }, "bits"},
             {[&] { index->merge_from(*index); }, "another"},
             {[&] { index->merge_from(*other, 5); }, "ids"}});
    EXPECT_EQ(index->xb, a);
    EXPECT_EQ(other->xb, b);
    index->merge_from(*other);
    expect_same_lists(*index, *make(64, 0, 3, joined(a, b)));
    EXPECT_EQ(other->ntotal, 0);
    other->add(60, b.data());
    expect_same_lists(*other, *make(64, 4, 9, b));
    Codes some(20 * 8), one(8);
    index->reconstruct_n(30, 20, some.data());
    EXPECT_EQ(some, rows(joined(a, b), 8, 30, 50));
    index->reconstruct(99, one.data());
    EXPECT_EQ(one, rows(b, 8, 59, 60));
    index->reconstruct_n(100, 0, nullptr);
}

// Strings, files and copies keep the parameters.
TEST(Strings, Parameters) {
    struct Case {
        const char* text;
        double eps;
        int M, B;
        int64_t seed;
        double max_gb;
    };
    const Codes codes = random_codes(20, 64, 1);
    for (const Case& c :
         {Case{"BPerm(eps=2.74)", 2.74, 0, 10, 1234, 8},
          {"BPerm(M=130,B=100,seed=3)", 0.5, 130, 100, 3, 8},
          {"BPerm(B=0,max_gb=0.5)", 0.5, 0, 0, 1234, 0.5}}) {
        SCOPED_TRACE(c.text);
        const auto index = index_binary_factory(64, c.text);
        index->add(20, codes.data());
        faiss::VectorIOWriter writer;
        write_index_binary(index.get(), &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        const auto read = read_index_binary(&reader);
        const auto copy = clone_binary_index(index.get());
        for (faiss::IndexBinary* i : {index.get(), read.get(), copy.get()}) {
            const auto& same = dynamic_cast<IndexBinaryPermuted&>(*i);
            EXPECT_EQ(
                    std::tuple(
                            same.eps, same.M, same.B, same.seed, same.max_gb),
                    std::tuple(c.eps, c.M, c.B, c.seed, c.max_gb));
            expect_same_lists(same, dynamic_cast<IndexBinaryPermuted&>(*index));
        }
    }
}

TEST(Strings, Errors) {
    for (const auto& [text, names] :
         {std::pair("BPerm(eps=0)", "eps"),
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
          {"BPerm(M=3),BFlat", "BFlat"}}) {
        EXPECT_TRUE(
                throws([&] { index_binary_factory(64, text); }, text, names));
    }
    expect_throws(
            {{[] { index_binary_factory(12, "BPerm"); }, "12"},
             {[] { index_binary_factory(0, "BPerm"); }, "0"},
             {[] { index_factory(64, "BPerm"); }, "BPerm"},
             {[] { index_factory(8, "RHBE64,BPermuted"); }, "'BPermuted'"}});
}

} // namespace
