#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/utils/distances.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LaplacianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/bandwidth.h>

#include "testing_indexes.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float max_float = std::numeric_limits<float>::max();

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

/// The distance by its definition, from Kernel::operator() alone.
double defined_distance(
        const Kernel& k,
        faiss::MetricType metric,
        const float* x,
        const float* y,
        int d) {
    if (metric == faiss::METRIC_INNER_PRODUCT) {
        return k(x, y, d);
    }
    return double(k(x, x, d)) + k(y, y, d) - 2.0 * k(x, y, d);
}

/// All distances, one pair at a time, checked against their definition.
std::vector<float> all_distances(
        const Kernel& kernel,
        faiss::MetricType metric,
        const std::vector<float>& q,
        const std::vector<float>& x,
        int d) {
    std::vector<float> distances;
    for (size_t i = 0; i < q.size(); i += d) {
        for (size_t j = 0; j < x.size(); j += d) {
            float value;
            if (metric == faiss::METRIC_L2) {
                kernel.distance_block(1, &q[i], 1, &x[j], d, &value);
            } else {
                value = kernel(&q[i], &x[j], d);
            }
            const double expected =
                    defined_distance(kernel, metric, &q[i], &x[j], d);
            const double scale = 1 + kernel(&q[i], &q[i], d) +
                    std::abs(kernel(&x[j], &x[j], d));
            EXPECT_NEAR(value, expected, 1e-5 * scale);
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
    const bool is_distance = metric == faiss::METRIC_L2;
    Found<float> found;
    for (size_t begin = 0; begin < distances.size(); begin += n) {
        std::vector<std::pair<float, idx_t>> all;
        for (idx_t j = 0; j < n; j++) {
            if (!sel || sel->is_member(j)) {
                const float v = distances[begin + j];
                all.emplace_back(is_distance ? v : -v, j);
            }
        }
        std::sort(all.begin(), all.end());
        for (idx_t j = 0; j < k; j++) {
            const bool there = j < idx_t(all.size());
            const float score = there ? all[j].first : max_float;
            found.distances.push_back(is_distance ? score : -score);
            found.labels.push_back(there ? all[j].second : -1);
        }
    }
    return found;
}

Ranges within(
        const std::vector<float>& distances,
        idx_t n,
        faiss::MetricType metric,
        float radius,
        const faiss::IDSelector* sel = nullptr) {
    Ranges ranges;
    for (size_t begin = 0; begin < distances.size(); begin += n) {
        ranges.emplace_back();
        for (idx_t j = 0; j < n; j++) {
            const float v = distances[begin + j];
            const bool in =
                    metric == faiss::METRIC_L2 ? v < radius : v > radius;
            if (in && (!sel || sel->is_member(j))) {
                ranges.back().emplace_back(j, v);
            }
        }
    }
    return ranges;
}

std::vector<uint8_t> stored_bytes(const IndexFlatKernel& index) {
    return std::vector<uint8_t>(
            index.codes.data(), index.codes.data() + index.codes.size());
}

using Param = std::tuple<std::string, faiss::MetricType>;

struct EachKernel : testing::TestWithParam<Param> {
    std::string kernel = std::get<0>(GetParam());
    faiss::MetricType metric = std::get<1>(GetParam());
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
                testing::Values(faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT)),
        [](const auto& info) {
            const std::string name = std::get<0>(info.param);
            return name.substr(0, name.find('(')) +
                    (std::get<1>(info.param) == faiss::METRIC_L2 ? "_L2"
                                                                 : "_IP");
        });

TEST_P(EachKernel, SearchEqualsBruteForce) {
    // more vectors than a block, each of them three times; more queries than a
    // block, some of them equal to vectors
    const int d = 5;
    std::vector<float> x = random_vectors(800, d, 1),
                       q = random_vectors(30, d, 2);
    const std::vector<float> once = x;
    x.insert(x.end(), once.begin(), once.end());
    x.insert(x.end(), once.begin(), once.end());
    q.insert(q.end(), once.begin(), once.begin() + 7 * d);
    const idx_t n = x.size() / d;

    const auto index = make_index(kernel, metric, d, x);
    EXPECT_EQ(index->ntotal, n);
    EXPECT_TRUE(index->is_trained);
    const auto all = all_distances(*index->kernel, metric, q, x, d);
    for (idx_t k : {1, 2, 20, 1000}) {
        expect_same(search(*index, q, k), nearest(all, n, metric, k));
    }
}

TEST_P(EachKernel, LongVectors) {
    const int d = 3001;
    const auto x = random_vectors(60, d, 3), q = random_vectors(18, d, 4);
    const auto index = make_index(kernel, metric, d, x);
    const auto all = all_distances(*index->kernel, metric, q, x, d);
    expect_same(search(*index, q, 60), nearest(all, 60, metric, 60));
}

TEST_P(EachKernel, EqualVectorsComeByAscendingId) {
    const int d = 4;
    const std::vector<float> one = random_vectors(1, d, 5);
    std::vector<float> x;
    for (int i = 0; i < 100; i++) {
        x.insert(x.end(), one.begin(), one.end());
    }
    const auto index = make_index(kernel, metric, d, x);
    const auto found = search(*index, one, 50);
    for (idx_t j = 0; j < 50; j++) {
        EXPECT_EQ(found.labels[j], j);
        EXPECT_EQ(found.distances[j], found.distances[0]);
    }
    if (metric == faiss::METRIC_L2) {
        EXPECT_EQ(found.distances[0], 0);
    }
}

TEST_P(EachKernel, MissingResultsAreMarked) {
    const int d = 3;
    const auto x = random_vectors(4, d, 6), q = random_vectors(2, d, 7);
    const auto index = make_index(kernel, metric, d, x);
    const auto found = search(*index, q, 7);
    const float padding = metric == faiss::METRIC_L2 ? max_float : -max_float;
    for (int i = 0; i < 2; i++) {
        std::vector<idx_t> labels(
                found.labels.begin() + i * 7, found.labels.begin() + i * 7 + 4);
        std::sort(labels.begin(), labels.end());
        EXPECT_EQ(labels, (std::vector<idx_t>{0, 1, 2, 3}));
        for (int j = 4; j < 7; j++) {
            EXPECT_EQ(found.labels[i * 7 + j], -1);
            EXPECT_EQ(found.distances[i * 7 + j], padding);
        }
    }
}

TEST_P(EachKernel, EmptyIndex) {
    const int d = 3;
    const auto q = random_vectors(20, d, 8);
    const auto index = make_index(kernel, metric, d);
    const float padding = metric == faiss::METRIC_L2 ? max_float : -max_float;
    const auto found = search(*index, q, 5);
    EXPECT_EQ(found.labels, std::vector<idx_t>(100, -1));
    EXPECT_EQ(found.distances, std::vector<float>(100, padding));
    const float all = metric == faiss::METRIC_L2 ? inf : -inf;
    EXPECT_EQ(total_size(range_search(*index, q, all)), 0u);
    // nothing to add, nothing to search for
    index->add(0, nullptr);
    index->search(0, nullptr, 5, nullptr, nullptr);
    EXPECT_TRUE(range_search(*index, {}, all).empty());
    EXPECT_EQ(index->ntotal, 0);
}

TEST_P(EachKernel, Selectors) {
    const int d = 5;
    const idx_t n = 2500; // several blocks
    const auto x = random_vectors(n, d, 9), q = random_vectors(20, d, 10);
    const auto index = make_index(kernel, metric, d, x);
    const auto all = all_distances(*index->kernel, metric, q, x, d);
    const std::vector<idx_t> chosen = {3, 1044, 45, 2499, 17};
    faiss::IDSelectorRange range(900, 1900);
    faiss::IDSelectorBatch batch(chosen.size(), chosen.data());
    faiss::IDSelectorNot no_batch(&batch);
    faiss::IDSelectorRange none(3000, 4000);
    for (faiss::IDSelector* sel :
         std::vector<faiss::IDSelector*>{&range, &batch, &no_batch, &none}) {
        faiss::SearchParameters params;
        params.sel = sel;
        expect_same(
                search(*index, q, 10, &params),
                nearest(all, n, metric, 10, sel));
        const float radius = all[7];
        EXPECT_EQ(
                range_search(*index, q, radius, &params),
                within(all, n, metric, radius, sel));
    }
    // parameters without a selector
    faiss::SearchParameters params;
    expect_same(search(*index, q, 10, &params), search(*index, q, 10));
}

TEST_P(EachKernel, RangeSearchIsStrictAndOrderedById) {
    const int d = 5;
    const idx_t n = 2000;
    const auto x = random_vectors(n, d, 11), q = random_vectors(40, d, 12);
    const auto index = make_index(kernel, metric, d, x);
    const auto all = all_distances(*index->kernel, metric, q, x, d);
    const bool is_distance = metric == faiss::METRIC_L2;

    std::vector<float> some(all.begin(), all.begin() + n);
    std::nth_element(some.begin(), some.begin() + n / 2, some.end());
    const float radius = some[n / 2];
    EXPECT_EQ(range_search(*index, q, radius), within(all, n, metric, radius));

    // a vector at the radius itself is out, a hair further it is in
    const idx_t id = std::find(all.begin(), all.end(), radius) - all.begin();
    ASSERT_LT(id, n);
    const auto contains = [&](float r) {
        const auto range = range_search(*index, q, r)[0];
        return std::count(range.begin(), range.end(), std::pair(id, radius)) ==
                1;
    };
    EXPECT_FALSE(contains(radius));
    EXPECT_TRUE(contains(std::nextafter(radius, is_distance ? inf : -inf)));

    EXPECT_EQ(
            range_search(*index, q, is_distance ? inf : -inf),
            within(all, n, metric, is_distance ? inf : -inf));
    EXPECT_EQ(
            total_size(range_search(*index, q, is_distance ? inf : -inf)),
            all.size());
    EXPECT_EQ(
            total_size(range_search(*index, q, is_distance ? -inf : inf)), 0u);
    if (is_distance) {
        EXPECT_EQ(total_size(range_search(*index, x, 0)), 0u);
    }
    EXPECT_TRUE(throws([&] { range_search(*index, q, nan_value); }, "NaN"));
}

TEST_P(EachKernel, ThreadsAndBatchesDoNotMatter) {
    // few queries are compared with slices of the vectors, many are not; equal
    // vectors lie in different slices
    const int d = 6;
    const idx_t n = 12600, k = 12, nq = 16;
    std::vector<float> x = random_vectors(n / 3, d, 13);
    const std::vector<float> once = x;
    x.insert(x.end(), once.begin(), once.end());
    x.insert(x.end(), once.begin(), once.end());
    const auto q = random_vectors(nq, d, 14);
    const auto index = make_index(kernel, metric, d, x);
    const auto all =
            all_distances(*index->kernel, metric, rows(q, d, 0, 3), x, d);

    Found<float> reference;
    Ranges range_reference;
    const float radius = all[5];
    for (int nthreads : {1, 2, 5}) {
        SCOPED_TRACE(nthreads);
        Threads threads(nthreads);
        const auto found = search(*index, q, k);
        const auto ranges = range_search(*index, q, radius);
        if (nthreads == 1) {
            reference = found;
            range_reference = ranges;
            expect_same(
                    Found<float>{
                            rows(found.distances, k, 0, 3),
                            rows(found.labels, k, 0, 3)},
                    nearest(all, n, metric, k));
        }
        expect_same(found, reference);
        EXPECT_TRUE(ranges == range_reference);
        for (idx_t batch : {1, 7}) {
            SCOPED_TRACE(batch);
            Found<float> pieces;
            for (idx_t i = 0; i < nq; i += batch) {
                const auto piece = search(
                        *index, rows(q, d, i, std::min(nq, i + batch)), k);
                pieces.distances.insert(
                        pieces.distances.end(),
                        piece.distances.begin(),
                        piece.distances.end());
                pieces.labels.insert(
                        pieces.labels.end(),
                        piece.labels.begin(),
                        piece.labels.end());
            }
            expect_same(pieces, reference);
        }
    }
}

TEST_P(EachKernel, DistanceComputer) {
    const int d = 7;
    const idx_t n = 200;
    const auto x = random_vectors(n, d, 15), q = random_vectors(5, d, 16);
    const auto index = make_index(kernel, metric, d, x);
    std::unique_ptr<faiss::FlatCodesDistanceComputer> computer(
            index->get_FlatCodesDistanceComputer());
    const faiss::Index* base = index.get();
    std::unique_ptr<faiss::DistanceComputer> plain(
            base->get_distance_computer());
    const auto found = search(*index, q, n);
    for (idx_t i = 0; i < 5; i++) {
        computer->set_query(&q[i * d]);
        plain->set_query(&q[i * d]);
        for (idx_t j = 0; j < n; j++) {
            const idx_t id = found.labels[i * n + j];
            const float distance = found.distances[i * n + j];
            EXPECT_EQ((*computer)(id), distance);
            EXPECT_EQ((*plain)(id), distance);
            EXPECT_EQ(
                    computer->distance_to_code(
                            index->codes.data() + id * index->code_size),
                    distance);
        }
    }
    // between stored vectors
    const auto among = search(*index, rows(x, d, 3, 4), n);
    for (idx_t j = 0; j < n; j++) {
        EXPECT_EQ(
                computer->symmetric_dis(3, among.labels[j]),
                among.distances[j]);
    }
}

TEST_P(EachKernel, RemoveReconstructReset) {
    const int d = 5;
    const auto x = random_vectors(50, d, 17), q = random_vectors(4, d, 18);
    const auto index = make_index(kernel, metric, d, x);
    faiss::IDSelectorRange range(10, 30);
    EXPECT_EQ(index->remove_ids(range), 20u);
    EXPECT_EQ(index->ntotal, 30);
    std::vector<float> rest = rows(x, d, 0, 10);
    rest.insert(rest.end(), x.begin() + 30 * d, x.end());

    std::vector<float> back(30 * d), one(d);
    index->reconstruct_n(0, 30, back.data());
    EXPECT_EQ(back, rest);
    index->reconstruct(10, one.data());
    EXPECT_EQ(one, rows(x, d, 30, 31));
    EXPECT_TRUE(throws([&] { index->reconstruct(30, one.data()); }));
    EXPECT_TRUE(throws([&] { index->reconstruct(-1, one.data()); }));
    EXPECT_TRUE(throws([&] { index->reconstruct_n(20, 11, back.data()); }));

    const auto same = make_index(kernel, metric, d, rest);
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
    const auto x = random_vectors(90, d, 19), q = random_vectors(6, d, 20);
    const auto a = make_index(kernel, metric, d, rows(x, d, 0, 40));
    const auto b = make_index(kernel, metric, d, rows(x, d, 40, 90));
    const auto whole = make_index(kernel, metric, d, x);

    const auto unchanged = [&] {
        EXPECT_EQ(a->ntotal, 40);
        EXPECT_EQ(b->ntotal, 50);
        EXPECT_EQ(stored_bytes(*a).size(), 40 * d * sizeof(float));
        EXPECT_EQ(stored_bytes(*b).size(), 50 * d * sizeof(float));
    };
    EXPECT_TRUE(throws([&] { a->merge_from(*b, 7); }));
    unchanged();
    a->check_compatible_for_merge(*b);
    a->merge_from(*b);
    EXPECT_EQ(a->ntotal, 90);
    EXPECT_EQ(b->ntotal, 0);
    expect_same(search(*a, q, 20), search(*whole, q, 20));
    b->add(50, x.data() + 40 * d);
    EXPECT_EQ(search(*b, rows(x, d, 40, 41), 50).labels.size(), 50u);
}

TEST_P(EachKernel, MergeOfWhatDoesNotFit) {
    const int d = 5;
    const auto x = random_vectors(40, d, 21);
    const auto a = make_index(kernel, metric, d, x);
    const auto before = stored_bytes(*a);
    const auto other_metric = metric == faiss::METRIC_L2
            ? faiss::METRIC_INNER_PRODUCT
            : faiss::METRIC_L2;
    std::vector<std::unique_ptr<faiss::Index>> others;
    others.push_back(make_index(kernel, other_metric, d, x));
    others.push_back(make_index("gaussian(gamma=0.25)", metric, d, x));
    others.push_back(make_index("laplacian(gamma=0.25)", metric, d, x));
    others.push_back(make_index(kernel, metric, 4, x));
    others.push_back(std::make_unique<faiss::IndexFlat>(d, metric));
    for (const auto& other : others) {
        const idx_t n = other->ntotal;
        EXPECT_TRUE(throws([&] { a->check_compatible_for_merge(*other); }));
        EXPECT_TRUE(throws([&] { a->merge_from(*other); }));
        EXPECT_EQ(other->ntotal, n);
        EXPECT_EQ(a->ntotal, 40);
        EXPECT_EQ(stored_bytes(*a), before);
    }
}

TEST_P(EachKernel, StandaloneCodec) {
    const int d = 5;
    const auto x = random_vectors(33, d, 22);
    const auto index = make_index(kernel, metric, d);
    ASSERT_EQ(index->sa_code_size(), d * sizeof(float));
    std::vector<uint8_t> bytes(33 * index->sa_code_size());
    index->sa_encode(33, x.data(), bytes.data());
    std::vector<float> back(x.size());
    index->sa_decode(33, bytes.data(), back.data());
    EXPECT_EQ(back, x);
    EXPECT_EQ(index->ntotal, 0);
    index->sa_encode(0, nullptr, nullptr);
    index->sa_decode(0, nullptr, nullptr);
    index->add(33, x.data());
    EXPECT_EQ(stored_bytes(*index), bytes);
    EXPECT_EQ(std::vector<float>(index->get_xb(), index->get_xb() + 33 * d), x);
}

TEST_P(EachKernel, BadCallsChangeNothing) {
    const int d = 4;
    const auto x = random_vectors(30, d, 23), q = random_vectors(3, d, 24);
    const auto index = make_index(kernel, metric, d, x);
    const auto before = search(*index, q, 8);
    const auto bytes = stored_bytes(*index);
    const std::string description = index->kernel->description();
    std::vector<float> out(100);
    std::vector<idx_t> labels(100);
    faiss::RangeSearchResult result(3);

    for (idx_t k : {0, -1, -1000000}) {
        EXPECT_TRUE(throws(
                [&] {
                    index->search(3, q.data(), k, out.data(), labels.data());
                },
                "expected a positive number"));
    }
    for (float bad : {nan_value, inf, -inf}) {
        for (int at : {0, 7, 11}) {
            std::vector<float> y = q;
            y[at] = bad;
            const std::string place = "component " + std::to_string(at % d) +
                    " of vector " + std::to_string(at / d);
            EXPECT_TRUE(throws([&] { index->add(3, y.data()); }, place));
            EXPECT_TRUE(throws([&] { index->train(3, y.data()); }, place));
            EXPECT_TRUE(throws([&] { search(*index, y, 2); }, place));
            EXPECT_TRUE(throws([&] { range_search(*index, y, 1); }, place));
        }
    }
    EXPECT_TRUE(throws([&] { index->add(-1, q.data()); }));
    EXPECT_TRUE(throws([&] { index->add(3, nullptr); }, "null"));
    EXPECT_TRUE(throws([&] { index->train(3, nullptr); }, "null"));
    EXPECT_TRUE(throws([&] {
        index->search(-1, q.data(), 2, out.data(), labels.data());
    }));
    EXPECT_TRUE(throws(
            [&] { index->search(3, nullptr, 2, out.data(), labels.data()); },
            "null"));
    EXPECT_TRUE(throws(
            [&] { index->range_search(3, nullptr, 1, &result); }, "null"));

    EXPECT_EQ(index->ntotal, 30);
    EXPECT_TRUE(index->is_trained);
    EXPECT_EQ(stored_bytes(*index), bytes);
    EXPECT_EQ(index->kernel->description(), description);
    expect_same(search(*index, q, 8), before);
    index->add(3, q.data());
    EXPECT_EQ(index->ntotal, 33);
}

TEST_P(EachKernel, RefineOverEverythingEqualsBruteForce) {
    const int d = 8;
    const idx_t n = 400, k = 10;
    const auto x = random_vectors(n, d, 25), q = random_vectors(20, d, 26);
    auto base = faiss_ext::index_factory(
            d, "SIK64(gaussian,gamma=1),BFlat", metric);
    const auto flat = make_index(kernel, metric, d);
    faiss::IndexRefine refine(base.get(), flat.get());
    EXPECT_TRUE(refine.is_trained);
    refine.add(n, x.data());
    refine.k_factor = float(n) / k;
    expect_same(search(refine, q, k), search(*flat, q, k));
    // more than there are
    refine.k_factor = 100;
    expect_same(search(refine, q, k), search(*flat, q, k));
    std::vector<float> back(d);
    refine.reconstruct(7, back.data());
    EXPECT_EQ(back, rows(x, d, 7, 8));
}

TEST_P(EachKernel, HNSW) {
    const int d = 16;
    const idx_t n = 2000, nq = 100, k = 10;
    // of length 1: with inner products, a graph's neighbours are near then
    auto x = clustered_vectors(n, d, 20, 0.2f, 27);
    auto q = clustered_vectors(nq, d, 20, 0.2f, 28);
    faiss::fvec_renorm_L2(d, n, x.data());
    faiss::fvec_renorm_L2(d, nq, q.data());
    faiss::IndexHNSW hnsw(make_index(kernel, metric, d).release(), 16);
    hnsw.own_fields = true;
    hnsw.hnsw.efConstruction = 80;
    hnsw.hnsw.efSearch = 80;
    EXPECT_EQ(hnsw.metric_type, metric);
    hnsw.add(n, x.data());
    EXPECT_EQ(hnsw.ntotal, n);
    const auto& flat = dynamic_cast<const IndexFlatKernel&>(*hnsw.storage);
    EXPECT_EQ(flat.ntotal, n);

    const auto truth = search(flat, q, k);
    const auto found = search(hnsw, q, k);
    EXPECT_GE(recall(found.labels, truth.labels, k), 0.95);
    // what it finds has the right distance
    for (idx_t i = 0; i < nq; i++) {
        for (idx_t j = 0; j < k; j++) {
            const idx_t id = found.labels[i * k + j];
            ASSERT_GE(id, 0);
            EXPECT_NEAR(
                    found.distances[i * k + j],
                    defined_distance(
                            *flat.kernel, metric, &q[i * d], &x[id * d], d),
                    1e-4);
        }
    }
    std::vector<float> back(d);
    hnsw.reconstruct(5, back.data());
    EXPECT_EQ(back, rows(x, d, 5, 6));
}

TEST(IndexFlatKernel, ManyVectors) {
    // more than are passed by at a time, the same ones again and again, for
    // more queries than a thread takes
    const int d = 2;
    const idx_t n = 70000, nq = 50, k = 30;
    const auto once = random_vectors(7000, d, 40),
               q = random_vectors(nq, d, 41);
    std::vector<float> x;
    for (idx_t i = 0; i < n; i += 7000) {
        x.insert(x.end(), once.begin(), once.end());
    }
    const auto index = make_index("linear", faiss::METRIC_L2, d, x);
    for (int nthreads : {1, 2, 5}) {
        Threads threads(nthreads);
        const auto found = search(*index, q, k);
        for (idx_t i : {idx_t(0), idx_t(17), nq - 1}) {
            const auto query = rows(q, d, i, i + 1);
            const auto all = all_distances(
                    *index->kernel, faiss::METRIC_L2, query, x, d);
            expect_same(
                    Found<float>{
                            rows(found.distances, k, i, i + 1),
                            rows(found.labels, k, i, i + 1)},
                    nearest(all, n, faiss::METRIC_L2, k));
            expect_same(
                    search(*index, query, k),
                    nearest(all, n, faiss::METRIC_L2, k));
        }
    }
}

TEST(IndexFlatKernel, ManyResults) {
    // the queries are searched for in groups
    const int d = 3;
    const idx_t n = 3000, nq = 600;
    const auto x = random_vectors(n, d, 42), q = random_vectors(nq, d, 43);
    const auto index = make_index("linear", faiss::METRIC_L2, d, x);
    const auto found = search(*index, q, n);
    for (idx_t i = 0; i < nq; i += 23) {
        expect_same(
                Found<float>{
                        rows(found.distances, n, i, i + 1),
                        rows(found.labels, n, i, i + 1)},
                search(*index, rows(q, d, i, i + 1), n));
    }
    for (idx_t i = 0; i < nq; i++) {
        std::vector<idx_t> labels = rows(found.labels, n, i, i + 1);
        std::sort(labels.begin(), labels.end());
        EXPECT_EQ(labels[0], 0);
        EXPECT_EQ(labels[n - 1], n - 1);
        EXPECT_EQ(
                std::unique(labels.begin(), labels.end()) - labels.begin(), n);
    }
}

TEST(IndexFlatKernel, LinearEqualsIndexFlat) {
    const int d = 12;
    const auto x = random_vectors(500, d, 30), q = random_vectors(20, d, 31);
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const auto index = make_index("linear", metric, d, x);
        faiss::IndexFlat flat(d, metric);
        flat.add(500, x.data());
        const auto found = search(*index, q, 10),
                   expected = search(flat, q, 10);
        EXPECT_EQ(found.labels, expected.labels);
        for (size_t i = 0; i < found.distances.size(); i++) {
            EXPECT_NEAR(found.distances[i], expected.distances[i], 1e-5);
        }
    }
}

TEST(IndexFlatKernel, Constructor) {
    const GaussianKernel kernel(0.5);
    const IndexFlatKernel index(7, kernel);
    EXPECT_EQ(index.d, 7);
    EXPECT_EQ(index.metric_type, faiss::METRIC_L2);
    EXPECT_EQ(index.code_size, 28u);
    EXPECT_EQ(index.ntotal, 0);
    EXPECT_TRUE(index.is_trained);
    EXPECT_EQ(index.kernel->description(), kernel.description());
    EXPECT_NE(index.kernel.get(), &kernel);
    EXPECT_FALSE(IndexFlatKernel(7, GaussianKernel()).is_trained);

    EXPECT_TRUE(throws([&] { IndexFlatKernel(0, kernel); }, "dimension"));
    EXPECT_TRUE(throws([&] { IndexFlatKernel(-3, kernel); }, "dimension"));
    for (auto metric :
         {faiss::METRIC_L1, faiss::METRIC_Linf, faiss::METRIC_Canberra}) {
        EXPECT_TRUE(
                throws([&] { IndexFlatKernel(7, kernel, metric); }, "metric"));
    }
}

TEST(IndexFlatKernel, BandwidthFromData) {
    const int d = 6;
    const auto x = random_vectors(500, d, 32), q = random_vectors(9, d, 33);
    GaussianKernel gaussian;
    LaplacianKernel laplacian;
    for (ShiftInvariantKernel* kernel :
         std::vector<ShiftInvariantKernel*>{&gaussian, &laplacian}) {
        const bool l1 = kernel == &laplacian;
        IndexFlatKernel index(d, *kernel);
        EXPECT_FALSE(index.is_trained);
        EXPECT_TRUE(throws([&] { index.add(500, x.data()); }, "train"));
        EXPECT_TRUE(throws([&] { search(index, q, 1); }, "train"));
        EXPECT_TRUE(throws([&] { range_search(index, q, 1); }, "train"));
        EXPECT_EQ(index.ntotal, 0);

        // training that fails leaves it as it was
        EXPECT_TRUE(throws([&] { index.train(0, nullptr); }));
        EXPECT_TRUE(throws([&] { index.train(1, x.data()); }));
        const std::vector<float> same(10 * d, 0.5f);
        EXPECT_TRUE(
                throws([&] { index.train(10, same.data()); }, "all the same"));
        EXPECT_FALSE(index.is_trained);
        EXPECT_FALSE(index.kernel->is_trained);

        index.train(500, x.data());
        EXPECT_TRUE(index.is_trained);
        const double radius = mean_neighbor_distance(l1, 500, x.data(), d);
        const auto& trained =
                dynamic_cast<const ShiftInvariantKernel&>(*index.kernel);
        EXPECT_DOUBLE_EQ(
                trained.gamma, l1 ? 1 / radius : 1 / (radius * radius));
        EXPECT_FALSE(kernel->is_trained); // the index has its own

        index.add(500, x.data());
        const auto found = search(index, q, 5);
        const auto fixed =
                make_index(trained.description(), faiss::METRIC_L2, d, x);
        expect_same(found, search(*fixed, q, 5));
    }
}

TEST(IndexFlatKernel, GivenBandwidthSurvivesTraining) {
    const int d = 6;
    const auto x = random_vectors(100, d, 34);
    const auto index = make_index("gaussian(gamma=0.125)", faiss::METRIC_L2, d);
    index->train(100, x.data());
    EXPECT_TRUE(index->is_trained);
    EXPECT_EQ(index->kernel->description(), "gaussian(gamma=0.125)");
}

// Products and distances of vectors that are taken stay within float.
TEST(IndexFlatKernel, KernelsThatOverflowAreRefused) {
    for (auto metric : {faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L2}) {
        for (const char* kernel :
             {"linear",
              "poly(degree=8)",
              "normalized(poly(degree=8))",
              "normalized(linear)",
              "exponential(linear,scale=50)",
              "exponential(poly(degree=8),scale=1)"}) {
            SCOPED_TRACE(kernel);
            const auto index =
                    make_index(kernel, metric, 2, {0.5f, 0.25f, 0.3f, 0.4f});
            const std::vector<float> huge = {1e30f, 1e30f};
            const auto refuses = [&](const std::function<void()>& call) {
                return throws(call, "overflows");
            };
            EXPECT_TRUE(refuses([&] { index->add(1, huge.data()); }));
            EXPECT_TRUE(refuses([&] { search(*index, huge, 2); }));
            EXPECT_TRUE(refuses([&] { range_search(*index, huge, 1); }));
            EXPECT_EQ(index->ntotal, 2);
            EXPECT_EQ(search(*index, {0.5f, 0.25f}, 1).labels[0], 0);

            IndexFlatKernel flat(2, *kernel_factory(kernel), metric);
            IndexHNSWKernel graph(&flat, 4);
            EXPECT_TRUE(refuses([&] { graph.add(1, huge.data()); }));
            EXPECT_EQ(graph.ntotal, 0);
            graph.add(2, index->get_xb());
            EXPECT_TRUE(refuses([&] { search(graph, huge, 1); }));
            EXPECT_TRUE(graph.graph_is_complete);
            search(graph, {0.5f, 0.25f}, 1);
        }
    }
}

TEST(IndexFlatKernel, ValuesAtTheLimitAreFinite) {
    // k(x, x) is just within the limit
    const float x = std::sqrt(Kernel::max_self_value) * 0.999f;
    for (auto metric : {faiss::METRIC_INNER_PRODUCT, faiss::METRIC_L2}) {
        const auto index = make_index("linear", metric, 1, {x, -x});
        for (float v : search(*index, {x, -x}, 2).distances) {
            EXPECT_TRUE(std::isfinite(v));
        }
    }
}

TEST(IndexFlatKernel, CosinesDoNotDependOnLengths) {
    const size_t d = 20, n = 50;
    const std::vector<float> x = random_vectors(n, d, 3);
    const auto reference = make_index("cosine", faiss::METRIC_L2, d, x);
    const auto expected = search(*reference, x, 10);
    for (int exponent : {-149, -130, -100, -70, -63, 61, 64, 100, 124}) {
        SCOPED_TRACE(exponent);
        // only some of them, so that lengths are mixed
        std::vector<float> scaled = x;
        for (size_t i = 0; i < n * d; i++) {
            if (i / d % 3 > 0) {
                // (what is below 2^-126 has lost digits already)
                const int by = std::max(exponent, -110);
                scaled[i] = std::ldexp(scaled[i], by);
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

TEST(IndexFlatKernel, MergingWithItselfIsRefused) {
    const auto index = make_index("linear", faiss::METRIC_L2, 2, {1, 2, 3, 4});
    EXPECT_TRUE(throws([&] { index->merge_from(*index, 0); }, "itself"));
    EXPECT_EQ(index->ntotal, 2);
}

TEST(IndexFlatKernel, FieldsSetByHand) {
    const auto index = make_index("linear", faiss::METRIC_L2, 2, {1, 2, 3, 4});
    index->ntotal = 1000000;
    std::vector<float> x(2);
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
                 [&] { search(*index, x, 1); },
                 [&] { range_search(*index, x, 1); },
                 [&] { index->add(1, x.data()); },
                 [&] { index->reconstruct(99999, x.data()); },
                 [&] {
                     const auto other =
                             make_index("linear", faiss::METRIC_L2, 2, {1, 2});
                     index->merge_from(*other, 0);
                 }}) {
        EXPECT_TRUE(throws(call, "ntotal"));
    }
    index->ntotal = 2;
    EXPECT_TRUE(throws([&] { index->reconstruct(2, x.data()); }));
    EXPECT_TRUE(throws([&] { index->reconstruct(-1, x.data()); }));
    // beyond the vectors that it has, a distance counts as farthest
    const std::unique_ptr<faiss::DistanceComputer> distances(
            index->get_distance_computer());
    distances->set_query(x.data());
    EXPECT_EQ((*distances)(2), std::numeric_limits<float>::max());
}

TEST(IndexFlatKernel, StandaloneCodecRefusesWhatAddRefuses) {
    const auto index = make_index("linear", faiss::METRIC_L2, 3);
    const std::vector<float> bad = {0, nan_value, 1};
    std::vector<uint8_t> bytes(index->sa_code_size());
    EXPECT_TRUE(throws([&] { index->sa_encode(1, bad.data(), bytes.data()); }));
}

} // namespace
