// SPDX-License-Identifier: MIT
// Exact search under a kernel.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <faiss/IndexFlat.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/DistanceComputer.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/GaussianKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float max_float = std::numeric_limits<float>::max();

using Store = IndexFlatKernel::Store;

constexpr auto l2 = faiss::METRIC_L2, ip = faiss::METRIC_INNER_PRODUCT;

std::unique_ptr<IndexFlatKernel> make_index(
        const std::string& kernel,
        faiss::MetricType metric,
        int d,
        const std::vector<float>& x = {},
        Store store = Store::f32) {
    auto index = std::make_unique<IndexFlatKernel>(
            d, *kernel_factory(kernel), metric, store);
    index->add(x.size() / d, x.data());
    return index;
}

/// All distances, pair by pair, checked against their definition.
struct BruteForce {
    const bool is_l2;
    const idx_t n;
    /// from each query to all vectors, query by query
    std::vector<float> distances;
    std::vector<float> scores; ///< in the same order

    BruteForce(
            const IndexFlatKernel& index,
            const std::vector<float>& q,
            const std::vector<float>& x)
            : is_l2(index.metric_type == l2), n(x.size() / index.d) {
        const Kernel& k = *index.kernel;
        const int d = index.d;
        for (const float* a = q.data(); a < q.data() + q.size(); a += d) {
            for (const float* b = x.data(); b < x.data() + x.size(); b += d) {
                float value = k(a, b, d);
                if (is_l2) {
                    const double scale = double(k(a, a, d)) + k(b, b, d);
                    const double expected = scale - 2.0 * value;
                    k.distance_block(1, a, 1, b, d, &value);
                    EXPECT_NEAR(value, expected, 1e-5 * (1 + scale));
                }
                distances.push_back(value);
                k.score_block(index.metric_type, 1, a, 1, b, d, &value);
                scores.push_back(value);
                k.values_of_scores(index.metric_type, 1, &value);
                EXPECT_EQ(value, distances.back());
            }
        }
    }

    /// Returns results sorted by score, then by id, and padded.
    Found<float> nearest(idx_t k, const faiss::IDSelector* sel = nullptr)
            const {
        Found<float> found;
        for (size_t begin = 0; begin < distances.size(); begin += n) {
            std::vector<std::pair<float, idx_t>> all;
            for (idx_t j = 0; j < n; j++) {
                if (!sel || sel->is_member(j)) {
                    all.emplace_back(scores[begin + j], j);
                }
            }
            append_nearest(found, all, k);
            for (size_t i = found.labels.size() - k; i < found.labels.size();
                 i++) {
                const idx_t id = found.labels[i];
                found.distances[i] = id >= 0 ? distances[begin + id]
                        : is_l2              ? max_float
                                             : -max_float;
            }
        }
        return found;
    }

    Ranges within(float radius, const faiss::IDSelector* sel = nullptr) const {
        Ranges ranges(distances.size() / n);
        for (size_t i = 0; i < distances.size(); i++) {
            const float v = distances[i];
            if ((is_l2 ? v < radius : v > radius) &&
                (!sel || sel->is_member(i % n))) {
                ranges[i / n].emplace_back(i % n, v);
            }
        }
        return ranges;
    }
};

std::vector<float> stored(const IndexFlatKernel& index) {
    std::vector<float> x(index.ntotal * index.d);
    index.reconstruct_n(0, index.ntotal, x.data());
    return x;
}

/// Since FAISS 1.8.0.
template <class Computer>
constexpr bool has_batches = requires(Computer& c, float& out) {
    c.distances_batch_4(0, 0, 0, 0, out, out, out, out);
};

template <class Computer>
void compare_four(
        Computer& computer,
        const std::vector<idx_t>& ids,
        float (&out)[4]) {
    if constexpr (has_batches<Computer>) {
        computer.distances_batch_4(
                ids[0], ids[1], ids[2], ids[3], out[0], out[1], out[2], out[3]);
    }
}

void check_against_brute_force(
        const std::string& kernel,
        faiss::MetricType metric,
        int d,
        idx_t different,
        Store store = Store::f32) {
    // more vectors than a block, each of them three times; more queries than a
    // block, some of them equal to vectors
    const idx_t n = 3 * different;
    const auto once = uniform_vectors(different, d, 1);
    const auto index = make_index(
            kernel, metric, d, joined(joined(once, once), once), store);
    const auto x = stored(*index);
    const auto q = joined(uniform_vectors(14, d, 2), rows(x, d, 0, 5));
    const BruteForce truth(*index, q, x);
    const auto& all = truth.distances;
    if (metric == l2) {
        EXPECT_EQ(all[14 * n], 0); // of equal vectors
    }
    const std::vector<idx_t> chosen = {3, 44, 45, n - 1, 17};
    faiss::IDSelectorRange none(n, n + 10);
    faiss::IDSelectorBatch batch(chosen.size(), chosen.data());
    faiss::IDSelectorNot no_batch(&batch);
    for (faiss::IDSelector* sel :
         std::vector<faiss::IDSelector*>{nullptr, &none, &batch, &no_batch}) {
        faiss::SearchParameters params;
        params.sel = sel;
        for (idx_t k : {idx_t(1), idx_t(20), n + 3}) {
            expect_same(search(*index, q, k, &params), truth.nearest(k, sel));
        }
        // a vector whose distance equals the radius is excluded
        for (float radius : {all[7], all[n / 2], 0.0f, inf, -inf}) {
            EXPECT_EQ(
                    range_search(*index, q, radius, &params),
                    truth.within(radius, sel));
        }
    }

    const std::unique_ptr<faiss::FlatCodesDistanceComputer> computer(
            index->get_FlatCodesDistanceComputer());
    for (idx_t i = 0; i < 3 * n; i++) {
        const uint8_t* code = &index->codes[i % n * index->code_size];
        computer->set_query(&q[i / n * d]);
        ASSERT_EQ((*computer)(i % n), all[i]);
        ASSERT_EQ(computer->distance_to_code(code), all[i]);
    }
    std::vector<idx_t> ids; // in another order, with some missing
    for (idx_t i = 0; i < idx_t(all.size()); i++) {
        ids.push_back(i % 5 == 2 ? -1 : i % n * 7 % n);
    }
    std::vector<float> subset(ids.size());
    index->compute_distance_subset(
            all.size() / n, q.data(), n, subset.data(), ids.data());
    for (size_t i = 0; i < ids.size(); i++) {
        const float absent = metric == l2 ? max_float : -max_float;
        ASSERT_EQ(subset[i], ids[i] < 0 ? absent : all[i / n * n + ids[i]]);
    }
    index->compute_kernel_subset(
            all.size() / n, q.data(), n, subset.data(), ids.data());
    const auto products =
            BruteForce(*make_index(kernel, ip, d, x), q, x).distances;
    for (size_t i = 0; i < ids.size(); i++) {
        ASSERT_EQ(
                subset[i],
                ids[i] < 0 ? -max_float : products[i / n * n + ids[i]]);
    }
    if constexpr (has_batches<faiss::DistanceComputer>) {
        computer->set_query(q.data());
        float four[4];
        compare_four(*computer, {5, n - 1, 0, 5}, four);
        EXPECT_EQ(
                std::vector<float>(four, four + 4),
                (std::vector<float>{all[5], all[n - 1], all[0], all[5]}));
    }
    const auto among = BruteForce(*index, rows(x, d, 3, 4), x).distances;
    for (idx_t j = 0; j < n; j++) {
        ASSERT_EQ(computer->symmetric_dis(3, j), among[j]);
    }
}

TEST(IndexFlatKernel, EqualsBruteForce) {
    for (const char* kernel :
         {"linear",
          "gaussian(gamma=0.5)",
          "laplacian(gamma=0.3)",
          "matern(nu=1.5,gamma=0.4)"}) {
        for (auto metric : {l2, ip}) {
            SCOPED_TRACE(std::string(kernel) + (metric == l2 ? " L2" : " IP"));
            check_against_brute_force(kernel, metric, 5, 400);
            check_against_brute_force(kernel, metric, 3001, 20);
        }
    }
}

/// Kernels that decrease with a distance order vectors by it, even if the
/// values are the same floats because 1 - k rounds to 1, or k to 0.
TEST(IndexFlatKernel, FarVectorsStayInOrder) {
    constexpr int d = 4;
    constexpr idx_t n = 40;
    std::vector<idx_t> order(n); // storage order of the vectors
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (const char* kernel :
         {"gaussian(gamma=1)",
          "laplacian(gamma=1)",
          "matern(nu=0.5,gamma=1)",
          "matern(nu=3,gamma=1)",
          "expchi2(gamma=1)"}) {
        for (auto metric : {l2, ip}) {
            SCOPED_TRACE(std::string(kernel) + (metric == l2 ? " L2" : " IP"));
            std::vector<float> x(n * d, 0);
            for (idx_t i = 0; i < n; i++) {
                x[i * d + 1] = 12 * float(order[i]);
            }
            const auto index = make_index(kernel, metric, d, x);
            const std::vector<float> q(d, 0);
            const Found<float> found = search(*index, q, n);
            const float last = found.distances.back();
            EXPECT_EQ(found.distances[n - 2], last);
            EXPECT_EQ(last, metric == l2 ? 2 : 0);
            const auto graph = index_factory(
                    d, std::string("HNSW8,KFlat(") + kernel + ")", metric);
            graph->add(n, x.data());
            const auto refine = index_factory(
                    d,
                    std::string(
                            "SIK64(gaussian(gamma=1)),BFlat,Refine(KFlat(") +
                            kernel + "))",
                    metric);
            refine->add(n, x.data());
            dynamic_cast<faiss::IndexRefine&>(*refine).k_factor = n;
            for (const faiss::Index* other :
                 {static_cast<const faiss::Index*>(index.get()),
                  static_cast<const faiss::Index*>(refine.get())}) {
                const Found<float> again = search(*other, q, n);
                EXPECT_EQ(again.distances, found.distances);
                for (idx_t i = 0; i < n; i++) {
                    EXPECT_EQ(order[again.labels[i]], i);
                }
            }
            const Found<float> walked = search(*graph, q, 12);
            for (idx_t i = 0; i < 12; i++) {
                EXPECT_EQ(order[walked.labels[i]], i);
            }
            // no vector is within the last distance
            EXPECT_LT(range_search(*index, q, last)[0].size(), size_t(n));
        }
    }
}

TEST(IndexFlatKernel, ScoresGiveTheSame) {
    const auto x = uniform_vectors(300, 6, 1), q = uniform_vectors(9, 6, 2);
    for (const char* kernel : {"linear", "gaussian(gamma=0.5)", "jaccard"}) {
        for (auto metric : {l2, ip}) {
            const auto index = make_index(kernel, metric, 6, x);
            for (idx_t k : {1, 20, 310}) {
                Found<float> found{
                        std::vector<float>(9 * k), std::vector<idx_t>(9 * k)};
                index->search_scores(
                        9,
                        q.data(),
                        k,
                        found.distances.data(),
                        found.labels.data());
                std::vector<float> subset(9 * k);
                index->compute_score_subset(
                        9, q.data(), k, subset.data(), found.labels.data());
                EXPECT_EQ(subset, found.distances);
                for (idx_t i = 0; i < 9; i++) {
                    EXPECT_TRUE(
                            std::is_sorted(&subset[i * k], &subset[i * k] + k));
                }
                index->values_of_scores(
                        9, k, found.distances.data(), found.labels.data());
                expect_same(found, search(*index, q, k));
            }
        }
    }
}

TEST(IndexFlatKernel, CompactVectorsEqualBruteForce) {
    for (Store store : {Store::f16, Store::u8}) {
        for (const char* kernel : {"chi2", "gaussian(gamma=0.5)"}) {
            SCOPED_TRACE(kernel);
            check_against_brute_force(kernel, l2, 37, 200, store);
            check_against_brute_force(kernel, ip, 37, 200, store);
        }
    }
}

// Errors are within the bounds stated in the header.
TEST(IndexFlatKernel, CompactVectorsAreNear) {
    const int d = 67;
    const idx_t n = 100;
    auto x = normal_vectors(n, d, 5);
    for (size_t i = 0; i < x.size(); i++) { // over twenty orders of magnitude
        x[i] *= std::pow(10.0f, float(i / d) / 5 - 10 - (i % 5) * 2.5f);
    }
    std::fill_n(x.begin(), d, 0.0f); // a zero vector
    const auto half = make_index("linear", l2, d, x, Store::f16);
    EXPECT_EQ(half->code_size, 4 + 2 * 67u);
    for (float& v : x) {
        v = std::abs(v);
    }
    const auto byte = make_index("linear", l2, d, x, Store::u8);
    EXPECT_EQ(byte->code_size, 4 + 67u);
    const auto halves = stored(*half), bytes = stored(*byte);
    for (idx_t i = 0; i < n; i++) {
        const float largest = *std::max_element(&x[i * d], &x[i * d] + d);
        for (idx_t j = i * d; j < (i + 1) * d; j++) {
            ASSERT_NEAR(
                    std::abs(halves[j]),
                    x[j],
                    std::max(std::ldexp(x[j], -11), std::ldexp(largest, -25)));
            ASSERT_NEAR(bytes[j], x[j], largest / 510 * (1 + 1e-5));
        }
    }
    EXPECT_EQ(halves[0], 0);
    EXPECT_EQ(bytes[0], 0);
}

// Normalised counts are restored up to the last bits, for every maximum.
TEST(IndexFlatKernel, CountsAreKeptAsBytes) {
    const int d = 50;
    std::mt19937 random(1);
    std::vector<float> x;
    for (int largest = 1; largest <= 255; largest++) {
        std::vector<float> counts(d);
        for (float& v : counts) {
            v = float(random() % (largest + 1));
        }
        counts[random() % d] = float(largest);
        const float sum = std::accumulate(counts.begin(), counts.end(), 0.0f);
        for (float v : counts) {
            x.push_back(v / sum);
        }
    }
    const auto index = make_index("chi2", l2, d, x, Store::u8);
    const auto back = stored(*index);
    for (size_t i = 0; i < x.size(); i++) {
        ASSERT_NEAR(back[i], x[i], 3e-7f * x[i]);
    }
}

TEST(IndexFlatKernel, SignedBytesAreRoundedToAStepOfEachVector) {
    const int d = 19;
    const float factors[] = {1, 1e-15f, 1e15f, 0};
    auto x = uniform_vectors(40, d, 32);
    for (size_t i = 0; i < x.size(); i++) {
        x[i] = (x[i] - 0.5f) * factors[i / d % 4];
    }
    const auto index = make_index("gaussian(gamma=1)", l2, d, x, Store::i8);
    EXPECT_EQ(index->code_size, size_t(d) + 4);
    const auto back = stored(*index);
    for (size_t i = 0; i < x.size(); i += d) {
        float largest = 0;
        for (int j = 0; j < d; j++) {
            largest = std::max(largest, std::abs(x[i + j]));
        }
        for (int j = 0; j < d; j++) {
            ASSERT_NEAR(back[i + j], x[i + j], largest / 254 * 1.0001f);
        }
    }
    // multiples of the step are kept
    const auto again = make_index("gaussian(gamma=1)", l2, d, back, Store::i8);
    const auto twice = stored(*again);
    for (size_t i = 0; i < x.size(); i++) {
        ASSERT_NEAR(twice[i], back[i], 3e-7f * std::abs(back[i]));
    }
}

TEST(IndexFlatKernel, CompactVectorsChangeLikeOthers) {
    const int d = 6;
    auto x = uniform_vectors(40, d, 31);
    for (const char* string :
         {"KFlat(chi2,store=f16)",
          "KFlat(chi2,store=u8)",
          "KFlat(chi2,store=i8)"}) {
        const auto made = index_factory(d, string);
        // without a table of ids
        IndexFlatKernel index(dynamic_cast<IndexFlatKernel&>(*made));
        EXPECT_EQ(index.get_xb(), nullptr);
        index.add(40, x.data());
        const auto all = stored(index);
        EXPECT_EQ(index.remove_ids(faiss::IDSelectorRange(3, 10)), 7u);
        EXPECT_EQ(
                stored(index),
                joined(rows(all, d, 0, 3), rows(all, d, 10, 40)));
        const auto more = index_factory(d, string);
        IndexFlatKernel five(dynamic_cast<IndexFlatKernel&>(*more));
        five.add(5, x.data());
        index.merge_from(five);
        EXPECT_EQ(rows(stored(index), d, 33, 38), rows(all, d, 0, 5));
        const auto floats = make_index("chi2", l2, d);
        auto bad = x;
        bad[7] = -0.5f;
        const auto before = stored(index);
        expect_throws(
                {{[&] { index.merge_from(*floats); }, "store="},
                 {[&] { floats->merge_from(index); }, "store="},
                 {[&] { index.add(40, bad.data()); }, "vector 1"}});
        EXPECT_EQ(stored(index), before);
    }
    auto signed_values = make_index("linear", l2, d, {}, Store::u8);
    x[13] = -0.5f;
    expect_throws(
            {{[&] { signed_values->add(40, x.data()); },
              "component 1 of vector 2 is -0.5; store=u8 takes components >= 0"},
             {[&] { index_factory(d, "KFlat(chi2,store=u9)"); }, "u8"}});
    EXPECT_EQ(signed_values->ntotal, 0);
    EXPECT_EQ(signed_values->codes.size(), 0u);
}

TEST(IndexFlatKernel, TakesCodesAndAnotherOrder) {
    const int d = 6, n = 40;
    const auto x = uniform_vectors(n, d, 32);
    for (const char* string :
         {"KFlat(chi2)", "KFlat(chi2,store=f16)", "KFlat(chi2,store=u8)"}) {
        SCOPED_TRACE(string);
        const auto made = index_factory(d, string),
                   other = index_factory(d, string);
        auto& index = dynamic_cast<IndexFlatKernel&>(*made);
        auto& expected = dynamic_cast<IndexFlatKernel&>(*other);
        std::vector<uint8_t> codes(n * index.code_size);
        index.sa_encode(n, x.data(), codes.data());
        index.add_sa_codes(30, codes.data(), nullptr);
        index.add_sa_codes(10, &codes[30 * index.code_size], nullptr);
        expected.add(n, x.data());
        EXPECT_EQ(stored(index), stored(expected));

        std::vector<idx_t> order(n);
        std::iota(order.rbegin(), order.rend(), 0);
        index.permute_entries(order.data());
        EXPECT_EQ(
                rows(stored(index), d, 0, 1),
                rows(stored(expected), d, n - 1, n));
        index.permute_entries(order.data());
        EXPECT_EQ(stored(index), stored(expected));

        // NaN, for every store
        std::vector<uint8_t> bad(2 * index.code_size, 0xff);
        const std::vector<idx_t> ids(n);
        IndexFlatKernel plain(index); // without a table of ids
        order[7] = n;
        expect_throws(
                {{[&] { index.add_sa_codes(2, bad.data(), nullptr); },
                  "component"},
                 {[&] { plain.add_sa_codes(2, codes.data(), ids.data()); },
                  "ids cannot be given"},
                 {[&] { index.permute_entries(order.data()); },
                  "position 7 has id 40"},
                 {[&] { index.permute_entries(ids.data()); },
                  "position 1 has id 0"}});
        EXPECT_EQ(stored(index), stored(expected));
    }
}

TEST(IndexFlatKernel, StartsEmptyAndChanges) {
    const int d = 5;
    const auto x = uniform_vectors(50, d, 17), q = uniform_vectors(4, d, 18);
    const auto index = make_index("linear", l2, d);
    EXPECT_EQ(search(*index, q, 2).labels, std::vector<idx_t>(8, -1));
    EXPECT_EQ(range_search(*index, q, max_float), Ranges(4));
    EXPECT_TRUE(range_search(*index, {}, 1).empty());
    index->add(0, nullptr);
    index->search(0, nullptr, 5, nullptr, nullptr);
    index->add(50, x.data());
    EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(10, 30)), 20u);
    EXPECT_EQ(index->ntotal, 30);
    const auto rest = joined(rows(x, d, 0, 10), rows(x, d, 30, 50));
    EXPECT_EQ(stored(*index), rest);
    std::vector<float> back(30 * d), one(d);
    index->reconstruct_n(0, 30, back.data());
    EXPECT_EQ(back, rest);
    index->reconstruct(10, one.data());
    EXPECT_EQ(one, rows(x, d, 30, 31));
    expect_throws(
            {{[&] { index->reconstruct(30, one.data()); }, "30 vectors"},
             {[&] { index->reconstruct(-1, one.data()); }, "30 vectors"},
             {[&] { index->reconstruct_n(20, 11, back.data()); }, "30"}});
    index->reset();
    EXPECT_TRUE(index->is_trained);
    EXPECT_EQ(search(*index, one, 1).labels[0], -1);
}

TEST(IndexFlatKernel, RefiningEverythingEqualsBruteForce) {
    const auto x = uniform_vectors(200, 8, 25), q = uniform_vectors(10, 8, 26);
    for (auto metric : {l2, ip}) {
        const auto base =
                index_factory(8, "SIK64(gaussian,gamma=1),BFlat", metric);
        const auto flat = make_index("laplacian(gamma=0.3)", metric, 8);
        faiss::IndexRefine refine(base.get(), flat.get());
        refine.add(200, x.data());
        for (int k_factor : {20, 100}) { // or more than there are vectors
            refine.k_factor = k_factor;
            expect_same(search(refine, q, 10), search(*flat, q, 10));
        }
    }
}

// Few queries are compared with slices of the vectors, many queries are not.
// Equal vectors are in different slices. There are more vectors than are
// scanned in one turn, and more queries than are searched for together.
TEST(IndexFlatKernel, ThreadsAndBatchesDoNotMatter) {
    const int d = 3;
    const idx_t n = 36000, nq = 1300, k = 12; // several groups of blocks
    const auto once = uniform_vectors(n / 3, d, 13);
    const auto x = joined(joined(once, once), once);
    const auto q = uniform_vectors(nq, d, 14);
    const auto index = make_index("linear", l2, d, x);
    const BruteForce truth(*index, rows(q, d, 0, 3), x);
    const auto found = search(*index, q, k);
    const auto expected = truth.nearest(k);
    EXPECT_EQ(rows(found.labels, k, 0, 3), expected.labels);
    EXPECT_EQ(rows(found.distances, k, 0, 3), expected.distances);
    const float radius = found.distances[k - 1];
    const auto ranges = range_search(*index, q, radius);
    EXPECT_EQ(rows(ranges, 1, 0, 3), truth.within(radius));
    const Threads threads(3);
    expect_same(search(*index, q, k), found);
    EXPECT_EQ(range_search(*index, q, radius), ranges);
    for (const auto& [begin, end] : {std::pair(0, 1), {3, 20}}) {
        const auto piece = search(*index, rows(q, d, begin, end), k);
        EXPECT_EQ(piece.labels, rows(found.labels, k, begin, end));
        EXPECT_EQ(piece.distances, rows(found.distances, k, begin, end));
    }
    const auto all = search(*index, rows(q, d, 0, 3), n);
    expect_same(all, truth.nearest(n));
}

TEST(IndexFlatKernel, TakesACopyOfTheKernelAndTrainsIt) {
    const int d = 6;
    const auto x = uniform_vectors(300, d, 32), q = uniform_vectors(9, d, 33);
    const GaussianKernel kernel;
    IndexFlatKernel index(d, kernel);
    EXPECT_EQ(index.metric_type, l2);
    EXPECT_FALSE(index.is_trained);
    const std::vector<float> same(10 * d, 0.5f);
    expect_throws(
            {{[&] { index.add(300, x.data()); }, "train"},
             {[&] { search(index, q, 1); }, "train"},
             {[&] { range_search(index, q, 1); }, "train"},
             // a failed training changes nothing
             {[&] { index.train(0, nullptr); }, ""},
             {[&] { index.train(1, x.data()); }, ""},
             {[&] { index.train(10, same.data()); }, ""},
             {[&] { IndexFlatKernel(7, kernel, faiss::METRIC_L1); },
              "METRIC_"}});
    EXPECT_FALSE(index.is_trained || index.kernel->is_trained);
    EXPECT_EQ(index.ntotal, 0);

    index.train(300, x.data());
    index.train(9, q.data()); // this has no effect any more
    EXPECT_TRUE(index.is_trained);
    EXPECT_FALSE(kernel.is_trained);
    GaussianKernel alone;
    alone.train(300, x.data(), d);
    const auto given = make_index(alone.description(), l2, d, x);
    EXPECT_EQ(index.kernel->description(), given->kernel->description());
    index.add(300, x.data());
    expect_same(search(index, q, 5), search(*given, q, 5));
}

TEST(IndexFlatKernel, BadCallsChangeNothing) {
    const int d = 4;
    const auto x = uniform_vectors(30, d, 23), q = uniform_vectors(3, d, 24);
    const auto index = make_index("linear", l2, d, x);
    std::vector<float> out(3 * d), bad = q;
    bad[7] = inf;
    std::vector<idx_t> labels(6);
    std::vector<uint8_t> bytes(3 * index->sa_code_size());
    faiss::RangeSearchResult result(3);
    for (const auto& call :
         std::vector<std::function<void(idx_t, const float*)>>{
                 [&](idx_t n, auto y) { index->add(n, y); },
                 [&](idx_t n, auto y) { index->train(n, y); },
                 [&](idx_t n, auto y) {
                     index->search(n, y, 2, &out[0], &labels[0]);
                 },
                 [&](idx_t n, auto y) {
                     index->range_search(n, y, 1, &result);
                 },
                 [&](idx_t n, auto y) {
                     index->compute_distance_subset(
                             n, y, 2, &out[0], &labels[0]);
                 },
                 [&](idx_t n, auto y) {
                     index->compute_kernel_subset(n, y, 2, &out[0], &labels[0]);
                 },
                 [&](idx_t n, auto y) { index->sa_encode(n, y, &bytes[0]); }}) {
        expect_throws(
                {{[&] { call(3, bad.data()); }, "component 3 of vector 1"},
                 {[&] { call(-1, q.data()); }, "-1"},
                 {[&] { call(3, nullptr); }, "null"}});
    }
    const auto same = make_index("linear", l2, d, x),
               products = make_index("linear", ip, d, x),
               cosines = make_index("cosine", l2, d, x),
               longer = make_index("linear", l2, 5, x);
    faiss::IndexFlat flat(d);
    const idx_t beyond[] = {29, 30, -2, 0};
    const auto subset = [&](idx_t n, const idx_t* ids) {
        index->compute_distance_subset(n, q.data(), 2, out.data(), ids);
    };
    expect_throws(
            {{[&] { range_search(*index, q, NAN); }, "NaN"},
             {[&] { subset(1, beyond); }, "id 30 of query 0"},
             {[&] { subset(1, beyond + 2); }, "id -2 of query 0"},
             {[&] {
                  index->compute_distance_subset(
                          1, q.data(), -1, out.data(), beyond);
              },
              "k is -1"},
             {[&] { index->merge_from(*products); }, "METRIC_"},
             {[&] { index->merge_from(*cosines); }, "cosine"},
             {[&] { index->merge_from(*longer); }, ""},
             {[&] { index->merge_from(flat); }, ""},
             {[&] { index->merge_from(*index); }, "itself"},
             {[&] { index->merge_from(*same, 7); }, ""},
             {[&] { index->check_compatible_for_merge(*cosines); }, "cosine"}});
    index->check_compatible_for_merge(*same);
    EXPECT_TRUE(index->is_trained);
    EXPECT_EQ(stored(*index), x);
    EXPECT_EQ(stored(*same), x);

    // the codec's output is what is stored
    index->sa_encode(3, q.data(), bytes.data());
    index->sa_decode(3, bytes.data(), out.data());
    EXPECT_EQ(out, q);
    index->sa_encode(0, nullptr, nullptr);
    index->sa_decode(0, nullptr, nullptr);
    index->add(3, q.data());
    EXPECT_EQ(stored(*index), joined(x, q));
    EXPECT_TRUE(std::equal(
            bytes.begin(), bytes.end(), index->codes.data() + 30 * 4 * d));
}

TEST(IndexFlatKernel, FieldsSetByHand) {
    const auto index = make_index("linear", l2, 2, {1, 2, 3, 4});
    const auto other = make_index("linear", l2, 2, {1, 2});
    index->ntotal = 1000000;
    std::vector<float> x(2);
    expect_throws(
            {{[&] { search(*index, x, 1); }, "ntotal"},
             {[&] { range_search(*index, x, 1); }, "ntotal"},
             {[&] { index->add(1, x.data()); }, "ntotal"},
             {[&] { index->reconstruct(99999, x.data()); }, "ntotal"},
             {[&] { index->merge_from(*other); }, "ntotal"}});
    index->ntotal = 2;
    index->store = Store::u8;
    expect_throws(
            {{[&] { search(*index, x, 1); }, "store"},
             {[&] { index->add(1, x.data()); }, "store"},
             {[&] { index->merge_from(*other); }, "store"}});
    const std::unique_ptr<faiss::DistanceComputer> none(
            index->get_distance_computer());
    none->set_query(x.data());
    EXPECT_EQ((*none)(0), max_float);
    index->store = Store::f32;
    // the distance to a vector that does not exist is the farthest
    const std::unique_ptr<faiss::DistanceComputer> distances(
            index->get_distance_computer());
    distances->set_query(x.data());
    EXPECT_EQ((*distances)(2), max_float);
}

// For accepted vectors, products and distances are within the range of float.
TEST(IndexFlatKernel, KernelsThatOverflowAreRefused) {
    const std::vector<float> good = {0.5f, 0.25f}, huge = {1e30f, 1e30f};
    for (auto metric : {l2, ip}) {
        for (const char* kernel :
             {"linear",
              "poly(degree=8)",
              "normalized(poly(degree=8))",
              "normalized(linear)",
              "exponential(linear,scale=50)",
              "exponential(poly(degree=8),scale=1)"}) {
            SCOPED_TRACE(kernel);
            const auto index = make_index(kernel, metric, 2, good);
            const auto flat = make_index(kernel, metric, 2);
            IndexHNSWKernel graph(flat.get(), 4);
            graph.add(1, good.data());
            const auto check = [&](faiss::Index& i) {
                EXPECT_TRUE(
                        throws([&] { i.add(1, huge.data()); }, "overflows"));
                EXPECT_TRUE(throws([&] { search(i, huge, 1); }, "overflows"));
                EXPECT_TRUE(throws([&] { range_search(i, huge, 1); }));
                EXPECT_EQ(i.ntotal, 1);
                EXPECT_EQ(search(i, good, 1).labels[0], 0);
            };
            check(*index);
            check(graph);
        }
        // k(x, x) just within the limit, and just beyond
        const float limit = std::sqrt(Kernel::max_self_value);
        const std::vector<float> most = {0.999f * limit, -0.999f * limit};
        const auto index = make_index("linear", metric, 1, most);
        for (float v : search(*index, most, 2).distances) {
            EXPECT_TRUE(std::isfinite(v));
        }
        EXPECT_TRUE(throws([&] { search(*index, {1.001f * limit}, 1); }));
    }
}

TEST(IndexFlatKernel, CosinesDoNotDependOnLengths) {
    const size_t d = 20, n = 50;
    const std::vector<float> x = uniform_vectors(n, d, 3);
    const auto reference = make_index("cosine", l2, d, x);
    const auto expected = search(*reference, x, 10);
    // values below 2^-126 have lost digits already
    for (int exponent : {-110, -100, -70, -63, 61, 64, 100, 124}) {
        SCOPED_TRACE(exponent);
        // scale only some of them, so that lengths differ
        std::vector<float> scaled = x;
        for (size_t i = 0; i < n * d; i++) {
            if (i / d % 3 > 0) {
                scaled[i] = std::ldexp(scaled[i], exponent);
            }
        }
        const auto index = make_index("cosine", l2, d, scaled);
        expect_same(search(*index, scaled, 10), expected);
    }
    // the smallest numbers have a direction, too
    const float tiny = std::numeric_limits<float>::denorm_min();
    const auto kernel = kernel_factory("cosine");
    const std::vector<float> a = {tiny, tiny}, b = {1e38f, 1e38f}, c = {0, 0};
    EXPECT_NEAR((*kernel)(a.data(), b.data(), 2), 1, 1e-6);
    EXPECT_EQ((*kernel)(a.data(), c.data(), 2), 0);
}

} // namespace
