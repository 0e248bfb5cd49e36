// SPDX-License-Identifier: MIT
// Sparse vectors: their canonical form, and exact search among them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <faiss/impl/AuxIndexStructures.h>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/AdditiveKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "indexes/SparseSegment.h"
#include "testing.h"
#include "testing_kernels.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr auto l2 = faiss::METRIC_L2, ip = faiss::METRIC_INNER_PRODUCT;

struct Found {
    Floats values;
    std::vector<idx_t> labels;

    bool operator==(const Found&) const = default;
};

Found search(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        const faiss::SearchParameters* params = nullptr) {
    Found found{Floats(x.n * k), std::vector<idx_t>(x.n * k)};
    index.search(x, k, found.values.data(), found.labels.data(), params);
    return found;
}

/// The k nearest by the scores of all pairs, which the index computes one by
/// one.
Found compare_all(
        const IndexSparseKernel& index,
        const Rows& q,
        idx_t k,
        const faiss::IDSelector* sel = nullptr) {
    const idx_t n = index.ntotal;
    std::vector<idx_t> ids(q.n() * n);
    for (idx_t i = 0; i < q.n() * n; i++) {
        ids[i] = i % n;
    }
    Floats scores(q.n() * n);
    const Floats x = q.dense();
    index.compute_score_subset(q.n(), x.data(), n, scores.data(), ids.data());
    Found found{Floats(q.n() * k), std::vector<idx_t>(q.n() * k, -1)};
    for (idx_t i = 0; i < q.n(); i++) {
        std::vector<std::pair<float, idx_t>> hits;
        for (idx_t j = 0; j < n; j++) {
            if (!sel || sel->is_member(j)) {
                hits.emplace_back(scores[i * n + j], j);
            }
        }
        std::sort(hits.begin(), hits.end());
        for (size_t j = 0; j < std::min<size_t>(k, hits.size()); j++) {
            found.values[i * k + j] = hits[j].first;
            found.labels[i * k + j] = hits[j].second;
        }
    }
    index.values_of_scores(q.n(), k, found.values.data(), found.labels.data());
    return found;
}

struct Case {
    std::string kernel;
    faiss::MetricType metric;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.kernel << (c.metric == l2 ? " L2" : " IP");
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const std::string& kernel :
         joined(plain_kernels,
                {"gaussian(gamma=2)",
                 "laplacian(gamma=1)",
                 "matern(nu=1.5,gamma=2)",
                 "expchi2(gamma=1)",
                 "poly(degree=2,c=1)",
                 "poly(degree=2,c=10000)",
                 "normalized(chi2)",
                 "normalized(poly(degree=3,c=0.5))",
                 "exponential(normalized(js),scale=3)"})) {
        all.push_back({kernel, l2});
        all.push_back({kernel, ip});
    }
    return all;
}

struct SparseKernels : testing::TestWithParam<Case> {
    const Case& c = GetParam();
    const std::unique_ptr<Kernel> kernel = kernel_factory(c.kernel);

    std::unique_ptr<IndexSparseKernel> make(const Rows& x) const {
        auto index = std::make_unique<IndexSparseKernel>(
                int(x.d), *kernel, c.metric);
        index->add(x.get());
        return index;
    }
};

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        SparseKernels,
        testing::ValuesIn(cases()),
        [](const auto& info) {
            std::string name = info.param.kernel;
            std::erase_if(name, [](char c) { return !std::isalnum(c); });
            return name + (info.param.metric == l2 ? "L2" : "IP");
        });

TEST_P(SparseKernels, EqualsDenseSearch) {
    const Rows x = draw(2000, 200, 8, false, 1), q = draw(10, 200, 8, false, 2);
    const auto index = make(x);
    IndexFlatKernel flat(200, *kernel, c.metric);
    const Floats dense = x.dense(), queries = q.dense();
    flat.add(x.n(), dense.data());
    const idx_t k = 10;
    const Found found = search(*index, q.get(), k);
    Floats expected(q.n() * k), at_labels(q.n() * k);
    std::vector<idx_t> labels(q.n() * k);
    flat.search(q.n(), queries.data(), k, expected.data(), labels.data());
    flat.compute_distance_subset(
            q.n(), queries.data(), k, at_labels.data(), found.labels.data());
    for (size_t i = 0; i < expected.size(); i++) {
        const float tolerance = 1e-5f * (1 + std::abs(expected[i]));
        EXPECT_NEAR(found.values[i], expected[i], tolerance);
        EXPECT_NEAR(found.values[i], at_labels[i], tolerance);
    }
}

/// Searches by lists and by dense vectors have the same results, also after
/// removals, with selectors, for vectors that are not in the lists, and for so
/// many queries that these are compared with several blocks.
TEST_P(SparseKernels, DenseVectorsOfASegmentFindTheSame) {
    const idx_t d = 40;
    const Rows x = draw(3000, d, 30, false, 4), q = draw(500, d, 30, false, 5);
    const auto sum = kernel->shared_sum(c.metric);
    if (!sum) {
        GTEST_SKIP() << "no lists";
    }
    SparseSegment segment;
    segment.append(x.get().slice(0, 2500), 0);
    segment.prepare(*kernel, *sum, d);
    segment.append(x.get().slice(2500, 3000), 2500);
    for (size_t i = 0; i < segment.size(); i += 7) {
        segment.remove(i);
    }
    EXPECT_EQ(segment.num_components(), x.indices.size());
    const Floats dense = q.dense();
    const faiss::IDSelectorRange some(100, 2700);
    for (const faiss::IDSelector* sel :
         {static_cast<const faiss::IDSelector*>(nullptr),
          static_cast<const faiss::IDSelector*>(&some)}) {
        std::vector<std::unique_ptr<SparseQuery>> queries;
        std::vector<SparseSearch> searches;
        for (idx_t i = 0; i < q.n(); i++) {
            const SparseRow row = SparseRow::of(q.get(), i);
            queries.push_back(std::make_unique<SparseQuery>(*kernel, row));
            searches.push_back(
                    {*queries.back(),
                     c.metric,
                     &*sum,
                     weight_of(*sum, row),
                     true,
                     sel});
        }
        SparseHits nearest(10);
        segment.search(searches[0], nearest);
        std::vector<std::pair<float, idx_t>> hits;
        nearest.append_to(hits);
        std::sort(hits.begin(), hits.end());
        ASSERT_GE(hits.size(), 10);
        const float bound = hits[9].first;
        for (const SparseHits& empty :
             {SparseHits(1), SparseHits(10), SparseHits::within(bound)}) {
            const size_t n = sel || empty.most() != 10 ? 20 : searches.size();
            std::vector<SparseHits> by_dense(n, empty);
            segment.search_dense(
                    {std::span(searches).first(n), size_t(d), dense.data()},
                    by_dense.data());
            for (size_t i = 0; i < n; i++) {
                SparseHits by_lists = empty;
                segment.search(searches[i], by_lists);
                std::vector<std::pair<float, idx_t>> a, b;
                by_lists.append_to(a);
                by_dense[i].append_to(b);
                std::sort(a.begin(), a.end());
                std::sort(b.begin(), b.end());
                const size_t kept = empty.are_within()
                        ? std::max(a.size(), b.size())
                        : empty.most();
                a.resize(std::min(a.size(), kept));
                b.resize(std::min(b.size(), kept));
                EXPECT_EQ(a, b) << i;
            }
        }
    }
}

TEST_P(SparseKernels, BatchesFindTheSame) {
    const Rows x = draw(2000, 40, 30, false, 6), q = draw(70, 40, 30, false, 7);
    const idx_t k = 10;
    const auto index = make(x);
    const Found all = search(*index, q.get(), k);
    EXPECT_EQ(all, compare_all(*index, q, k));
    for (idx_t i = 0; i < q.n(); i++) {
        const Found one = search(*index, q.get().slice(i, i + 1), k);
        for (idx_t j = 0; j < k; j++) {
            EXPECT_EQ(one.values[j], all.values[i * k + j]);
            EXPECT_EQ(one.labels[j], all.labels[i * k + j]);
        }
    }
    EXPECT_EQ(
            search(*make(Rows{x.d, {0}, {}, {}}), q.get(), 1).labels,
            std::vector<idx_t>(q.n(), -1));
    index->add(q.get()); // are not in the lists yet
    EXPECT_EQ(search(*index, q.get(), k), compare_all(*index, q, k));
    const faiss::IDSelectorRange most(0, 1500);
    index->remove_ids(most); // drops the lists
    EXPECT_EQ(search(*index, q.get(), k), compare_all(*index, q, k));
}

/// Only one vector shares a column with the query, and it is as far away as a
/// float can tell.
TEST_P(SparseKernels, FindSmallValues) {
    const idx_t n = 1100, near = 7;
    Rows q{2, {0}, {}, {}};
    q.add({{0, 1.0f}});
    for (double v = 1; v < 1e6; v *= 1.3) {
        Rows x{2, {0}, {}, {}};
        for (idx_t i = 0; i < n; i++) {
            x.add(i == near ? std::map<int32_t, float>{{0, float(v)}, {1, 1}}
                            : std::map<int32_t, float>());
        }
        const auto index = make(x);
        for (const idx_t k : {1, 10}) {
            EXPECT_EQ(search(*index, q.get(), k), compare_all(*index, q, k))
                    << v;
        }
    }
}

void expect_exact(const IndexSparseKernel& index, const Rows& q) {
    const idx_t most = 200;
    const Found all = compare_all(index, q, most);
    for (const idx_t k : {idx_t(1), idx_t(10), most}) {
        const Found found = search(index, q.get(), k);
        for (idx_t i = 0; i < q.n() * k; i++) {
            const idx_t at = i / k * most + i % k;
            EXPECT_EQ(found.labels[i], all.labels[at]);
            EXPECT_EQ(found.values[i], all.values[at]);
        }
    }
}

TEST_P(SparseKernels, ListsLoseNothing) {
    for (const bool are_counts : {false, true}) {
        const Rows x = draw(5000, 500, 6, are_counts, 3);
        expect_exact(*make(x), draw(5, 500, 6, are_counts, 4));
    }
}

TEST_P(SparseKernels, ListsOfFewLongRowsLoseNothing) {
    for (const bool are_counts : {false, true}) {
        const Rows x = draw(400, 5000, 300, are_counts, 3);
        EXPECT_GT(x.get().indptr[x.n()], 1 << 16);
        expect_exact(*make(x), draw(3, 5000, 300, are_counts, 4));
    }
}

TEST_P(SparseKernels, ListsOfShortAndLongVectorsLoseNothing) {
    for (const int most : {1, 3}) { // powers of ten
        Rows x = draw(3000, 300, 12, false, 3);
        std::mt19937 rng(1);
        std::uniform_real_distribution<float> power(-float(most), float(most));
        for (idx_t i = 0; i < x.n(); i++) {
            const float factor = std::pow(10.0f, power(rng));
            for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; j++) {
                x.values[j] *= factor;
            }
        }
        expect_exact(*make(x), draw(5, 300, 12, true, 4));
    }
}

/// The squared lengths of some vectors are no floats, or have lost digits.
TEST(IndexSparseKernel, CosineOfExtremeLengths) {
    for (const float factor : {1e-22f, 1e-19f, 1e17f, 1e19f, 1e25f}) {
        Rows x = draw(3000, 300, 12, false, 3);
        for (int64_t j = x.indptr[1000]; j < x.indptr[2000]; j++) {
            x.values[j] *= factor;
        }
        IndexSparseKernel index(int(x.d), *kernel_factory("cosine"), ip);
        index.add(x.get());
        expect_exact(index, draw(5, 300, 12, false, 4));
    }
}

TEST_P(SparseKernels, SignsAreComparedOneByOneIfNeeded) {
    const Rows x = with_signs(draw(1500, 100, 6, false, 5)),
               q = with_signs(draw(5, 100, 6, false, 6));
    const bool is_of_histograms = std::any_of(
            histogram_kernels.begin(),
            histogram_kernels.end(),
            [&](const std::string& name) {
                return c.kernel.find(name) != std::string::npos;
            });
    if (is_of_histograms) {
        EXPECT_THROW(make(x), faiss::FaissException);
        return;
    }
    const auto index = make(x);
    EXPECT_EQ(search(*index, q.get(), 10), compare_all(*index, q, 10));
}

TEST_P(SparseKernels, RangeSearch) {
    const Rows x = draw(1500, 200, 6, false, 7), q = draw(4, 200, 6, false, 8);
    const auto index = make(x);
    const Found nearest = search(*index, q.get(), 20);
    const Found all = compare_all(*index, q, index->ntotal);
    for (const float radius : {nearest.values[3], nearest.values[25]}) {
        faiss::RangeSearchResult result(q.n());
        index->range_search(q.get(), radius, &result);
        for (idx_t i = 0; i < q.n(); i++) {
            std::vector<std::pair<idx_t, float>> found, expected;
            for (size_t j = result.lims[i]; j < result.lims[i + 1]; j++) {
                found.emplace_back(result.labels[j], result.distances[j]);
            }
            for (idx_t j = 0; j < index->ntotal; j++) {
                const float v = all.values[i * index->ntotal + j];
                if (c.metric == l2 ? v < radius : v > radius) {
                    expected.emplace_back(all.labels[i * index->ntotal + j], v);
                }
            }
            std::sort(expected.begin(), expected.end());
            EXPECT_EQ(found, expected);
        }
    }
}

TEST_P(SparseKernels, ThreadsAndBatchesDoNotMatter) {
    const Rows x = draw(1500, 300, 6, false, 9), q = draw(5, 300, 6, false, 10);
    const auto index = make(x);
    const Found found = search(*index, q.get(), 5);
    const Threads threads(3);
    EXPECT_EQ(search(*index, q.get(), 5), found);
    for (idx_t i = 0; i < q.n(); i++) {
        const Found one = search(*index, q.get().slice(i, i + 1), 5);
        for (idx_t j = 0; j < 5; j++) {
            EXPECT_EQ(one.labels[j], found.labels[5 * i + j]);
            EXPECT_EQ(one.values[j], found.values[5 * i + j]);
        }
    }
}

TEST(IndexSparseKernel, ManySegments) {
    // more vectors than one set of lists can hold
    const Rows x = draw(70'000, 5000, 2, true, 11),
               q = draw(6, 5000, 4, true, 12);
    IndexSparseKernel index(5000, *kernel_factory("jaccard"), l2);
    index.add(x.get().slice(0, 60'000));
    index.add(x.get().slice(60'000, 70'000));
    const Found found = search(index, q.get(), 10);
    EXPECT_EQ(found, compare_all(index, q, 10));
    const Threads threads(4);
    EXPECT_EQ(search(index, q.get(), 10), found);
}

TEST(IndexSparseKernel, Changes) {
    const Rows x = draw(5000, 300, 5, true, 13), q = draw(5, 300, 5, true, 14);
    IndexSparseKernel index(300, *kernel_factory("chi2"), ip);
    std::vector<idx_t> vectors; // by place
    const auto add = [&](idx_t begin, idx_t end) {
        index.add(x.get().slice(begin, end));
        for (idx_t i = begin; i < end; i++) {
            vectors.push_back(i);
        }
    };
    const auto check = [&] {
        ASSERT_EQ(index.ntotal, idx_t(vectors.size()));
        IndexSparseKernel fresh(300, *index.kernel, ip);
        for (const idx_t i : vectors) {
            fresh.add(x.get().slice(i, i + 1));
        }
        EXPECT_EQ(search(index, q.get(), 7), search(fresh, q.get(), 7));
        for (const idx_t place : {idx_t(0), index.ntotal - 1}) {
            Floats found(300);
            index.IndexFlatKernel::reconstruct(place, found.data());
            const Floats all = x.dense();
            const auto begin = all.begin() + vectors[place] * 300;
            EXPECT_EQ(found, Floats(begin, begin + 300));
        }
    };
    add(0, 3000);
    check();
    add(3000, 3100); // few: beside the lists
    check();
    std::vector<idx_t> holes;
    for (idx_t i = 0; i < 3000; i += 3) {
        holes.push_back(i);
    }
    const PlaceMoves moves(index.ntotal, holes);
    index.move(moves);
    moves.for_removed([&](idx_t place) { vectors[place] = -1; });
    for (const auto [from, to] : moves.moves) {
        vectors[to] = vectors[from];
    }
    vectors.resize(moves.after);
    check();
    add(3100, 5000); // many: new lists
    check();
    const faiss::IDSelectorRange most(100, 3500);
    EXPECT_EQ(index.remove_ids(most), 3400); // later vectors move up
    vectors.erase(vectors.begin() + 100, vectors.begin() + 3500);
    check();
    index.reset();
    vectors.clear();
    EXPECT_EQ(search(index, q.get(), 2).labels[0], -1);
    add(0, 50);
    check();
}

TEST(IndexSparseKernel, Selectors) {
    const Rows x = draw(6000, 300, 5, true, 15), q = draw(6, 300, 5, true, 16);
    IndexSparseKernel index(300, *kernel_factory("jaccard"), l2);
    index.add(x.get());
    for (const idx_t last : {3, 200, 4000}) {
        const faiss::IDSelectorRange sel(1, last);
        faiss::SearchParameters params;
        params.sel = const_cast<faiss::IDSelectorRange*>(&sel);
        EXPECT_EQ(
                search(index, q.get(), 10, &params),
                compare_all(index, q, 10, &sel));
    }
}

TEST(IndexSparseKernel, Merge) {
    const Rows x = draw(3000, 300, 5, true, 17), q = draw(6, 300, 5, true, 18);
    IndexSparseKernel all(300, *kernel_factory("js"), l2),
            first(all.d, *all.kernel), second(all.d, *all.kernel),
            other(all.d, *kernel_factory("chi2"));
    all.add(x.get());
    first.add(x.get().slice(0, 1000));
    second.add(x.get().slice(1000, 3000));
    EXPECT_THROW(first.merge_from(other), faiss::FaissException);
    EXPECT_THROW(first.merge_from(first), faiss::FaissException);
    first.merge_from(second);
    EXPECT_EQ(second.ntotal, 0);
    EXPECT_EQ(search(first, q.get(), 10), search(all, q.get(), 10));
}

TEST(IndexSparseKernel, IdsAndRefine) {
    const Rows x = draw(2000, 60, 5, true, 21), q = draw(4, 60, 5, true, 22);
    const Floats dense = x.dense(), queries = q.dense();
    IndexSparseKernel index(60, *kernel_factory("jaccard"), l2);
    IndexIDTable table(&index);
    table.add(x.n(), dense.data());
    const Found before = search(index, q.get(), 5);
    const std::vector<idx_t> gone = {before.labels[0], before.labels[5]};
    table.remove_ids(faiss::IDSelectorArray(2, gone.data()));
    Floats values(20);
    std::vector<idx_t> labels(20);
    table.search(4, queries.data(), 5, values.data(), labels.data());
    for (const idx_t id : gone) {
        EXPECT_EQ(std::count(labels.begin(), labels.end(), id), 0);
    }
    EXPECT_EQ(labels[0], before.labels[1]);

    IndexSparseKernel exact(60, *kernel_factory("jaccard"), l2);
    IndexFlatKernel first(60, *kernel_factory("jaccard"), l2);
    IndexRefineKernel refined(&first, &exact);
    refined.add(x.n(), dense.data());
    refined.search(4, queries.data(), 5, values.data(), labels.data());
    EXPECT_EQ(labels, before.labels);
    EXPECT_EQ(values, before.values);
}

TEST(IndexSparseKernel, OtherFunctions) {
    IndexSparseKernel index(60, Chi2Kernel(), l2);
    EXPECT_EQ(
            index_text(index),
            "IndexSparseKernel(chi2, store=sparse, d=60, ntotal=0)");
    const auto refuses = [](auto&& f) {
        EXPECT_THROW(f(), faiss::FaissException);
    };
    EXPECT_EQ(index_string(index), "KFlat(chi2,store=sparse)");
    refuses([&] { index.sa_code_size(); });
    refuses([&] { index.get_distance_computer(); });
    refuses([&] { index.rows("test"); });
}

TEST(IndexSparseKernel, HugeDimension) {
    const idx_t d = std::numeric_limits<int32_t>::max();
    Rows x{d, {0}, {}, {}};
    x.add({{0, 1}, {5, 1}, {int32_t(d - 1), 2}});
    x.add({{5, 1}, {1'000'000'000, 3}});
    x.add({});
    IndexSparseKernel index(int(d), *kernel_factory("jaccard"), ip);
    for (int i = 0; i < 1000; i++) { // enough for lists
        index.add(x.get());
    }
    const Found found = search(index, x.get(), 1);
    EXPECT_EQ(found.values, (Floats{1, 1, 1})); // two empty vectors are equal
    EXPECT_EQ(found.labels, (std::vector<idx_t>{0, 1, 2}));
}

// More components than the sums of a scan have room for.
TEST(IndexSparseKernel, LongQueries) {
    const idx_t d = 20000, long_size = 9000;
    Rows x = draw(1500, d, 20, true, 30), q{d, {0}, {}, {}};
    for (idx_t begin : {idx_t(0), d - long_size}) {
        std::map<int32_t, float> row;
        for (idx_t c = begin; c < begin + long_size; c++) {
            row[int32_t(c)] = float(1 + c % 3);
        }
        x.add(row);
        q.add(row);
    }
    IndexSparseKernel index(int(d), *kernel_factory("jaccard"), ip);
    index.add(x.get());
    const Found found = search(index, q.get(), 5);
    const Found all = compare_all(index, q, 5);
    EXPECT_EQ(found.labels, all.labels);
    EXPECT_EQ(found.values, all.values);
    EXPECT_EQ(found.labels[0], 1500);
}

TEST(IndexSparseKernel, ErrorsChangeNothing) {
    const Rows good = draw(2000, 50, 5, true, 19);
    IndexSparseKernel index(50, Chi2Kernel(), l2);
    index.add(good.get());
    const Found before = search(index, good.get().slice(0, 5), 3);
    const auto refuses = [&](const Rows& x, const std::string& text) {
        for (const bool adds : {true, false}) {
            try {
                if (adds) {
                    index.add(x.get());
                } else {
                    search(index, x.get(), 1);
                }
                ADD_FAILURE() << "no error about " << text;
            } catch (const faiss::FaissException& e) {
                EXPECT_NE(std::string(e.what()).find(text), std::string::npos)
                        << e.what();
            }
        }
    };
    const auto rows = [](std::vector<std::map<int32_t, float>> all) {
        Rows x{50, {0}, {}, {}};
        for (const auto& row : all) {
            x.add(row);
        }
        return x;
    };
    refuses(rows({{{1, 1}}, {{3, 1}, {7, -1}}}),
            "component 7 of vector 1 is -1, expected a finite number >= 0");
    refuses(rows({{{4, NAN}}}), "component 4 of vector 0 is nan");
    refuses(rows({{}, {{4, INFINITY}}}), "component 4 of vector 1 is inf");
    refuses(rows({{{50, 1}}}),
            "vector 0 has a component in column 50, expected columns from 0 to 49");
    refuses(rows({{{-1, 1}}}), "vector 0 has a component in column -1");
    Rows falling = rows({{{1, 1}}, {{2, 1}}});
    falling.indptr[1] = 3;
    refuses(falling, "indptr of vector 1 begins at 3 and ends at 2");
    Rows other = rows({{{1, 1}}});
    other.d = 60;
    refuses(other, "60 dimensions, expected 50");
    Rows none = rows({{{1, 1}}});
    none.d = 0;
    refuses(none, "the dimension of the sparse vectors is 0");
    EXPECT_EQ(index.ntotal, 2000);
    EXPECT_EQ(search(index, good.get().slice(0, 5), 3), before);
    EXPECT_THROW(search(index, good.get(), 0), faiss::FaissException);
    EXPECT_THROW(
            index.IndexFlatKernel::reconstruct(2000, nullptr),
            faiss::FaissException);
}

TEST(IndexSparseKernel, RefusesKernelsThatZerosMayMatterTo) {
    const CallbackKernel kernel(
            [](size_t, const float*, size_t, const float*, size_t, float*) {});
    EXPECT_THROW(IndexSparseKernel(5, kernel, l2), faiss::FaissException);
}

TEST(CanonicalVectors, AddUpAndSort) {
    const Rows x{
            10,
            {0, 4, 4, 7, 9},
            {7, 2, 7, 3, 5, 5, 1, 4, 6},
            {1, 2, 3, 0, 4, -4, 5, 1, 2}};
    const CanonicalVectors found(x.get(), "test");
    const SparseVectors& v = found.get();
    EXPECT_EQ(
            std::vector<int64_t>(v.indptr, v.indptr + 5),
            (std::vector<int64_t>{0, 2, 2, 3, 5}));
    EXPECT_EQ(
            std::vector<int32_t>(v.indices, v.indices + 5),
            (std::vector<int32_t>{2, 7, 1, 4, 6}));
    EXPECT_EQ(Floats(v.values, v.values + 5), (Floats{2, 4, 5, 1, 2}));
}

TEST(CanonicalVectors, AreNotCopiedIfCanonical) {
    const Rows x = draw(100, 20, 5, false, 20);
    const SparseVectors part = x.get().slice(10, 90);
    const CanonicalVectors same(part, "test");
    EXPECT_EQ(same->values, x.values.data());
    EXPECT_EQ(same->n, 80);
    EXPECT_EQ(same->indptr, x.indptr.data() + 10);
}

TEST(CanonicalVectors, ASumMayOverflow) {
    const float most = std::numeric_limits<float>::max();
    const Rows x{10, {0, 2}, {3, 3}, {most, most}};
    EXPECT_THROW(CanonicalVectors(x.get(), "test"), faiss::FaissException);
}

} // namespace
