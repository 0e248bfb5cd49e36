// SPDX-License-Identifier: MIT
// Inverted lists of codes with 4 bits per part.

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr auto l2 = faiss::METRIC_L2, ip = faiss::METRIC_INNER_PRODUCT;
constexpr float max_float = std::numeric_limits<float>::max();
constexpr int d = 12;
constexpr idx_t n = 1000, nq = 20;

std::unique_ptr<IndexIVFPQ4> make_index(
        const std::string& text,
        faiss::MetricType metric = l2) {
    auto made = index_factory(d, text, metric);
    auto* index = dynamic_cast<IndexIVFPQ4*>(made.release());
    return std::unique_ptr<IndexIVFPQ4>(index);
}

std::vector<float> vectors(idx_t count, int seed) {
    auto x = normal_vectors(count, d, seed);
    for (size_t i = 0; i < x.size(); i++) { // in clusters
        x[i] += 3 * std::sin(float(i / d % 7) * float(i % d + 1));
    }
    return x;
}

std::unique_ptr<IndexIVFPQ4> filled(
        const std::string& text,
        faiss::MetricType metric = l2) {
    auto index = make_index(text, metric);
    const auto x = vectors(n, 1);
    index->train(n, x.data());
    index->add(n, x.data());
    return index;
}

/// An index like one of a string, without a table of ids.
std::unique_ptr<IndexIVFPQ4> filled_without_table(const std::string& text) {
    return std::make_unique<IndexIVFPQ4>(*filled(text));
}

/// Returns the quantised vectors.
std::vector<float> quantized(const IndexIVFPQ4& index) {
    std::vector<float> x(index.ntotal * index.d);
    for (idx_t i = 0; i < index.ntotal; i++) {
        index.reconstruct(i, &x[i * index.d]);
    }
    return x;
}

double value(faiss::MetricType metric, const float* a, const float* b) {
    double sum = 0;
    for (int j = 0; j < d; j++) {
        sum += metric == ip ? double(a[j]) * b[j]
                            : (double(a[j]) - b[j]) * (double(a[j]) - b[j]);
    }
    return sum;
}

double value_of_all(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i += d) {
        sum += value(l2, &a[i], &b[i]);
    }
    return sum;
}

/// Bounds the error of a sum from rounded tables of factor * <q, r>, possibly
/// with |r|^2 added: half a step for each part. The four parts of rows r and r
/// + 2 of four have at most 253 steps together.
double rounding_of_tables(
        const IndexIVFPQ4& index,
        const std::vector<double>& q,
        double factor,
        bool with_squares) {
    const int size = d / index.M;
    std::map<int, double> widths;
    for (int m = 0; m < index.M; m++) {
        const int row = m / 2;
        double low = INFINITY, high = -INFINITY;
        for (int k = 0; k < 16; k++) {
            double sum = 0;
            for (int j = m * size; j < (m + 1) * size; j++) {
                const double r = index.codebook[j * 16 + k];
                sum += factor * q[j] * r + (with_squares ? r * r : 0);
            }
            low = std::min(low, sum);
            high = std::max(high, sum);
        }
        widths[row % 4 < 2 ? row : row - 2] += high - low;
    }
    double widest = 0;
    for (const auto& [unused, width] : widths) {
        widest = std::max(widest, width);
    }
    return widest / 253 * 0.5 * index.M + 1e-4;
}

/// The same bound for a query whose tables serve all lists.
double rounding(const IndexIVFPQ4& index, const float* q) {
    std::vector<double> centred(d);
    for (int j = 0; j < d; j++) {
        centred[j] = double(q[j]) - index.mean[j];
    }
    const double factor = index.metric_type == l2 ? 2 : 1;
    return rounding_of_tables(index, centred, factor, false);
}

/// Returns the list of each vector.
std::map<idx_t, idx_t> lists_of(const IndexIVFPQ4& index) {
    std::map<idx_t, idx_t> list_of;
    for (idx_t l = 0; l < index.nlist; l++) {
        for (idx_t id : index.lists[l].ids) {
            list_of[id] = l;
        }
    }
    return list_of;
}

/// Returns the squared distance to the nearest centroid.
double nearest_centroid(const IndexIVFPQ4& index, const float* q) {
    double least = INFINITY;
    for (idx_t l = 0; l < index.nlist; l++) {
        double sum = 0;
        for (int j = 0; j < d; j++) {
            const double difference =
                    double(q[j]) - index.mean[j] - index.centroids[l * d + j];
            sum += difference * difference;
        }
        least = std::min(least, sum);
    }
    return least;
}

/// The same bound for a query with tables for each list.
double rounding_in_list(const IndexIVFPQ4& index, const float* q, idx_t list) {
    std::vector<double> difference(d);
    for (int j = 0; j < d; j++) {
        difference[j] =
                double(q[j]) - index.mean[j] - index.centroids[list * d + j];
    }
    return rounding_of_tables(index, difference, -2, true);
}

TEST(IndexIVFPQ4, AllListsEqualAnExhaustiveSearchButForTheTables) {
    const auto x = vectors(n, 1), q = vectors(nq, 2);
    for (auto metric : {l2, ip}) {
        for (const char* text :
             {"KIVF16(M=6,nprobe=16)",
              "KIVF16(M=12,nprobe=16)",
              "KIVF16(M=3,nprobe=16,residual=0)",
              "KIVF1(M=4)"}) {
            SCOPED_TRACE(text);
            const auto index = filled(text, metric);
            const auto y = quantized(*index);
            const double sign = metric == l2 ? 1 : -1;
            const auto list_of = lists_of(*index);
            for (idx_t k : {idx_t(1), idx_t(30), n + 5}) {
                const auto [D, I] = search(*index, q, k);
                for (idx_t i = 0; i < nq; i++) {
                    const double for_all = rounding(*index, &q[i * d]);
                    const auto error = [&](idx_t id) {
                        return metric == ip || !index->residual
                                ? for_all
                                : std::max(
                                          for_all,
                                          rounding_in_list(
                                                  *index,
                                                  &q[i * d],
                                                  list_of.at(id)));
                    };
                    std::map<idx_t, double> found;
                    for (idx_t j = i * k; j < (i + 1) * k; j++) {
                        if (I[j] < 0) {
                            EXPECT_GE(j - i * k, n);
                            EXPECT_EQ(D[j], sign * max_float);
                            continue;
                        }
                        found[I[j]] = D[j];
                        ASSERT_NEAR(
                                D[j],
                                value(metric, &q[i * d], &y[I[j] * d]),
                                error(I[j]));
                    }
                    ASSERT_EQ(found.size(), std::min(k, n));
                    const idx_t last = std::min(k, n) - 1;
                    for (idx_t j = 0; j < n; j++) { // the others are farther
                        if (!found.count(j)) {
                            ASSERT_GE(
                                    sign * value(metric, &q[i * d], &y[j * d]),
                                    sign * D[i * k + last] - error(j));
                        }
                    }
                }
            }
        }
    }
}

/// Returns clusters of width 1 around centres whose distances are multiplied by
/// `apart`.
std::vector<float> clusters(idx_t count, float apart, int seed) {
    const auto centres = normal_vectors(8, d, 77);
    auto x = normal_vectors(count, d, seed);
    for (size_t i = 0; i < x.size(); i++) {
        x[i] += apart * centres[i / d % 8 * d + i % d];
    }
    return x;
}

TEST(IndexIVFPQ4, TablesAreAsFineAsClustersAreNarrow) {
    for (float apart : {1, 30, 1000}) {
        SCOPED_TRACE(apart);
        const auto x = clusters(n, apart, 1), q = clusters(nq, apart, 2);
        const auto index = make_index("KIVF64(M=12,nprobe=64)");
        index->train(n, x.data());
        index->add(n, x.data());
        const auto y = quantized(*index);
        const auto list_of = lists_of(*index);
        constexpr idx_t k = 20;
        const auto [D, I] = search(*index, q, k);
        double all_lists = 0, each_list = 0; // bounds of rounding
        for (idx_t i = 0; i < nq; i++) {
            for (idx_t j = i * k; j < (i + 1) * k; j++) {
                const double coarse = rounding(*index, &q[i * d]),
                             fine = rounding_in_list(
                                     *index, &q[i * d], list_of.at(I[j])),
                             exact = value(l2, &q[i * d], &y[I[j] * d]);
                all_lists += coarse;
                each_list += fine;
                // and the rounding of floats of this size
                ASSERT_NEAR(
                        D[j],
                        exact,
                        apart == 1 ? std::max(coarse, fine)
                                   : fine + 1e-5 * (exact + apart));
            }
        }
        if (apart > 1) { // otherwise one set of tables would suffice
            EXPECT_GT(all_lists, 3 * each_list);
        }
        // the same by range search, and one by one
        const auto ranges = range_search(*index, q, D[k - 1]);
        EXPECT_GE(ranges[0].size(), size_t(k - 1));
        for (idx_t i = 0; i < nq; i++) {
            EXPECT_EQ(
                    search(*index, rows(q, d, i, i + 1), k).distances,
                    rows(D, k, i, i + 1));
        }
    }
}

// A few vectors far from all others give long codebook entries, and hence
// coarse tables in every list; so do residuals that are whole vectors.
TEST(IndexIVFPQ4, FarVectorsDoNotMakeDistancesCoarse) {
    auto x = clusters(n, 30, 1);
    const auto far = normal_vectors(4, d, 3), q = clusters(nq, 30, 2);
    std::transform(far.begin(), far.end(), x.begin(), [](float v) {
        return 3000 * v;
    });
    for (const char* text :
         {"KIVF64(M=12,nprobe=64)", "KIVF64(M=12,nprobe=64,residual=0)"}) {
        SCOPED_TRACE(text);
        const auto index = make_index(text);
        index->train(n, x.data());
        index->add(n, x.data());
        const auto y = quantized(*index);
        constexpr idx_t k = 20;
        const auto [D, I] = search(*index, q, k);
        for (idx_t i = 0; i < nq; i++) {
            // rounding with a standard deviation, scale * sqrt(M / 12), of 30 %
            // of the distance to the nearest centroid adds up to at most sqrt(3
            // M) times as much; the rounding of floats depends on the size of
            // squares
            const double square = value(ip, &q[i * d], &q[i * d]);
            const double rounded = 0.3 * std::sqrt(3 * 12.0) *
                    nearest_centroid(*index, &q[i * d]);
            for (idx_t j = i * k; j < (i + 1) * k; j++) {
                const double exact = value(l2, &q[i * d], &y[I[j] * d]);
                ASSERT_NEAR(D[j], exact, rounded + 1e-5 * (exact + 4 * square));
            }
        }
        const auto ranges = range_search(*index, q, D[k - 1]);
        EXPECT_GE(ranges[0].size(), size_t(k - 1));
    }
}

// Quantised vectors are nearer than the centroids of their lists, and more
// parts are nearer than fewer.
TEST(IndexIVFPQ4, CodesDescribeVectors) {
    const auto x = vectors(n, 1);
    double before = INFINITY;
    for (const char* text : {"KIVF8(M=2)", "KIVF8(M=4)", "KIVF8(M=12)"}) {
        const auto index = filled(text);
        const auto y = quantized(*index);
        const double error = value_of_all(x, y);
        EXPECT_LT(error, before);
        before = error;
    }
    const auto whole = quantized(*filled("KIVF8(M=12)")),
               plain = quantized(*filled("KIVF8(M=12,residual=0)"));
    EXPECT_LT(value_of_all(x, whole), value_of_all(x, plain));
}

TEST(IndexIVFPQ4, MoreProbesFindMore) {
    const auto q = vectors(nq, 2);
    const auto index = filled("KIVF32(M=12)");
    index->nprobe = 32;
    const auto all = search(*index, q, 10);
    size_t before = 0;
    for (int nprobe : {1, 4, 32, 1000}) {
        index->nprobe = nprobe;
        const auto found = search(*index, q, 10);
        size_t common = 0;
        for (size_t i = 0; i < found.labels.size(); i++) {
            common += found.labels[i] == all.labels[i];
        }
        EXPECT_GE(common, before);
        before = common;
        faiss::SearchParametersIVF params;
        params.nprobe = nprobe;
        index->nprobe = 1;
        expect_same(search(*index, q, 10, &params), found);
    }
    EXPECT_EQ(before, all.labels.size());
}

TEST(IndexIVFPQ4, RangesAndSelectors) {
    const auto q = vectors(nq, 2);
    for (auto metric : {l2, ip}) {
        const auto index = filled("KIVF16(M=6,nprobe=5)", metric);
        const auto all = search(*index, q, n);
        faiss::SearchParameters even;
        std::vector<idx_t> ids;
        for (idx_t i = 0; i < n; i += 2) {
            ids.push_back(i);
        }
        faiss::IDSelectorBatch selector(ids.size(), ids.data());
        even.sel = &selector;
        const float radius = all.distances[40];
        const auto ranges = range_search(*index, q, radius),
                   some = range_search(*index, q, radius, &even);
        const auto selected = search(*index, q, 9, &even);
        for (idx_t i = 0; i < nq; i++) {
            std::vector<std::pair<idx_t, float>> within, within_even;
            for (idx_t j = i * n; j < (i + 1) * n; j++) {
                const float v = all.distances[j];
                const idx_t id = all.labels[j];
                if (id >= 0 && (metric == l2 ? v < radius : v > radius)) {
                    within.emplace_back(id, v);
                    if (id % 2 == 0) {
                        within_even.emplace_back(id, v);
                    }
                }
            }
            EXPECT_EQ(ranges[i], within);
            EXPECT_EQ(some[i], within_even);
            idx_t at = i * 9;
            for (idx_t j = i * n; j < (i + 1) * n && at < (i + 1) * 9; j++) {
                if (all.labels[j] >= 0 && all.labels[j] % 2 == 0) {
                    EXPECT_EQ(selected.labels[at], all.labels[j]);
                    EXPECT_EQ(selected.distances[at++], all.distances[j]);
                }
            }
        }
    }
}

TEST(IndexIVFPQ4, IdsOfTheCallers) {
    const auto x = vectors(n, 1), q = vectors(nq, 2);
    const auto index = filled("KIVF16(M=6,nprobe=16)");
    const auto found = search(*index, q, 5);
    std::vector<idx_t> ids(n);
    for (idx_t i = 0; i < n; i++) {
        ids[i] = 7 * i - 100;
    }
    index->reset();
    EXPECT_EQ(search(*index, q, 1).labels, std::vector<idx_t>(nq, -1));
    index->add_with_ids(n, x.data(), ids.data());
    const auto named = search(*index, q, 5);
    EXPECT_EQ(named.distances, found.distances);
    for (size_t i = 0; i < found.labels.size(); i++) {
        EXPECT_EQ(named.labels[i], ids[found.labels[i]]);
    }
    std::vector<float> one(d), other(d);
    index->reconstruct(ids[33], one.data());
    filled("KIVF16(M=6)")->reconstruct(33, other.data());
    EXPECT_EQ(one, other);
    EXPECT_TRUE(throws([&] { index->reconstruct(6, one.data()); }, "id 6"));
    const idx_t bad[] = {5, -1};
    EXPECT_TRUE(throws([&] { index->add_with_ids(2, x.data(), bad); }, "-1"));
    EXPECT_EQ(index->ntotal, n);
}

TEST(IndexIVFPQ4, IdsAreNeverGivenTwice) {
    const Floats x = vectors(n, 1);
    const auto index = filled_without_table("KIVF4");
    const auto add_one = [&](IndexIVFPQ4& to) {
        const idx_t before = to.next_id;
        to.add(1, x.data());
        EXPECT_EQ(to.next_id, before + 1);
        Floats found(d);
        EXPECT_NO_THROW(to.reconstruct(before, found.data()));
        return before;
    };
    EXPECT_EQ(add_one(*index), n);
    EXPECT_EQ(index->remove_ids(faiss::IDSelectorRange(n - 5, n + 1)), 6u);
    const auto copy = clone_index(index.get());
    EXPECT_EQ(add_one(*index), n + 1);
    EXPECT_EQ(add_one(dynamic_cast<IndexIVFPQ4&>(*copy)), n + 1);

    const idx_t far = 5000000, negative = -7;
    index->add_with_ids(1, x.data(), &far);
    index->add_with_ids(1, x.data(), &negative);
    EXPECT_EQ(add_one(*index), far + 1);

    const auto other = filled_without_table("KIVF4");
    other->merge_from(*index, 10);
    EXPECT_EQ(index->next_id, 0);
    EXPECT_EQ(add_one(*other), far + 12);

    const idx_t last = std::numeric_limits<idx_t>::max();
    other->add_with_ids(1, x.data(), &last);
    EXPECT_TRUE(throws([&] { other->add(1, x.data()); }, "add_with_ids"));
    EXPECT_EQ(clone_index(other.get())->ntotal, other->ntotal);
    other->reset();
    EXPECT_EQ(add_one(*other), 0);
}

// FAISS's maps expect removals to renumber the vectors.
TEST(IndexIVFPQ4, AMapInFrontOfListsRemovesNothing) {
    const Floats x = vectors(n, 1);
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), 5000);
    for (const char* text :
         {"KIVF4",
          "PCA4,KIVF4",
          "RFF12(gaussian),IVF4,Flat",
          "SIK64(gaussian),BIVF4"}) {
        const auto inside = index_factory(d, text);
        inside->train(n, x.data());
        faiss::IndexIDMap2 map(inside.get());
        map.add_with_ids(n, x.data(), ids.data());
        const auto before = search(map, x, 3);
        const faiss::IDSelectorRange outer(5010, 5020);
        EXPECT_TRUE(throws([&] { map.remove_ids(outer); }, "IndexIDMap"));
        EXPECT_EQ(map.ntotal, n) << text;
        expect_same(search(map, x, 3), before);
        const faiss::IDSelectorRange inner(10, 20);
        EXPECT_EQ(inside->remove_ids(inner), 10u) << text;
    }
}

/// Rounding could make distances to copies of the query negative.
TEST(IndexIVFPQ4, DistancesAreNotNegative) {
    const auto few = vectors(3, 1);
    std::vector<float> x;
    for (int i = 0; i < 300; i++) {
        x.insert(x.end(), few.begin(), few.end());
    }
    const auto index = index_factory(d, "KIVF16(nprobe=16)");
    index->train(900, x.data());
    index->add(900, x.data());
    for (float distance : search(*index, few, 300).distances) {
        EXPECT_GE(distance, 0);
        EXPECT_LT(distance, 1e-3);
    }
    EXPECT_EQ(total_size(range_search(*index, few, 1e-3f)), 900u);
    EXPECT_EQ(total_size(range_search(*index, few, 0)), 0u);
}

// Adding in small batches, removing and merging gives the same as one add.
TEST(IndexIVFPQ4, ChangesLeaveTheSameVectors) {
    const auto x = vectors(n, 1), q = vectors(nq, 2);
    const auto whole = filled_without_table("KIVF16(M=6,nprobe=3)");
    const auto pieces = filled_without_table("KIVF16(M=6,nprobe=3)");
    pieces->reset();
    for (idx_t i = 0; i < n; i += 37) {
        pieces->add(std::min<idx_t>(37, n - i), &x[i * d]);
    }
    expect_same(search(*pieces, q, 40), search(*whole, q, 40));

    faiss::IDSelectorRange middle(300, 700);
    EXPECT_EQ(pieces->remove_ids(middle), 400u);
    EXPECT_EQ(pieces->ntotal, 600);
    std::vector<idx_t> outside;
    for (idx_t i = 0; i < n; i++) {
        if (i < 300 || i >= 700) {
            outside.push_back(i);
        }
    }
    faiss::IDSelectorBatch selector(outside.size(), outside.data());
    faiss::SearchParametersIVF params; // visits as many lists as without sel
    params.nprobe = 3;
    params.sel = &selector;
    expect_same(search(*pieces, q, 40), search(*whole, q, 40, &params));

    const auto rest = filled_without_table("KIVF16(M=6,nprobe=3)");
    rest->reset();
    rest->add(400, &x[300 * d]);
    pieces->merge_from(*rest, 300);
    EXPECT_EQ(rest->ntotal, 0);
    EXPECT_EQ(pieces->ntotal, n);
    expect_same(search(*pieces, q, 40), search(*whole, q, 40));
    const auto other = make_index("KIVF16(M=6,seed=2)");
    other->train(n, x.data());
    expect_throws(
            {{[&] { pieces->merge_from(*other); }, "differ in parameters"},
             {[&] { pieces->merge_from(*pieces); }, "itself"},
             {[&] { pieces->merge_from(*whole, -300); }, "id 299 + -300"},
             {[&] { pieces->merge_from(*whole, INT64_MAX); }, "out of range"}});
    EXPECT_EQ(whole->ntotal, n);
}

// Plain parameters widen a search; those of lists say how wide it is.
TEST(IndexIVFPQ4, SearchesWidenUntilAllSelectedAreFound) {
    const auto q = vectors(nq, 2);
    const auto index = filled("KIVF16(M=6,nprobe=1)");
    // the vectors of the list that most queries do not visit
    const auto& far = *std::min_element(
            index->lists.begin(),
            index->lists.end(),
            [](const auto& a, const auto& b) {
                return a.ids.size() < b.ids.size();
            });
    const std::vector<idx_t> ids(far.ids.begin(), far.ids.end());
    ASSERT_GE(ids.size(), 5u);
    faiss::IDSelectorBatch selector(ids.size(), ids.data());
    faiss::SearchParameters plain;
    faiss::SearchParametersIVF one;
    plain.sel = one.sel = &selector;
    const idx_t k = 5;
    for (const idx_t id : search(*index, q, k, &plain).labels) {
        EXPECT_TRUE(selector.is_member(id));
    }
    const auto few = search(*index, q, k, &one);
    EXPECT_GT(std::count(few.labels.begin(), few.labels.end(), -1), 0);
    const idx_t more = idx_t(ids.size()) + 3;
    const auto all = search(*index, q, more, &plain);
    EXPECT_EQ(std::count(all.labels.begin(), all.labels.end(), -1), 3 * nq);
}

// With and without a direct map, after all operations.
TEST(IndexIVFPQ4, DirectMap) {
    const auto x = vectors(n, 1);
    const auto plain = filled_without_table("KIVF16(M=6)"),
               mapped = filled_without_table("KIVF16(M=6)");
    mapped->make_direct_map();
    const auto expect_equal = [&] {
        std::vector<float> one(d), other(d);
        idx_t found = 0;
        for (idx_t id = -5; id < 2 * n + 5; id++) {
            const auto error =
                    error_of([&] { plain->reconstruct(id, &one[0]); });
            EXPECT_EQ(
                    error_of([&] { mapped->reconstruct(id, &other[0]); }),
                    error);
            if (error.empty()) {
                EXPECT_EQ(one, other);
                found++;
            }
        }
        EXPECT_EQ(found, plain->ntotal);
    };
    const auto both = [&](auto&& change) {
        change(*plain);
        change(*mapped);
        EXPECT_TRUE(mapped->direct_map);
        EXPECT_FALSE(plain->direct_map);
        expect_equal();
    };
    faiss::IDSelectorRange some(100, 350);
    both([&](IndexIVFPQ4& index) { index.remove_ids(some); });
    const auto ids = std::vector<idx_t>{1500, -3, 200};
    both([&](IndexIVFPQ4& index) { index.add_with_ids(3, &x[0], &ids[0]); });
    both([&](IndexIVFPQ4& index) {
        const auto other = filled_without_table("KIVF16(M=6)");
        other->remove_ids(faiss::IDSelectorRange(0, 900));
        index.merge_from(*other, 200);
    });
    both([&](IndexIVFPQ4& index) { index.reset(); });
    both([&](IndexIVFPQ4& index) { index.add(n, x.data()); });
    const auto copy = clone_index(mapped.get());
    std::vector<float> one(d), other(d);
    copy->reconstruct(7, one.data());
    mapped->reconstruct(7, other.data());
    EXPECT_EQ(one, other);
    mapped->make_direct_map(false);
    expect_equal();
}

TEST(IndexIVFPQ4, SaysHowFarTrainingIs) {
    const auto x = vectors(n, 1);
    const auto index = make_index("KIVF16(M=6)");
    index->verbose = true;
    testing::internal::CaptureStdout();
    index->train(n, x.data());
    const auto printed = testing::internal::GetCapturedStdout();
    EXPECT_NE(
            printed.find("iteration 1 of 10, 1000 of 1000 vectors"),
            std::string::npos)
            << printed;
    EXPECT_NE(printed.find("iteration 10 of 10"), std::string::npos) << printed;
    EXPECT_NE(printed.find("6 parts"), std::string::npos) << printed;
}

// Tables are made for queries minus the mean, so an offset does not make them
// coarser.
TEST(IndexIVFPQ4, OffsetsDoNotMatter) {
    auto x = vectors(n, 1), q = vectors(nq, 2);
    for (const char* text :
         {"KIVF16(M=12,nprobe=16)", "KIVF16(M=12,nprobe=16,residual=0)"}) {
        for (float offset : {0.0f, 1000.0f}) {
            auto moved = x, queries = q;
            for (float& v : moved) {
                v += offset;
            }
            for (float& v : queries) {
                v += offset;
            }
            const auto index = make_index(text);
            index->train(n, moved.data());
            index->add(n, moved.data());
            const auto y = quantized(*index);
            const auto [D, I] = search(*index, queries, 10);
            for (idx_t i = 0; i < nq; i++) {
                const float* query = &queries[i * d];
                const double error = rounding(*index, query);
                // hundreds, if the mean were not subtracted
                EXPECT_LT(error, 10);
                for (idx_t j = i * 10; j < i * 10 + 10; j++) {
                    // components of 1000 have steps of 6e-5
                    EXPECT_NEAR(
                            D[j],
                            value(l2, query, &y[I[j] * d]),
                            error + 1e-4 * offset);
                }
            }
        }
    }
}

TEST(IndexIVFPQ4, AutomaticParts) {
    const std::pair<int, int> parts[] = {
            {1, 1}, {2, 1}, {13, 13}, {128, 64}, {1030, 206}, {2049, 3}};
    for (auto [dimension, M] : parts) {
        EXPECT_EQ(IndexIVFPQ4(dimension, 4).M, M);
    }
}

TEST(IndexIVFPQ4, BadCalls) {
    const auto x = vectors(n, 1);
    const auto index = make_index("KIVF16(M=6)");
    std::vector<float> out(d), huge(d, 1e30f);
    expect_throws(
            {{[&] { index->add(1, x.data()); }, "call train first"},
             {[&] { search(*index, x, 1); }, "call train first"},
             {[&] { index->train(15, x.data()); }, "at least 16"},
             {[&] { make_index("KIVF16(M=5)"); }, "divides the dimension, 12"},
             {[&] { make_index("KIVF0"); }, "nlist"},
             {[&] { make_index("KIVF16(nprobe=0)"); }, "nprobe"}});
    EXPECT_FALSE(index->is_trained);
    index->train(n, x.data());
    index->add(n, x.data());
    const auto found = search(*index, x, 3);
    index->nprobe = 0;
    expect_throws({{[&] { search(*index, x, 1); }, "nprobe is 0"}});
    index->nprobe = 8;
    faiss::SearchParametersIVF params;
    params.nprobe = 0;
    expect_throws(
            {{[&] { search(*index, x, 1, &params); }, "nprobe is 0"},
             {[&] { range_search(*index, x, NAN); }, "NaN"}});
    faiss::SearchParametersHNSW of_graphs;
    faiss::SearchParametersIVF with_quantizer;
    with_quantizer.quantizer_params = &of_graphs;
    const faiss::IDSelectorRange some(10, 20);
    expect_throws(
            {{[&] { search(*index, huge, 3); }, "vector 0 is too large"},
             {[&] { search(*index, x, 1, &with_quantizer); },
              "quantizer_params have no effect"},
             {[&] { range_search(*index, huge, 3); }, "vector 0 is too large"},
             {[&] { index->add(1, huge.data()); }, "vector 0 is too large"},
             {[&] { search(*index, x, 1, &of_graphs); },
              "expected faiss::SearchParametersIVF"}});
    EXPECT_EQ(index->ntotal, n);
    expect_same(search(*index, x, 3), found);
    // missing ids, one by one and together
    std::vector<float> several(30 * d);
    index->remove_ids(some);
    expect_throws(
            {{[&] { index->reconstruct(12, out.data()); }, "id 12"},
             {[&] { index->reconstruct_n(0, 30, several.data()); }, "id 10"},
             {[&] { index->reconstruct_n(n - 1, 2, several.data()); },
              "id 1000"}});
    index->reconstruct_n(20, 30, several.data());
    index->reconstruct(25, out.data());
    EXPECT_TRUE(std::equal(out.begin(), out.end(), &several[5 * d]));

    auto far = x;
    for (float& v : far) {
        v *= 1e25f;
    }
    const auto overflowing = make_index("KIVF2(M=6)");
    EXPECT_TRUE(throws(
            [&] { overflowing->train(n, far.data()); }, "squared L2 norm"));
    EXPECT_FALSE(overflowing->is_trained);
}

} // namespace
