// SPDX-License-Identifier: MIT
// IndexBinaryFlatKernel against fractions that are counted bit by bit.

#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <random>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <omp.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/JaccardKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Codes = std::vector<uint8_t>;

constexpr int32_t none = std::numeric_limits<int32_t>::max();

/// Bytes of a set of d bits.
size_t size_of(int d) {
    return (d + 7) / 8;
}

/// The bits are in the order of numpy.packbits.
uint8_t bit_in_byte(int bit) {
    return uint8_t(0x80 >> bit % 8);
}

bool has(const uint8_t* code, int bit) {
    return code[bit / 8] & bit_in_byte(bit);
}

/// Returns sets of very different sizes, some empty and some full. Every third
/// row is near one of a few others, so that kernel values are large.
Codes random_sets(size_t n, int d, uint64_t seed) {
    std::mt19937_64 rng(seed);
    const size_t size = size_of(d);
    Codes codes(n * size);
    std::uniform_real_distribution<double> uniform;
    for (size_t i = 0; i < n; i++) {
        uint8_t* code = &codes[i * size];
        if (i % 3 == 2) {
            std::copy_n(
                    &codes[rng() % std::min<size_t>(i, 12) * size], size, code);
            for (int flips = int(rng() % 4); flips > 0; flips--) {
                const int b = int(rng() % d);
                code[b / 8] ^= bit_in_byte(b);
            }
            continue;
        }
        const double share = rng() % 20 == 0 ? double(rng() % 2) : uniform(rng);
        for (int b = 0; b < d; b++) {
            code[b / 8] |= uniform(rng) < share ? bit_in_byte(b) : 0;
        }
    }
    return codes;
}

/// Counts the members that two sets share, and the members of both together.
std::pair<int64_t, int64_t> counts(const uint8_t* a, const uint8_t* b, int d) {
    int64_t shared = 0, together = 0;
    for (int i = 0; i < d; i++) {
        shared += has(a, i) && has(b, i);
        together += has(a, i) || has(b, i);
    }
    return together == 0 ? std::pair<int64_t, int64_t>(1, 1)
                         : std::pair(shared, together);
}

/// Computes 1 - k in units of 2^-30, rounded.
int32_t distance(const uint8_t* a, const uint8_t* b, int d) {
    const auto [shared, together] = counts(a, b, d);
    return int32_t(std::llround(
            std::ldexp((long double)(together - shared) / together, 30)));
}

using FoundCodes = Found<int32_t>;

/// Sorts by exact fractions, the largest first, and equal ones by id.
FoundCodes expected(
        const Codes& codes,
        const Codes& queries,
        int d,
        idx_t k,
        const std::function<bool(idx_t)>& is_wanted = nullptr) {
    FoundCodes found;
    const size_t size = size_of(d);
    for (size_t q = 0; q < queries.size() / size; q++) {
        const uint8_t* query = &queries[q * size];
        std::vector<idx_t> ids;
        std::vector<std::pair<int64_t, int64_t>> value;
        for (size_t i = 0; i < codes.size() / size; i++) {
            value.push_back(counts(query, &codes[i * size], d));
            if (!is_wanted || is_wanted(i)) {
                ids.push_back(i);
            }
        }
        std::stable_sort(ids.begin(), ids.end(), [&](idx_t a, idx_t b) {
            return value[a].first * value[b].second >
                    value[b].first * value[a].second;
        });
        for (idx_t j = 0; j < k; j++) {
            const bool is_there = j < idx_t(ids.size());
            found.labels.push_back(is_there ? ids[j] : -1);
            found.distances.push_back(
                    is_there ? distance(query, &codes[ids[j] * size], d)
                             : none);
        }
    }
    return found;
}

std::unique_ptr<IndexBinaryFlatKernel> make(int d, const Codes& codes = {}) {
    auto index = std::make_unique<IndexBinaryFlatKernel>(d);
    index->add(codes.size() / size_of(d), codes.data());
    return index;
}

struct Sizes : testing::TestWithParam<int> {};

} // namespace

TEST_P(Sizes, NeighborsAreThoseOfExactFractions) {
    const int d = GetParam();
    const Codes codes = random_sets(400, d, 1), queries = random_sets(70, d, 2);
    const auto index = make(d, codes);
    for (idx_t k : {1, 7, 400, 500}) {
        expect_same(search(*index, queries, k), expected(codes, queries, d, k));
    }
    // one at a time
    const size_t size = size_of(d);
    for (size_t q = 0; q < 70; q++) {
        const Codes one(&queries[q * size], &queries[q * size] + size);
        expect_same(search(*index, one, 5), expected(codes, one, d, 5));
    }
}

TEST_P(Sizes, RangeSearch) {
    const int d = GetParam();
    const size_t size = size_of(d);
    const Codes codes = random_sets(300, d, 3), queries = random_sets(40, d, 4);
    const auto index = make(d, codes);
    const faiss::IDSelectorRange most(20, 280);
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorRange*>(&most);
    for (const double value : {0.0, 0.3, 1 / 2.0, 2 / 3.0, 1.0}) {
        for (const bool selected : {false, true}) {
            const int radius = IndexBinaryFlatKernel::distance(value);
            faiss::RangeSearchResult result(40);
            index->range_search(
                    40,
                    queries.data(),
                    radius,
                    &result,
                    selected ? &params : nullptr);
            for (size_t q = 0; q < 40; q++) {
                std::vector<idx_t> ids;
                std::vector<float> distances;
                for (size_t i = 0; i < 300; i++) {
                    const int32_t dis =
                            distance(&queries[q * size], &codes[i * size], d);
                    if (dis < radius && (!selected || most.is_member(i))) {
                        ids.push_back(i);
                        // rounded down to 24 bits
                        const int unused = std::max(
                                0, int(std::bit_width(uint32_t(dis))) - 24);
                        distances.push_back(float(dis >> unused << unused));
                    }
                }
                const size_t begin = result.lims[q], end = result.lims[q + 1];
                EXPECT_EQ(
                        std::vector<idx_t>(
                                result.labels + begin, result.labels + end),
                        ids);
                EXPECT_EQ(
                        std::vector<float>(
                                result.distances + begin,
                                result.distances + end),
                        distances);
            }
        }
    }
    faiss::RangeSearchResult all(40), nothing(40);
    index->range_search(40, queries.data(), none, &all);
    index->range_search(40, queries.data(), -3, &nothing);
    EXPECT_EQ(all.lims[40], 40u * 300u);
    EXPECT_EQ(nothing.lims[40], 0u);
}

INSTANTIATE_TEST_SUITE_P(
        Bits,
        Sizes,
        testing::Values(
                1,
                8,
                13,
                24,
                64,
                136,
                166,
                256,
                449,
                512,
                1024,
                2047,
                2048));

// The fractions with the largest denominators differ by 2^-30.
TEST(Distance, TellsAllKernelValuesApart) {
    const int d = 1 << 15;
    // 16383 / 32767 and 16384 / 32768 differ by less than 1.6e-5, and
    // neighbours in the Farey sequence by 1 / (32767 * 32768)
    Codes query(d / 8, 0xff), two(2 * d / 8, 0xff);
    two[0] = 0xfe; // 32767 / 32768
    two[d / 8] = 0xff;
    const auto index = make(d, two);
    const FoundCodes found = search(*index, query, 2);
    EXPECT_EQ(found.labels, (std::vector<idx_t>{1, 0}));
    EXPECT_EQ(found.distances, (std::vector<int32_t>{0, 1 << 15}));
    // 1 / 32767 and 1 / 32768
    Codes one(d / 8), sets(2 * d / 8, 0xff);
    one[0] = 1;
    sets[d / 8] = 0x7f;
    const FoundCodes apart = search(*make(d, sets), one, 2);
    EXPECT_EQ(apart.labels, (std::vector<idx_t>{1, 0}));
    EXPECT_EQ(apart.distances[1] - apart.distances[0], 1);
}

TEST(Distance, IsTheKernelOfZerosAndOnes) {
    const int d = 128;
    const Codes codes = random_sets(200, d, 5);
    std::vector<float> vectors(200 * d);
    for (size_t i = 0; i < vectors.size(); i++) {
        vectors[i] = float(has(&codes[i / d * d / 8], int(i % d)));
    }
    const JaccardKernel kernel;
    std::vector<float> values(200 * 200);
    kernel.block(200, vectors.data(), 200, vectors.data(), d, values.data());
    const auto found = search(*make(d, codes), codes, 200);
    for (size_t i = 0; i < values.size(); i++) {
        const size_t q = i / 200;
        EXPECT_NEAR(
                IndexBinaryFlatKernel::kernel_value(found.distances[i]),
                values[q * 200 + found.labels[i]],
                1e-6);
    }
}

TEST(Distance, AndKernelValue) {
    using Index = IndexBinaryFlatKernel;
    EXPECT_EQ(Index::distance(1), 0);
    EXPECT_EQ(Index::distance(0), 1 << 30);
    EXPECT_EQ(Index::kernel_value(1 << 29), 0.5);
    EXPECT_EQ(Index::kernel_value(none), 0);
    for (double u : {0.1, 1 / 3.0, 0.999}) {
        EXPECT_NEAR(Index::kernel_value(Index::distance(u)), u, 1e-9);
    }
    for (double u : {-0.1, 1.1, std::nan("")}) {
        EXPECT_TRUE(throws([&] { Index::distance(u); }, "from 0 to 1"));
    }
    EXPECT_TRUE(throws([] { Index::kernel_value(-1); }, "distance is -1"));
}

TEST(Searching, HonoursSelectors) {
    const int d = 64;
    const Codes codes = random_sets(300, d, 6), queries = random_sets(20, d, 7);
    const auto index = make(d, codes);
    const std::vector<idx_t> wanted{3, 77, 78, 200, 299};
    const faiss::IDSelectorBatch batch(wanted.size(), wanted.data());
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelectorBatch*>(&batch);
    const auto is_wanted = [&](idx_t i) {
        return std::count(wanted.begin(), wanted.end(), i) > 0;
    };
    for (idx_t k : {2, 9}) {
        expect_same(
                search(*index, queries, k, &params),
                expected(codes, queries, d, k, is_wanted));
    }
}

TEST(Searching, IsTheSameOnAnyNumberOfThreads) {
    const int d = 96;
    const Codes codes = random_sets(40000, d, 8),
                queries = random_sets(50, d, 9);
    const auto index = make(d, codes);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const FoundCodes batch = search(*index, queries, 20);
    const Ranges ranges = range_search(*index, queries, 1 << 29);
    for (const int more : {2, 3, 5, 16}) {
        omp_set_num_threads(more);
        expect_same(search(*index, queries, 20), batch);
        for (size_t q = 0; q < 50; q++) { // slices of all codes
            const Codes one(
                    queries.begin() + q * d / 8,
                    queries.begin() + (q + 1) * d / 8);
            const FoundCodes single = search(*index, one, 20);
            EXPECT_TRUE(std::equal(
                    single.labels.begin(),
                    single.labels.end(),
                    batch.labels.begin() + q * 20));
            EXPECT_EQ(range_search(*index, one, 1 << 29), Ranges(1, ranges[q]));
        }
    }
    omp_set_num_threads(threads);
}

TEST(Searching, EmptyIndexAndBadArguments) {
    const auto index = make(64);
    const Codes query(8, 1);
    expect_same(search(*index, query, 3), expected({}, query, 64, 3));
    EXPECT_EQ(search(*index, {}, 3).labels.size(), 0u);
    faiss::RangeSearchResult result(1);
    index->range_search(1, query.data(), 100, &result);
    EXPECT_EQ(result.lims[1], 0u);
    EXPECT_TRUE(throws([&] { search(*index, query, 0); }, "k is 0"));
    EXPECT_TRUE(throws([&] { index->add(-1, query.data()); }));
    EXPECT_TRUE(throws([&] { index->add(1, nullptr); }));
    for (int d : {0, -8, (1 << 15) + 1}) {
        EXPECT_TRUE(throws(
                [&] { IndexBinaryFlatKernel made(d); }, "expected 1 to 32768"));
    }
}

TEST(Searching, DistancesOfGivenCodes) {
    for (const int d : {13, 166, 1000}) {
        const Codes codes = random_sets(60, d, 1),
                    queries = random_sets(9, d, 2);
        const auto index = make(d, codes);
        const size_t size = size_of(d);
        std::vector<idx_t> labels;
        std::vector<int32_t> expected, distances(9 * 7);
        for (idx_t i = 0; i < 9 * 7; i++) {
            const idx_t label = i % 5 == 0 ? -1 : i * 37 % 60;
            labels.push_back(label);
            expected.push_back(
                    label < 0 ? none
                              : distance(
                                        &queries[i / 7 * size],
                                        &codes[label * size],
                                        d));
        }
        for (int remembers = 0; remembers < 2; remembers++) {
            index->compute_distance_subset(
                    9, queries.data(), 7, distances.data(), labels.data());
            EXPECT_EQ(distances, expected);
            index->remember_places();
        }
        labels[3] = 60;
        EXPECT_TRUE(throws(
                [&] {
                    index->compute_distance_subset(
                            9,
                            queries.data(),
                            7,
                            distances.data(),
                            labels.data());
                },
                "id 60 of query 0 is out of range"));
    }
}

TEST(Bits, AsSparseVectors) {
    for (const int d : {1, 13, 64, 166}) {
        const Codes codes = random_sets(70, d, 3);
        const SparseRows rows = rows_of_bits(70, d, codes.data());
        ASSERT_EQ(rows.n(), 70);
        EXPECT_EQ(rows.d, d);
        for (idx_t i = 0; i < 70; i++) {
            std::vector<int32_t> ones;
            for (int b = 0; b < d; b++) {
                if (has(&codes[i * size_of(d)], b)) {
                    ones.push_back(b);
                }
            }
            EXPECT_EQ(
                    ones,
                    std::vector<int32_t>(
                            &rows.indices[0] + rows.indptr[i],
                            &rows.indices[0] + rows.indptr[i + 1]));
        }
        EXPECT_EQ(rows.values, std::vector<float>(rows.indices.size(), 1));
    }
    EXPECT_EQ(rows_of_bits(0, 8, nullptr).n(), 0);
    const Codes bad{0xff, 0xff};
    EXPECT_TRUE(
            throws([&] { rows_of_bits(1, 13, bad.data()); },
                   "code 0 has ones beyond its first 13 bits"));
    EXPECT_TRUE(throws([&] { rows_of_bits(1, 0, bad.data()); }, "d is 0"));
    EXPECT_TRUE(throws([&] { rows_of_bits(1, 8, nullptr); }));
    EXPECT_TRUE(throws([&] { rows_of_bits(-1, 8, bad.data()); }));
}

TEST(Searching, RefusesOnesBehindTheLastBit) {
    const auto index = make(13);
    const Codes good{0xff, 0xf8}, bad{0xff, 0xf8, 0, 4};
    index->add(1, good.data());
    const std::string message = "code 1 has ones beyond its first 13 bits";
    EXPECT_TRUE(throws([&] { index->add(2, bad.data()); }, message));
    EXPECT_TRUE(throws([&] { search(*index, bad, 1); }, message));
    faiss::RangeSearchResult result(2);
    EXPECT_TRUE(throws(
            [&] { index->range_search(2, bad.data(), 9, &result); }, message));
    EXPECT_EQ(search(*index, good, 2).labels, (std::vector<idx_t>{0, -1}));
}

TEST(Changing, AddRemoveMergeReconstruct) {
    const int d = 72;
    const size_t size = size_of(d);
    Codes codes = random_sets(500, d, 10);
    const Codes queries = random_sets(30, d, 11);
    const auto index = make(d);
    for (size_t i = 0; i < 500; i += 50) {
        index->add(50, &codes[i * size]);
    }
    expect_same(search(*index, queries, 9), expected(codes, queries, d, 9));

    const faiss::IDSelectorRange removed(100, 180);
    EXPECT_EQ(index->remove_ids(removed), 80u);
    codes.erase(codes.begin() + 100 * size, codes.begin() + 180 * size);
    expect_same(search(*index, queries, 9), expected(codes, queries, d, 9));

    const Codes more = random_sets(60, d, 12);
    const auto other = make(d, more);
    index->merge_from(*other);
    EXPECT_EQ(other->ntotal, 0);
    expect_same(search(*other, queries, 1), expected({}, queries, d, 1));
    codes.insert(codes.end(), more.begin(), more.end());
    expect_same(search(*index, queries, 9), expected(codes, queries, d, 9));

    Codes copied(index->ntotal * size);
    index->reconstruct_n(0, index->ntotal, copied.data());
    EXPECT_EQ(copied, codes);
    Codes one(size);
    index->reconstruct(479, one.data());
    EXPECT_TRUE(std::equal(one.begin(), one.end(), &codes[479 * size]));
    EXPECT_TRUE(throws([&] { index->reconstruct(480, one.data()); }));
    EXPECT_TRUE(throws([&] { index->merge_from(*index); }));
    EXPECT_TRUE(throws([&] { index->merge_from(*make(64)); }));

    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    index->add(1, codes.data());
    EXPECT_EQ(search(*index, one, 2).labels, (std::vector<idx_t>{0, -1}));
}

// Removals by places, mixed with all other changes.
TEST(Changing, LastCodesTakeThePlacesOfRemovedOnes) {
    const int d = 40;
    const size_t size = size_of(d);
    const Codes pool = random_sets(4000, d, 17),
                queries = random_sets(20, d, 18);
    std::unique_ptr<faiss::IndexBinary> made = make(d);
    Codes codes;
    std::mt19937 random(19);
    idx_t used = 0;
    const auto next = [&](idx_t n) {
        const auto first = pool.begin() + used * size;
        used += n;
        return Codes(first, first + n * size);
    };
    const auto some_places = [&](idx_t n) {
        std::vector<idx_t> places(made->ntotal);
        std::iota(places.begin(), places.end(), 0);
        std::shuffle(places.begin(), places.end(), random);
        places.resize(std::min<size_t>(places.size(), n));
        return places;
    };
    const auto check = [&](const faiss::IndexBinary& index) {
        ASSERT_EQ(index.ntotal, idx_t(codes.size() / size));
        expect_same(search(index, queries, 9), expected(codes, queries, d, 9));
        Codes copied(codes.size());
        index.reconstruct_n(0, index.ntotal, copied.data());
        EXPECT_EQ(copied, codes);
    };
    for (int round = 0; round < 120; round++) {
        auto& index = dynamic_cast<IndexBinaryFlatKernel&>(*made);
        const idx_t n = random() % 8;
        const int kind = index.ntotal < 40 ? 0 : random() % 6;
        if (kind <= 1) {
            const Codes more = next(20);
            index.add(20, more.data());
            codes.insert(codes.end(), more.begin(), more.end());
        } else if (kind == 2) {
            auto holes = some_places(n);
            std::sort(holes.begin(), holes.end());
            const PlaceMoves moves(index.ntotal, holes);
            index.prepare_moves(moves)();
            moves.apply_to(codes.data(), size);
            codes.resize(moves.after * size);
        } else if (kind == 3) { // replace some
            const auto to = some_places(n);
            const auto moves = PlaceMoves::of_last(index.ntotal + n, to);
            const auto move = index.prepare_moves(moves);
            const Codes more = next(n);
            index.add(n, more.data());
            move();
            codes.insert(codes.end(), more.begin(), more.end());
            moves.apply_to(codes.data(), size);
            codes.resize(moves.after * size);
        } else if (kind == 4) { // later codes move up
            const idx_t first = random() % index.ntotal;
            const idx_t end = std::min(index.ntotal, first + n);
            index.IndexBinaryFlatKernel::remove_ids( // a copy would keep ids
                    faiss::IDSelectorRange(first, end));
            codes.erase(
                    codes.begin() + first * size, codes.begin() + end * size);
        } else { // either index has changed by places, or both
            const Codes more = next(10);
            const auto other = make(d, more);
            if (round % 2) {
                const PlaceMoves moves(10, {3, 4});
                other->prepare_moves(moves)();
                Codes rest = more;
                moves.apply_to(rest.data(), size);
                codes.insert(
                        codes.end(), rest.begin(), rest.begin() + 8 * size);
            } else {
                codes.insert(codes.end(), more.begin(), more.end());
            }
            index.merge_from(*other);
        }
        check(*made);
        if (round % 10 == 9) {
            made = clone_binary_index(made.get());
            check(*made);
        }
    }
    EXPECT_LT(used, 4000);
    auto& index = dynamic_cast<IndexBinaryFlatKernel&>(*made);
    std::vector<idx_t> all(index.ntotal);
    std::iota(all.begin(), all.end(), 0);
    const PlaceMoves moves(index.ntotal, all);
    index.prepare_moves(moves)();
    codes.clear();
    check(index);
}

TEST(Changing, ListsThatWereChangedByHandAreRefused) {
    const int d = 8;
    const auto index = make(d, {1, 2, 4, 8});
    const PlaceMoves moves(4, {1});
    index->prepare_moves(moves)();
    auto& ids = index->lists[0].ids.make_owned();
    std::swap(ids[0], ids[1]);
    const PlaceMoves more(3, {0});
    EXPECT_TRUE(throws([&] { index->prepare_moves(more); }, "by hand"));
}

TEST(Files, AndCopies) {
    const int d = 64;
    const Codes codes = random_sets(100, d, 13),
                queries = random_sets(9, d, 14);
    const auto index = index_binary_factory(d, "BKFlat(jaccard)");
    index->add(100, codes.data());
    const auto read = reread(*index);
    const auto copy = clone_binary_index(index.get());
    index->reset();
    for (const faiss::IndexBinary* same : {read.get(), copy.get()}) {
        expect_same(search(*same, queries, 9), expected(codes, queries, d, 9));
    }
}

// Inconsistent lists in files.
TEST(Files, ListsThatDoNotFit) {
    const int d = 512;
    const auto damaged = [&](auto&& change) {
        const auto index = make(d, random_sets(50, d, 15));
        change(*index);
        return throws([&] { bytes_of(*index); });
    };
    const auto first_list = [](IndexBinaryFlatKernel& index) {
        for (auto& list : index.lists) {
            if (!list.ids.empty()) {
                return &list;
            }
        }
        throw std::logic_error("all lists are empty");
    };
    EXPECT_FALSE(damaged([](auto&) {}));
    EXPECT_TRUE(damaged([&](auto& i) { i.ntotal++; }));
    EXPECT_TRUE(
            damaged([&](auto& i) { first_list(i)->ids.make_owned()[0] = 50; }));
    EXPECT_TRUE(
            damaged([&](auto& i) { first_list(i)->ids.make_owned()[0] = -1; }));
    EXPECT_TRUE(damaged([&](auto& i) {
        auto* list = first_list(i);
        list->ids.make_owned()[0] = (list->ids[0] + 1) % 50; // a duplicate id
    }));
    EXPECT_TRUE(damaged(
            [&](auto& i) { first_list(i)->codes.make_owned()[0] ^= 1; }));
    EXPECT_TRUE(damaged(
            [&](auto& i) { first_list(i)->folded.make_owned()[0] ^= 1; }));
}

TEST(Strings, OnlyKernelsOfSetsAndNotBehindAHash) {
    EXPECT_TRUE(throws(
            [] { index_binary_factory(64, "BKFlat(chi2)"); }, "jaccard"));
    EXPECT_TRUE(throws([] { index_binary_factory(64, "BKFlat"); }, "jaccard"));
    EXPECT_TRUE(
            throws([] { index_factory(16, "SIK64(gaussian),BKFlat(jaccard)"); },
                   "Hamming"));
    EXPECT_TRUE(throws(
            [] { index_binary_factory(64, "SIK64(gaussian),BKFlat(jaccard)"); },
            "Hamming"));
    const auto index = index_factory(16, "SIK64(gaussian),BFlat");
    auto& hash = *dynamic_cast<IndexKernelHash&>(*index).hash;
    IndexBinaryFlatKernel storage(64);
    EXPECT_TRUE(
            throws([&] { IndexKernelHash made(&hash, &storage); }, "Hamming"));
    const auto mapped = index_binary_factory(64, "IDMap2,BKFlat(jaccard)");
    const Codes codes = random_sets(3, 64, 16);
    const std::vector<idx_t> ids{70, 80, 90};
    mapped->add_with_ids(3, codes.data(), ids.data());
    const Codes query(codes.begin() + 8, codes.begin() + 16);
    EXPECT_EQ(search(*mapped, query, 1).labels[0], 80);
}
