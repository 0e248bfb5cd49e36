// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <faiss/impl/IDSelector.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "indexes/graph_build.h"
#include "indexes/graph_walk.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/range_result.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

IndexFlatKernel* checked(IndexFlatKernel* storage, int M) {
    FAISS_EXT_THROW_IF_NOT_MSG(storage, "IndexHNSWKernel: the storage is null");
    FAISS_EXT_THROW_IF_NOT_FMT(
            M >= 2 && M <= 1024 && storage->ntotal == 0,
            "IndexHNSWKernel: M is %d and the storage has %" PRId64
            " vectors, expected M from 2 to 1024 and an empty storage",
            M,
            int64_t(storage->ntotal));
    return storage;
}

} // namespace

IndexHNSWKernel::IndexHNSWKernel(IndexFlatKernel* storage, int M)
        : IndexHNSW(checked(storage, M), M) {
    is_trained = storage->is_trained;
}

IndexFlatKernel& IndexHNSWKernel::vectors() const {
    auto* flat = dynamic_cast<IndexFlatKernel*>(storage);
    FAISS_EXT_THROW_IF_NOT_MSG(
            flat,
            "IndexHNSWKernel: the storage is of another class, expected an IndexFlatKernel");
    return *flat;
}

void IndexHNSWKernel::check_not_being_built(const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !is_being_built,
            "IndexHNSWKernel::%s: the graph is being built; do not use the index in a progress function",
            where);
}

void IndexHNSWKernel::check_graph(const char* where) const {
    check_not_being_built(where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            graph_is_complete,
            "IndexHNSWKernel::%s: an add that failed or was interrupted has left the graph incomplete; call rebuild(), or reset() and add the vectors again",
            where);
    check_counts_with(*this, storage);
    if (hnsw.offsets.size() != size_t(ntotal) + 1) {
        check_counts(*this);
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            graph_fits(hnsw, ntotal),
            "IndexHNSWKernel::%s: the graph's entry point, levels and links are inconsistent; call rebuild(), or reset() and add the vectors again",
            where);
}

void IndexHNSWKernel::add(idx_t n, const float* x) {
    check_graph("add");
    const size_t levels = hnsw.levels.size();
    FAISS_EXT_THROW_IF_NOT_FMT(
            levels == size_t(ntotal) || levels == size_t(ntotal + n),
            "IndexHNSWKernel::add: the graph has levels for %zu vectors, expected %" PRId64
            ", or %" PRId64 " with the new ones",
            levels,
            int64_t(ntotal),
            int64_t(ntotal + n));
    FAISS_EXT_THROW_IF_NOT_MSG(
            is_trained,
            "IndexHNSWKernel::add: the index is not trained; call train first");
    check_ef(hnsw.efConstruction, "efConstruction", "IndexHNSWKernel::add");
    if (n == 0) {
        return;
    }
    add_or_roll_back(n, x);
}

void IndexHNSWKernel::build(idx_t n0) {
    struct Mark {
        bool& flag;
        explicit Mark(bool& flag) : flag(flag) {
            flag = true;
        }
        ~Mark() {
            flag = false;
        }
    };
    const Mark mark(is_being_built);
    build_graph(hnsw, vectors(), n0);
}

void IndexHNSWKernel::add_or_roll_back(idx_t n, const float* x) {
    const idx_t n0 = ntotal;
    const faiss::RandomGenerator random = hnsw.rng;
    IndexFlatKernel& flat = vectors();
    try {
        flat.add(n, x);
        ntotal = flat.ntotal;
        build(n0);
    } catch (...) {
        if (flat.ntotal > n0) { // otherwise the vectors were refused
            flat.remove_ids(PlaceSelector::from(n0, flat.ntotal));
            ntotal = n0;
            hnsw.rng = random;
            if (n0 == 0) {
                hnsw.reset();
            } else {
                graph_is_complete = false;
            }
        }
        throw;
    }
}

template <class Found>
void IndexHNSWKernel::for_walks(
        const char* where,
        idx_t n,
        const float* x,
        idx_t k,
        const faiss::SearchParameters* params,
        Found&& found) const {
    check_graph(where);
    const IndexFlatKernel& flat = vectors();
    const std::string name = std::string("IndexHNSWKernel::") + where;
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_trained && flat.kernel->is_trained,
            "%s: the index is not trained; call train first",
            name.c_str());
    const RowScores scores(flat, name.c_str());
    FAISS_EXT_THROW_IF_NOT_FMT(
            hnsw.levels.size() == size_t(ntotal),
            "%s: the graph has levels for %zu vectors, expected %" PRId64,
            name.c_str(),
            hnsw.levels.size(),
            int64_t(ntotal));
    flat.kernel->check_input(n, x, d, name.c_str());
    const GraphSearch how = graph_search(hnsw, params, name.c_str());
    check_ef(how.ef, "efSearch", name.c_str());
    const size_t kept = std::max<size_t>(how.ef, std::min(k, ntotal));
    WalkLimits limits = {how.bounded_queue ? size_t(how.ef) : kept};
    if (how.bounded_queue && !how.check_relative_distance) {
        limits = {kept, size_t(how.ef) + 1};
    }
    std::atomic<size_t> num_scores{0};
    parallel_blocks(n, 1, [&](idx_t i, idx_t) {
        const ThreadWalk memory;
        GraphWalk& walk = *memory;
        const auto score = [&](size_t m, const int32_t* ids, float* out) {
            scores(x + i * d, m, ids, out);
        };
        walk.num_scores = 0;
        found(i, walk, [&](auto&& met) {
            if (ntotal > 0) {
                const ScoredVertex start = walk.descend(hnsw, 0, score);
                met(start);
                walk.walk(hnsw, 0, start, kept, limits, score, met);
            } else {
                walk.frontier.clear(0);
            }
        });
        num_scores += walk.num_scores;
    });
    faiss::hnsw_stats.n1 += n;
    faiss::hnsw_stats.ndis += num_scores;
}

void IndexHNSWKernel::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_scores(n, x, k, distances, labels, params);
    values_of_scores(n, k, distances, labels);
}

void IndexHNSWKernel::values_of_scores(
        idx_t n,
        idx_t k,
        float* scores,
        idx_t* labels) const {
    vectors().values_of_scores(n, k, scores, labels);
}

void IndexHNSWKernel::search_scores(
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            k > 0,
            "IndexHNSWKernel::search: k is %" PRId64
            ", expected a positive number",
            int64_t(k));
    constexpr float worst = std::numeric_limits<float>::max();
    const faiss::IDSelector* sel = params ? params->sel : nullptr;
    std::unique_ptr<faiss::SearchParameters> wider;
    if (sel && is_plain(params)) {
        check_graph("search");
        const Selected selected(
                *sel,
                ntotal,
                std::max<idx_t>(
                        4 * std::max<idx_t>(hnsw.efSearch, k), ntotal / 64));
        if (selected.few) {
            vectors().search_scores(n, x, k, scores, labels, params);
            return;
        }
        wider = params_for_selected(*this, selected.fraction);
        params = wider.get();
    }
    const auto search_one = [&](idx_t i, GraphWalk& walk, auto&& run) {
        Frontier& selected = walk.selected;
        if (sel) {
            selected.clear(k);
            run([&](ScoredVertex v) {
                if (sel->is_member(v.id)) {
                    selected.push(v);
                }
            });
        } else {
            run([](ScoredVertex) {});
        }
        const Frontier& best = sel ? selected : walk.frontier;
        for (idx_t j = 0; j < k; j++) {
            const ScoredVertex v =
                    size_t(j) < best.size() ? best[j] : ScoredVertex{NAN, -1};
            const bool is_found = !std::isnan(v.score);
            scores[i * k + j] = is_found ? v.score : worst;
            labels[i * k + j] = is_found ? v.id : -1;
        }
    };
    for_walks("search", n, x, k, params, search_one);
    if (wider) {
        complete_results(vectors(), *sel, n, x, k, scores, labels);
    }
}

void IndexHNSWKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            !std::isnan(radius), "the radius is NaN, expected a number");
    const faiss::IDSelector* sel = params ? params->sel : nullptr;
    const IndexFlatKernel& flat = vectors();
    const auto is_within = [&](float value) {
        return metric_type == faiss::METRIC_L2 ? value < radius
                                               : value > radius;
    };
    std::vector<std::vector<ScoredVertex>> found(n);
    const auto search_one = [&](idx_t i, GraphWalk&, auto&& run) {
        run([&](ScoredVertex v) {
            flat.kernel->values_of_scores(metric_type, 1, &v.score);
            if (is_within(v.score) && (!sel || sel->is_member(v.id))) {
                found[i].push_back(v);
            }
        });
        std::sort(
                found[i].begin(),
                found[i].end(),
                [](ScoredVertex a, ScoredVertex b) { return a.id < b.id; });
    };
    for_walks("range_search", n, x, 1, params, search_one);
    fill_range_result(
            found,
            result,
            [](ScoredVertex v) { return v.score; },
            [](ScoredVertex v) { return idx_t(v.id); });
}

void IndexHNSWKernel::reconstruct(idx_t key, float* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexHNSWKernel::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    check_counts_with(*this, storage);
    vectors().reconstruct_n(i0, ni, recons);
}

void IndexHNSWKernel::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexHNSWKernel",
            "add_with_ids",
            "put an IDMap in front of the index");
}

size_t IndexHNSWKernel::remove_ids(const faiss::IDSelector&) {
    throw_unsupported(
            "IndexHNSWKernel",
            "remove_ids",
            "build the index again without the vectors");
}

void IndexHNSWKernel::check_compatible_for_merge(const faiss::Index&) const {
    throw_unsupported(
            "IndexHNSWKernel",
            "merge_from",
            "add the vectors of both to one index");
}

void IndexHNSWKernel::merge_from(faiss::Index& other, idx_t) {
    check_compatible_for_merge(other);
}

size_t IndexHNSWKernel::sa_code_size() const {
    throw_unsupported(
            "IndexHNSWKernel", "sa_code_size", "call it on the storage");
}

void IndexHNSWKernel::sa_encode(idx_t, const float*, uint8_t*) const {
    throw_unsupported("IndexHNSWKernel", "sa_encode", "call it on the storage");
}

void IndexHNSWKernel::sa_decode(idx_t, const uint8_t*, float*) const {
    throw_unsupported("IndexHNSWKernel", "sa_decode", "call it on the storage");
}

void IndexHNSWKernel::reset() {
    check_not_being_built("reset");
    IndexHNSW::reset();
    graph_is_complete = true;
}

void IndexHNSWKernel::rebuild() {
    check_not_being_built("rebuild");
    graph_is_complete = false;
    hnsw.reset();
    build(0);
    ntotal = vectors().ntotal;
    graph_is_complete = true;
}

} // namespace faiss_ext
