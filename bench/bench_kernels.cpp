// SPDX-License-Identifier: MIT
// Exact kernels, on one thread: blocks of pairs, and searches beside a loop
// over squared L2 distances, FAISS's own slow metrics and FLANN's chi2. Results
// are compared before they are timed.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include <faiss/IndexFlat.h>
#include <faiss/impl/DistanceComputer.h>

#ifdef FAISS_EXT_HAVE_FLANN
#include <flann/flann.hpp>
#endif

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/AdditiveKernel.h>

#include "bench_common.h"

using namespace faiss_ext;
using namespace faiss_ext::bench;

namespace {

constexpr idx_t num_base = 20000, num_queries = 64, k = 10;

/// A Gram block of 256 x 1024 pairs.
void block(benchmark::State& state, const char* description) {
    const int d = int(state.range(0));
    const idx_t n = 256, m = 1024;
    const auto x = random_histograms(n, d, 1), y = random_histograms(m, d, 2);
    const auto kernel = kernel_factory(description);
    std::vector<float> out(n * m);
    for (auto _ : state) {
        kernel->block(n, x.data(), m, y.data(), d, out.data());
    }
    set_items(state, double(n * m));
    set_flops(state, 2.0 * double(n * m) * d);
}

struct Results {
    std::vector<float> distances = std::vector<float>(num_queries * k);
    std::vector<idx_t> labels = std::vector<idx_t>(num_queries * k);
};

void time_search(benchmark::State& state, const faiss::Index& index) {
    const auto queries = random_histograms(num_queries, index.d, 2);
    Results r;
    for (auto _ : state) {
        index.search(
                num_queries,
                queries.data(),
                k,
                r.distances.data(),
                r.labels.data());
    }
    set_items(state, double(num_queries * num_base));
}

void search(benchmark::State& state, const char* description) {
    const int d = int(state.range(0));
    const auto index = index_factory(d, description);
    index->add(num_base, random_histograms(num_base, d, 1).data());
    // the nearest, by a plain loop in double
    const auto* kernel = dynamic_cast<const Chi2Kernel*>(
            dynamic_cast<const IndexFlatKernel&>(*index).kernel.get());
    if (kernel) {
        const auto base = random_histograms(num_base, d, 1);
        const auto query = random_histograms(1, d, 2);
        float found, best = HUGE_VALF;
        idx_t label;
        index->search(1, query.data(), 1, &found, &label);
        for (idx_t i = 0; i < num_base; i++) {
            double sum = 0;
            for (int j = 0; j < d; j++) {
                const double a = query[j], b = base[i * d + j];
                sum += a + b > 0 ? (a - b) * (a - b) / (a + b) : 0;
            }
            best = std::min(best, float(sum));
        }
        if (std::abs(found - best) > 1e-5f * best) {
            state.SkipWithError("the nearest vector is another one");
            return;
        }
    }
    time_search(state, *index);
}

void faiss_search(benchmark::State& state, faiss::MetricType metric) {
    const int d = int(state.range(0));
    faiss::IndexFlat index(d, metric);
    index.add(num_base, random_histograms(num_base, d, 1).data());
    time_search(state, index);
}

/// Squared L2 distances by vector instructions, one query after the other.
void l2_loop(benchmark::State& state) {
    const int d = int(state.range(0));
    const auto base = random_histograms(num_base, d, 1),
               queries = random_histograms(num_queries, d, 2);
    std::vector<float> distances(num_base);
    for (auto _ : state) {
        for (idx_t i = 0; i < num_queries; i++) {
            simd::pairwise(
                    simd::PairOp::squared_l2,
                    1,
                    &queries[i * d],
                    num_base,
                    base.data(),
                    d,
                    distances.data(),
                    num_base);
        }
    }
    set_items(state, double(num_queries * num_base));
}

/// The same in blocks of 16 queries.
void l2_blocks(benchmark::State& state) {
    const int d = int(state.range(0));
    const auto base = random_histograms(num_base, d, 1),
               queries = random_histograms(num_queries, d, 2);
    std::vector<float> distances(16 * num_base);
    for (auto _ : state) {
        for (idx_t i = 0; i < num_queries; i += 16) {
            simd::pairwise(
                    simd::PairOp::squared_l2,
                    16,
                    &queries[i * d],
                    num_base,
                    base.data(),
                    d,
                    distances.data(),
                    num_base);
        }
    }
    set_items(state, double(num_queries * num_base));
}

/// Candidates in random order of more vectors than the caches hold, as Refine
/// compares them: together, or one at a time by a distance computer, which is
/// what faiss::IndexRefine does. Seconds per item are those per candidate.
void rank_again(
        benchmark::State& state,
        const char* description,
        bool together) {
    const int d = int(state.range(0));
    const idx_t n = 225000, queries = 100, candidates = 100;
    const auto index = index_factory(d, description);
    index->add(n, random_histograms(n, d, 1).data());
    const auto& flat = dynamic_cast<const IndexFlatKernel&>(*index);
    const auto x = random_histograms(queries, d, 2);
    std::mt19937_64 random(3);
    std::vector<idx_t> ids(queries * candidates);
    std::vector<float> distances(queries * candidates);
    for (auto _ : state) {
        state.PauseTiming(); // or else they would be in the cache
        for (idx_t& id : ids) {
            id = idx_t(random() % n);
        }
        state.ResumeTiming();
        if (together) {
            flat.compute_distance_subset(
                    queries,
                    x.data(),
                    candidates,
                    distances.data(),
                    ids.data());
            continue;
        }
        const std::unique_ptr<faiss::DistanceComputer> computer(
                flat.get_distance_computer());
        for (idx_t i = 0; i < queries; i++) {
            computer->set_query(&x[i * d]);
            for (idx_t j = i * candidates; j < (i + 1) * candidates; j++) {
                distances[j] = (*computer)(ids[j]);
            }
        }
    }
    set_items(state, double(queries * candidates));
}

#ifdef FAISS_EXT_HAVE_FLANN
void flann_chi2(benchmark::State& state) {
    const int d = int(state.range(0));
    auto base = random_histograms(num_base, d, 1),
         queries = random_histograms(num_queries, d, 2);
    const flann::Matrix<float> data(base.data(), num_base, d),
            query(queries.data(), num_queries, d);
    flann::Index<flann::ChiSquareDistance<float>> index(
            data, flann::LinearIndexParams());
    index.buildIndex();
    std::vector<int> labels(num_queries * k);
    std::vector<float> distances(num_queries * k);
    flann::Matrix<int> out_labels(labels.data(), num_queries, k);
    flann::Matrix<float> out_distances(distances.data(), num_queries, k);
    flann::SearchParams params;
    params.cores = 1;
    for (auto _ : state) {
        index.knnSearch(query, out_labels, out_distances, k, params);
    }
    set_items(state, double(num_queries * num_base));
}
#endif

void dimensions(benchmark::internal::Benchmark* b) {
    b->ArgName("d")->Arg(128)->Arg(768)->UseRealTime();
}

void dimensions_of_blocks(benchmark::internal::Benchmark* b) {
    b->ArgName("d")->Arg(128)->Arg(768)->Arg(100000)->UseRealTime();
}

#define KERNEL(name, description)                                             \
    BENCHMARK_CAPTURE(block, name, description)->Apply(dimensions_of_blocks); \
    BENCHMARK_CAPTURE(search, name, "KFlat(" description ")")->Apply(dimensions)

KERNEL(chi2, "chi2");
KERNEL(intersection, "intersection");
KERNEL(js, "js");
KERNEL(hellinger, "hellinger");
KERNEL(expchi2, "expchi2(gamma=1)");
KERNEL(gaussian, "gaussian(gamma=100)");
KERNEL(laplacian, "laplacian(gamma=1)");
KERNEL(linear, "linear");

BENCHMARK_CAPTURE(rank_again, chi2, "KFlat(chi2)", true)->Apply(dimensions);
BENCHMARK_CAPTURE(rank_again, chi2_f16, "KFlat(chi2,store=f16)", true)
        ->Apply(dimensions);
BENCHMARK_CAPTURE(rank_again, chi2_u8, "KFlat(chi2,store=u8)", true)
        ->Apply(dimensions);
BENCHMARK_CAPTURE(rank_again, chi2_one_at_a_time, "KFlat(chi2)", false)
        ->Apply(dimensions);
BENCHMARK_CAPTURE(rank_again, gaussian, "KFlat(gaussian(gamma=100))", true)
        ->Apply(dimensions);

BENCHMARK(l2_loop)->Apply(dimensions);
BENCHMARK(l2_blocks)->Apply(dimensions);
BENCHMARK_CAPTURE(faiss_search, canberra, faiss::METRIC_Canberra)
        ->Apply(dimensions);
BENCHMARK_CAPTURE(faiss_search, jensen_shannon, faiss::METRIC_JensenShannon)
        ->Apply(dimensions);
BENCHMARK_CAPTURE(faiss_search, l2, faiss::METRIC_L2)->Apply(dimensions);
#ifdef FAISS_EXT_HAVE_FLANN
BENCHMARK(flann_chi2)->Apply(dimensions);
#endif

} // namespace

int main(int argc, char** argv) {
    return run_benchmarks(argc, argv);
}
