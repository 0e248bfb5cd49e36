// Exact search under a kernel.

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexFlat.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/GaussianKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float max_float = std::numeric_limits<float>::max();

constexpr faiss::MetricType metrics[] = {
        faiss::METRIC_L2,
        faiss::METRIC_INNER_PRODUCT};

std::unique_ptr<IndexFlatKernel> make_index(
        const std::string& kernel,
        faiss::MetricType metric,
        int d,
        const std::vector<float>& x = {}) {
    auto index = std::make_unique<IndexFlatKernel>(
            d, *kernel_factory(kernel), metric);
    index->add(x.size() / d, x.data());
    return index;
}

/// All distances, one pair at a time, checked against their definition.
std::vector<float> all_distances(
        const IndexFlatKernel& index,
        const std::vector<float>& q,
        const std::vector<float>& x) {
    const Kernel& k = *index.kernel;
    const int d = index.d;
    std::vector<float> distances;
    for (const float* a = q.data(); a < q.data() + q.size(); a += d) {
        for (const float* b = x.data(); b < x.data() + x.size(); b += d) {
            float value = k(a, b, d);
            if (index.metric_type == faiss::METRIC_L2) {
                const double scale = double(k(a, a, d)) + k(b, b, d);
                const double expected = scale - 2.0 * value;
                k.distance_block(1, a, 1, b, d, &value);
                EXPECT_NEAR(value, expected, 1e-5 * (1 + scale));
            }
            distances.push_back(value);
        }
    }
    return distances;
}

/// The k nearest, ordered by distance and then by id; padded.
Found<float> nearest(
        const std::vector<float>& distances,
        idx_t n,
        faiss::MetricType metric,
        idx_t k,
        const faiss::IDSelector* sel = nullptr) {
    const float sign = metric == faiss::METRIC_L2 ? 1 : -1;
    Found<float> found;
    for (size_t begin = 0; begin < distances.size(); begin += n) {
        std::vector<std::pair<float, idx_t>> all;
        for (idx_t j = 0; j < n; j++) {
            if (!sel || sel->is_member(j)) {
                all.emplace_back(sign * distances[begin + j], j);
            }
        }
        append_nearest(found, all, k);
    }
    for (float& v : found.distances) {
        v *= sign;
    }
    return found;
}

Ranges within(
        const std::vector<float>& distances,
        idx_t n,
        faiss::MetricType metric,
        float radius,
        const faiss::IDSelector* sel) {
    Ranges ranges(distances.size() / n);
    for (size_t i = 0; i < distances.size(); i++) {
        const idx_t id = i % n;
        const float v = distances[i];
        if ((metric == faiss::METRIC_L2 ? v < radius : v > radius) &&
            (!sel || sel->is_member(id))) {
            ranges[i / n].emplace_back(id, v);
        }
    }
    return ranges;
}

std::vector<float> stored(const IndexFlatKernel& index) {
    return std::vector<float>(
            index.get_xb(), index.get_xb() + index.codes.size() / 4);
}

struct EachKernel
        : testing::TestWithParam<std::tuple<const char*, faiss::MetricType>> {
    const std::string kernel = std::get<0>(GetParam());
    const faiss::MetricType metric = std::get<1>(GetParam());

    std::unique_ptr<IndexFlatKernel> make(
            int d,
            const std::vector<float>& x = {}) const {
        return make_index(kernel, metric, d, x);
    }
};

INSTANTIATE_TEST_SUITE_P(
        IndexFlatKernel,
        EachKernel,
        testing::Combine(
                testing::Values(
                        "linear",
                        "gaussian(gamma=0.5)",
                        "laplacian(gamma=0.3)",
                        "matern(nu=1.5,gamma=0.4)"),
                testing::ValuesIn(metrics)),
        [](const auto& info) {
            const std::string name = std::get<0>(info.param);
            return name.substr(0, name.find('(')) +
                    (std::get<1>(info.param) == faiss::METRIC_L2 ? "_L2"
                                                                 : "_IP");
        });

// More vectors than a block, each of them three times; more queries than a
// block, some of them equal to vectors.
TEST_P(EachKernel, EqualsBruteForce) {
    for (const auto& [d, different] : {std::pair(5, 400), {3001, 20}}) {
        SCOPED_TRACE(d);
        const idx_t n = 3 * different;
        const auto once = uniform_vectors(different, d, 1);
        const auto x = joined(joined(once, once), once);
        const auto q = joined(uniform_vectors(14, d, 2), rows(once, d, 0, 5));
        const auto index = make(d, x);
        const auto all = all_distances(*index, q, x);
        if (metric == faiss::METRIC_L2) {
            EXPECT_EQ(all[14 * n], 0); // of equal vectors
        }
        const std::vector<idx_t> chosen = {3, 44, 45, n - 1, 17};
        faiss::IDSelectorRange none(n, n + 10);
        faiss::IDSelectorBatch batch(chosen.size(), chosen.data());
        faiss::IDSelectorNot no_batch(&batch);
        for (faiss::IDSelector* sel : std::vector<faiss::IDSelector*>{
                     nullptr, &none, &batch, &no_batch}) {
            faiss::SearchParameters params;
            params.sel = sel;
            for (idx_t k : {idx_t(1), idx_t(20), n + 3}) {
                expect_same(
                        search(*index, q, k, &params),
                        nearest(all, n, metric, k, sel));
            }
            // at a radius that is the distance of a vector, this one is out
            for (float radius : {all[7], all[n / 2], 0.0f, inf, -inf}) {
                EXPECT_EQ(
                        range_search(*index, q, radius, &params),
                        within(all, n, metric, radius, sel));
            }
        }
    }
}

TEST_P(EachKernel, DistanceComputer) {
    const int d = 7;
    const idx_t n = 100;
    const auto x = uniform_vectors(n, d, 15), q = uniform_vectors(3, d, 16);
    const auto index = make(d, x);
    const std::unique_ptr<faiss::FlatCodesDistanceComputer> computer(
            index->get_FlatCodesDistanceComputer());
    const auto distances = all_distances(*index, q, x);
    for (idx_t i = 0; i < 3 * n; i++) {
        const idx_t id = i % n;
        const uint8_t* code = index->codes.data() + id * index->code_size;
        computer->set_query(&q[i / n * d]);
        EXPECT_EQ((*computer)(id), distances[i]);
        EXPECT_EQ(computer->distance_to_code(code), distances[i]);
    }
    // between stored vectors
    const auto among = all_distances(*index, rows(x, d, 3, 4), x);
    for (idx_t j = 0; j < n; j++) {
        EXPECT_EQ(computer->symmetric_dis(3, j), among[j]);
    }
}

TEST_P(EachKernel, StartsEmptyAndChanges) {
    const int d = 5;
    const auto x = uniform_vectors(50, d, 17), q = uniform_vectors(4, d, 18);
    const float padding = metric == faiss::METRIC_L2 ? max_float : -max_float;
    const auto index = make(d);
    EXPECT_EQ(search(*index, q, 2).labels, std::vector<idx_t>(8, -1));
    EXPECT_EQ(search(*index, q, 2).distances, std::vector<float>(8, padding));
    EXPECT_EQ(range_search(*index, q, padding), Ranges(4));
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
    const auto same = make(d, rest);
    expect_same(search(*index, q, 35), search(*same, q, 35));

    index->reset();
    EXPECT_EQ(index->ntotal, 0);
    EXPECT_TRUE(index->is_trained);
    EXPECT_EQ(search(*index, q, 1).labels, std::vector<idx_t>(4, -1));
    index->add(30, rest.data());
    expect_same(search(*index, q, 35), search(*same, q, 35));
}

TEST_P(EachKernel, Merge) {
    const int d = 5;
    const auto x = uniform_vectors(90, d, 19), q = uniform_vectors(6, d, 20);
    const auto begin = rows(x, d, 0, 40), end = rows(x, d, 40, 90);
    const auto a = make(d, begin), b = make(d, end);
    const auto other_metric = metric == metrics[0] ? metrics[1] : metrics[0];
    std::vector<std::unique_ptr<faiss::Index>> others;
    others.push_back(make_index(kernel, other_metric, d, begin));
    others.push_back(make_index("gaussian(gamma=0.25)", metric, d, begin));
    others.push_back(make(4, begin));
    others.push_back(std::make_unique<faiss::IndexFlat>(d, metric));
    for (const auto& other : others) {
        const idx_t n = other->ntotal;
        EXPECT_TRUE(throws([&] { a->check_compatible_for_merge(*other); }));
        EXPECT_TRUE(throws([&] { a->merge_from(*other); }));
        EXPECT_EQ(other->ntotal, n);
    }
    EXPECT_TRUE(throws([&] { a->merge_from(*b, 7); }));
    EXPECT_TRUE(throws([&] { a->merge_from(*a); }, "itself"));
    EXPECT_EQ(a->ntotal, 40);
    EXPECT_EQ(stored(*a), begin);
    EXPECT_EQ(stored(*b), end);

    a->check_compatible_for_merge(*b);
    a->merge_from(*b);
    EXPECT_EQ(b->ntotal, 0);
    expect_same(search(*a, q, 20), search(*make(d, x), q, 20));
    b->add(50, end.data());
    expect_same(search(*b, q, 20), search(*make(d, end), q, 20));
}

TEST_P(EachKernel, RefineOverEverythingEqualsBruteForce) {
    const int d = 8;
    const idx_t n = 200, k = 10;
    const auto x = uniform_vectors(n, d, 25), q = uniform_vectors(10, d, 26);
    const auto base = faiss_ext::index_factory(
            d, "SIK64(gaussian,gamma=1),BFlat", metric);
    const auto flat = make(d);
    faiss::IndexRefine refine(base.get(), flat.get());
    refine.add(n, x.data());
    for (float k_factor : {float(n) / k, 100.0f}) { // or more than there are
        refine.k_factor = k_factor;
        expect_same(search(refine, q, k), search(*flat, q, k));
    }
    std::vector<float> back(d);
    refine.reconstruct(7, back.data());
    EXPECT_EQ(back, rows(x, d, 7, 8));
}

// Few queries are compared with slices of the vectors, many are not; equal
// vectors lie in different slices. There are more vectors than are passed by at
// a time, and more queries than are searched for together.
TEST(IndexFlatKernel, ThreadsAndBatchesDoNotMatter) {
    const int d = 3;
    const idx_t n = 36000, nq = 130, k = 12;
    const auto once = uniform_vectors(n / 3, d, 13);
    const auto x = joined(joined(once, once), once);
    const auto q = uniform_vectors(nq, d, 14);
    const auto metric = faiss::METRIC_L2;
    const auto index = make_index("linear", metric, d, x);
    const auto all = all_distances(*index, rows(q, d, 0, 3), x);
    const auto found = search(*index, q, k);
    const auto expected = nearest(all, n, metric, k);
    EXPECT_EQ(rows(found.labels, k, 0, 3), expected.labels);
    EXPECT_EQ(rows(found.distances, k, 0, 3), expected.distances);
    const float radius = found.distances[k - 1];
    const auto ranges = range_search(*index, q, radius);
    EXPECT_EQ(
            Ranges(ranges.begin(), ranges.begin() + 3),
            within(all, n, metric, radius, nullptr));
    const Threads threads(3);
    expect_same(search(*index, q, k), found);
    EXPECT_EQ(range_search(*index, q, radius), ranges);
    for (const auto& [begin, end] : {std::pair(0, 1), {3, 20}}) {
        const auto piece = search(*index, rows(q, d, begin, end), k);
        EXPECT_EQ(piece.labels, rows(found.labels, k, begin, end));
        EXPECT_EQ(piece.distances, rows(found.distances, k, begin, end));
    }
    expect_same(
            search(*index, rows(q, d, 0, 1), n),
            nearest(rows(all, n, 0, 1), n, metric, n));
}

TEST(IndexFlatKernel, TakesACopyOfTheKernelAndTrainsIt) {
    const int d = 6;
    const auto x = uniform_vectors(300, d, 32), q = uniform_vectors(9, d, 33);
    const GaussianKernel kernel;
    IndexFlatKernel index(d, kernel);
    EXPECT_EQ(index.metric_type, faiss::METRIC_L2);
    EXPECT_FALSE(index.is_trained);
    const std::vector<float> same(10 * d, 0.5f);
    expect_throws(
            {{[&] { index.add(300, x.data()); }, "train"},
             {[&] { search(index, q, 1); }, "train"},
             {[&] { range_search(index, q, 1); }, "train"},
             // training that fails leaves it as it was
             {[&] { index.train(0, nullptr); }, ""},
             {[&] { index.train(1, x.data()); }, ""},
             {[&] { index.train(10, same.data()); }, ""},
             {[&] { IndexFlatKernel(0, kernel); }, "dimension"},
             {[&] { IndexFlatKernel(-3, kernel); }, "-3"},
             {[&] { IndexFlatKernel(7, kernel, faiss::METRIC_L1); },
              "metric"}});
    EXPECT_FALSE(index.is_trained || index.kernel->is_trained);
    EXPECT_EQ(index.ntotal, 0);

    index.train(300, x.data());
    EXPECT_TRUE(index.is_trained);
    EXPECT_FALSE(kernel.is_trained);
    GaussianKernel alone;
    alone.train(300, x.data(), d);
    const std::string string = index.kernel->description();
    EXPECT_EQ(string, alone.description());
    index.add(300, x.data());
    const auto given = make_index(string, faiss::METRIC_L2, d, x);
    expect_same(search(index, q, 5), search(*given, q, 5));
    given->train(9, q.data()); // has no effect where it is given
    EXPECT_EQ(given->kernel->description(), string);
}

TEST(IndexFlatKernel, BadCallsChangeNothing) {
    const int d = 4;
    const auto x = uniform_vectors(30, d, 23), q = uniform_vectors(3, d, 24);
    const auto index = make_index("linear", faiss::METRIC_L2, d, x);
    std::vector<float> out(3 * d);
    std::vector<idx_t> labels(6);
    std::vector<uint8_t> bytes(3 * index->sa_code_size());
    faiss::RangeSearchResult result(3);
    for (const auto& call :
         std::vector<std::function<void(idx_t, const float*)>>{
                 [&](idx_t n, auto y) { index->add(n, y); },
                 [&](idx_t n, auto y) { index->train(n, y); },
                 [&](idx_t n, auto y) {
                     index->search(n, y, 2, out.data(), labels.data());
                 },
                 [&](idx_t n, auto y) {
                     index->range_search(n, y, 1, &result);
                 },
                 [&](idx_t n, auto y) {
                     index->sa_encode(n, y, bytes.data());
                 }}) {
        for (float bad : {nan_value, inf, -inf}) {
            std::vector<float> y = q;
            y[7] = bad;
            EXPECT_TRUE(throws(
                    [&] { call(3, y.data()); }, "component 3 of vector 1"));
        }
        EXPECT_TRUE(throws([&] { call(-1, q.data()); }, "-1"));
        EXPECT_TRUE(throws([&] { call(3, nullptr); }, "null"));
    }
    EXPECT_TRUE(throws([&] { range_search(*index, q, nan_value); }, "NaN"));
    EXPECT_EQ(index->ntotal, 30);
    EXPECT_TRUE(index->is_trained);
    EXPECT_EQ(stored(*index), x);

    // what the codec makes is what is stored
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
    const auto index = make_index("linear", faiss::METRIC_L2, 2, {1, 2, 3, 4});
    const auto other = make_index("linear", faiss::METRIC_L2, 2, {1, 2});
    index->ntotal = 1000000;
    std::vector<float> x(2);
    expect_throws(
            {{[&] { search(*index, x, 1); }, "ntotal"},
             {[&] { range_search(*index, x, 1); }, "ntotal"},
             {[&] { index->add(1, x.data()); }, "ntotal"},
             {[&] { index->reconstruct(99999, x.data()); }, "ntotal"},
             {[&] { index->merge_from(*other); }, "ntotal"}});
    index->ntotal = 2;
    // beyond the vectors that it has, a distance counts as farthest
    const std::unique_ptr<faiss::DistanceComputer> distances(
            index->get_distance_computer());
    distances->set_query(x.data());
    EXPECT_EQ((*distances)(2), max_float);
}

// Products and distances of vectors that are taken stay within float.
TEST(IndexFlatKernel, KernelsThatOverflowAreRefused) {
    const std::vector<float> good = {0.5f, 0.25f}, huge = {1e30f, 1e30f};
    for (auto metric : metrics) {
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
            expect_throws(
                    {{[&] { index->add(1, huge.data()); }, "overflows"},
                     {[&] { search(*index, huge, 2); }, "overflows"},
                     {[&] { range_search(*index, huge, 1); }, "overflows"},
                     {[&] { graph.add(1, huge.data()); }, "overflows"},
                     {[&] { search(graph, huge, 1); }, "overflows"}});
            for (const faiss::Index* i :
                 std::vector<const faiss::Index*>{index.get(), &graph}) {
                EXPECT_EQ(i->ntotal, 1);
                EXPECT_EQ(search(*i, good, 1).labels[0], 0);
            }
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
    const auto reference = make_index("cosine", faiss::METRIC_L2, d, x);
    const auto expected = search(*reference, x, 10);
    // (what is below 2^-126 has lost digits already)
    for (int exponent : {-110, -100, -70, -63, 61, 64, 100, 124}) {
        SCOPED_TRACE(exponent);
        // only some of them, so that lengths are mixed
        std::vector<float> scaled = x;
        for (size_t i = 0; i < n * d; i++) {
            if (i / d % 3 > 0) {
                scaled[i] = std::ldexp(scaled[i], exponent);
            }
        }
        const auto index = make_index("cosine", faiss::METRIC_L2, d, scaled);
        expect_same(search(*index, scaled, 10), expected);
    }
    // the smallest numbers of all have a direction, too
    const float tiny = std::numeric_limits<float>::denorm_min();
    const auto kernel = kernel_factory("cosine");
    const std::vector<float> a = {tiny, tiny}, b = {1e38f, 1e38f}, c = {0, 0};
    EXPECT_NEAR((*kernel)(a.data(), b.data(), 2), 1, 1e-6);
    EXPECT_EQ((*kernel)(a.data(), c.data(), 2), 0);
}

} // namespace
