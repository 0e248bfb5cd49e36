// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/bit_rows.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/scratch.h"
#include "indexes/GraphChanges.h"
#include "indexes/code_scores.h"
#include "indexes/graph_checks.h"
#include "indexes/graph_search.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

int checked_links(int M) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            M >= 2 && M <= 1024,
            "IndexBinaryHNSWSIMD: M is %d, expected 2 to 1024",
            M);
    return M;
}

/// Whether a hit comes first in the results: padding is last.
bool is_better(
        const std::pair<int32_t, idx_t>& a,
        const std::pair<int32_t, idx_t>& b) {
    return a.first != b.first ? a.first < b.first
                              : uint64_t(a.second) < uint64_t(b.second);
}

/// Takes over the flat storage of a graph.
std::unique_ptr<IndexBinaryFlatSIMD> fast_storage(
        faiss::IndexBinaryHNSW& other) {
    auto* flat = dynamic_cast<faiss::IndexBinaryFlat*>(other.storage);
    FAISS_EXT_THROW_IF_NOT_MSG(
            flat && other.own_fields,
            "IndexBinaryHNSWSIMD: the other graph has no flat storage of its own");
    auto fast = std::make_unique<IndexBinaryFlatSIMD>(std::move(*flat));
    delete std::exchange(other.storage, nullptr);
    return fast;
}

} // namespace

IndexBinaryHNSWSIMD::IndexBinaryHNSWSIMD(
        std::unique_ptr<IndexBinaryFlatSIMD> flat,
        int M)
        : IndexBinaryHNSW(flat.get(), M) {
    flat.release();
    own_fields = true;
}

IndexBinaryHNSWSIMD::IndexBinaryHNSWSIMD(int d, int M)
        : IndexBinaryHNSWSIMD(
                  std::make_unique<IndexBinaryFlatSIMD>(d),
                  checked_links(M)) {}

IndexBinaryHNSWSIMD::IndexBinaryHNSWSIMD(faiss::IndexBinaryHNSW&& other)
        : IndexBinaryHNSWSIMD(fast_storage(other), 2) {
    is_trained = other.is_trained;
    verbose = other.verbose;
    hnsw = std::move(other.hnsw);
    ntotal = std::exchange(other.ntotal, 0);
}

struct IndexBinaryHNSWSIMD::Storage : GraphStorage {
    const IndexBinaryHNSWSIMD& index;
    IndexBinaryFlatSIMD& flat;

    explicit Storage(const IndexBinaryHNSWSIMD& index)
            : index(index), flat(index.codes()) {}

    std::unique_ptr<VertexScores> scores() const override {
        return index.scores();
    }
    void remove_last(idx_t n) override {
        flat.ntotal -= n;
        flat.xb.resize(flat.ntotal * flat.code_size);
    }
    std::function<void()> prepare_moves(const PlaceMoves& moves) override {
        return faiss_ext::prepare_moves(&flat, moves);
    }
    bool can_move() const override {
        return !flat.mapped;
    }
    std::function<void()> prepare_exchange(
            const std::vector<int32_t>& vertices) override {
        return exchange_of(flat, flat.xb, vertices);
    }
};

IndexBinaryFlatSIMD& IndexBinaryHNSWSIMD::codes() const {
    auto* flat = dynamic_cast<IndexBinaryFlatSIMD*>(storage);
    FAISS_EXT_THROW_IF_NOT_MSG(
            flat,
            "IndexBinaryHNSWSIMD: the storage is of another class, expected an IndexBinaryFlatSIMD");
    return *flat;
}

std::unique_ptr<VertexScores> IndexBinaryHNSWSIMD::scores() const {
    return std::make_unique<CodeScores>(codes().codes(), code_size);
}

int32_t IndexBinaryHNSWSIMD::distance(const uint8_t*, int32_t, float score)
        const {
    return int32_t(score); // floats hold numbers of bits exactly
}

float IndexBinaryHNSWSIMD::largest_score(int radius) const {
    return float(radius);
}

void IndexBinaryHNSWSIMD::scan(
        const faiss::IDSelector& sel,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* vertices) const {
    faiss::SearchParameters params;
    params.sel = const_cast<faiss::IDSelector*>(&sel); // FAISS's type
    codes().search(n, x, k, distances, vertices, &params);
}

GraphChanges IndexBinaryHNSWSIMD::changes(Storage& storage) {
    return {hnsw, places, ntotal, is_being_built, storage};
}

idx_t IndexBinaryHNSWSIMD::num_removed() const {
    return idx_t(places.places.size() - places.vertices.size());
}

void IndexBinaryHNSWSIMD::check_graph(const char* where) const {
    check_not_being_built(is_being_built, "IndexBinaryHNSWSIMD", where);
    check_graph_of(*this, "IndexBinaryHNSWSIMD", where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            codes().num_bytes() == size_t(storage->ntotal) * code_size,
            "IndexBinaryHNSWSIMD::%s: the storage has %zu bytes, expected %zu",
            where,
            codes().num_bytes(),
            size_t(storage->ntotal) * code_size);
}

void IndexBinaryHNSWSIMD::add(idx_t n, const uint8_t* x) {
    check_graph("add");
    check_batch(n, x, "IndexBinaryHNSWSIMD::add");
    check_bits(n, d, x, "IndexBinaryHNSWSIMD::add");
    check_levels(*this, n, "IndexBinaryHNSWSIMD");
    check_ef(hnsw.efConstruction, "efConstruction", "IndexBinaryHNSWSIMD::add");
    if (n > 0) {
        append(n, [&](IndexBinaryFlatSIMD& flat) { flat.add(n, x); });
    }
}

void IndexBinaryHNSWSIMD::append(
        idx_t n,
        const std::function<void(IndexBinaryFlatSIMD&)>& store) {
    check_not_mapped(bool(codes().mapped), "IndexBinaryHNSWSIMD::add");
    Storage storage(*this);
    changes(storage).append(n, [&] { store(codes()); });
}

size_t IndexBinaryHNSWSIMD::remove_ids(const faiss::IDSelector& sel) {
    check_graph("remove_ids");
    check_not_mapped(bool(codes().mapped), "IndexBinaryHNSWSIMD::remove_ids");
    Storage storage(*this);
    return changes(storage).remove(sel);
}

std::function<void()> IndexBinaryHNSWSIMD::prepare_moves(
        const PlaceMoves& moves) {
    check_graph("remove_ids");
    check_not_mapped(bool(codes().mapped), "IndexBinaryHNSWSIMD");
    Storage storage(*this);
    return changes(storage).prepare_moves(moves);
}

void IndexBinaryHNSWSIMD::compact() {
    check_graph("compact");
    check_not_mapped(bool(codes().mapped), "IndexBinaryHNSWSIMD::compact");
    Storage storage(*this);
    changes(storage).compact();
}

/// Calls found(searches) after the checks of a search.
template <class Found>
void IndexBinaryHNSWSIMD::for_searches(
        const char* where,
        idx_t n,
        const uint8_t* x,
        Found&& found) const {
    check_graph(where);
    const std::string name = std::string("IndexBinaryHNSWSIMD::") + where;
    check_batch(n, x, name.c_str());
    check_bits(n, d, x, name.c_str());
    const std::unique_ptr<VertexScores> scores = this->scores();
    const size_t width = scores->d();
    std::vector<float> queries(n * width);
    for (idx_t i = 0; i < n; i++) {
        copy_code(x + i * code_size, code_size, &queries[i * width]);
    }
    const auto scan_some = [&](const faiss::IDSelector& sel,
                               idx_t m,
                               const uint8_t* codes,
                               idx_t k,
                               float* to,
                               idx_t* labels) {
        std::vector<int32_t> distances(m * k);
        scan(sel, m, codes, k, distances.data(), labels);
        std::copy(distances.begin(), distances.end(), to);
    };
    const GraphSearches searches{
            hnsw,
            places,
            ntotal,
            name,
            n,
            [&](idx_t i, size_t m, const int32_t* vertices, float* out) {
                (*scores)(&queries[i * width], m, vertices, out);
            },
            [&](const faiss::IDSelector& sel,
                idx_t k,
                float* to,
                idx_t* labels) { scan_some(sel, n, x, k, to, labels); },
            [&](const faiss::IDSelector& sel,
                idx_t k,
                float* to,
                idx_t* labels) {
                for (idx_t i = 0; i < n; i++) {
                    if (labels[(i + 1) * k - 1] == -1) {
                        scan_some(
                                sel,
                                1,
                                x + i * code_size,
                                k,
                                to + i * k,
                                labels + i * k);
                    }
                }
            }};
    found(searches);
}

void IndexBinaryHNSWSIMD::search(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_k(k, "IndexBinaryHNSWSIMD::search");
    for_searches("search", n, x, [&](const GraphSearches& searches) {
        std::vector<float> scores(n * k);
        searches.nearest(k, scores.data(), labels, params);
        std::vector<std::pair<int32_t, idx_t>> hits(k);
        for (idx_t i = 0; i < n; i++) {
            for (idx_t j = 0; j < k; j++) {
                const idx_t at = i * k + j;
                hits[j] = {std::numeric_limits<int32_t>::max(), labels[at]};
                if (labels[at] >= 0) {
                    hits[j].first = distance(
                            x + i * code_size,
                            places.vertex(labels[at]),
                            scores[at]);
                }
            }
            // scores may be less exact
            std::stable_sort(hits.begin(), hits.end(), is_better);
            for (idx_t j = 0; j < k; j++) {
                std::tie(distances[i * k + j], labels[i * k + j]) = hits[j];
            }
        }
    });
}

void IndexBinaryHNSWSIMD::range_search(
        idx_t n,
        const uint8_t* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    std::vector<std::vector<std::pair<int32_t, idx_t>>> found(n);
    const float largest = largest_score(radius);
    for_searches("range_search", n, x, [&](const GraphSearches& searches) {
        const auto near = searches.within(
                [&](float& score) { return score <= largest; }, params);
        for (idx_t i = 0; i < n; i++) {
            for (const ScoredVertex v : near[i]) { // their ids are places
                const int32_t value = distance(
                        x + i * code_size, places.vertex(v.id), v.score);
                if (value < radius) {
                    found[i].emplace_back(value, v.id);
                }
            }
        }
    });
    fill_range_result(
            found,
            result,
            [](const auto& hit) { return float_at_most(hit.first); },
            [](const auto& hit) { return hit.second; });
}

void IndexBinaryHNSWSIMD::reconstruct(idx_t key, uint8_t* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexBinaryHNSWSIMD::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    check_graph("reconstruct");
    check_ids(i0, ni, ntotal, "IndexBinaryHNSWSIMD::reconstruct");
    for (idx_t i = 0; i < ni; i++) {
        codes().reconstruct(places.vertex(i0 + i), recons + i * code_size);
    }
}

void IndexBinaryHNSWSIMD::add_with_ids(idx_t, const uint8_t*, const idx_t*) {
    throw_unsupported(
            "IndexBinaryHNSWSIMD",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexBinaryHNSWSIMD::check_compatible_for_merge(
        const faiss::IndexBinary& other) const {
    check_before_merge(*this, other);
    check_not_itself(&other == this);
    const auto* source = dynamic_cast<const IndexBinaryHNSWSIMD*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source && source->d == d,
            "cannot merge: expected another IndexBinaryHNSWSIMD with the same number of bits");
    check_same_distance(*source);
    source->check_same_distance(*this);
    check_graph("merge_from");
    source->check_graph("merge_from");
}

void IndexBinaryHNSWSIMD::merge_from(faiss::IndexBinary& other, idx_t add_id) {
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexBinaryHNSWSIMD&>(other);
    check_not_mapped(bool(codes().mapped), "IndexBinaryHNSWSIMD::merge_from");
    check_ef(
            hnsw.efConstruction,
            "efConstruction",
            "IndexBinaryHNSWSIMD::merge_from");
    const idx_t n = source.ntotal;
    if (n > 0) {
        // by place: reconstruct takes the ids of a table
        std::vector<uint8_t> moved(n * code_size);
        for (idx_t place = 0; place < n; place++) {
            std::copy_n(
                    source.codes().codes() +
                            source.places.vertex(place) * code_size,
                    code_size,
                    moved.data() + place * code_size);
        }
        append(n,
               [&](IndexBinaryFlatSIMD& flat) { flat.add(n, moved.data()); });
    }
    source.reset();
}

void IndexBinaryHNSWSIMD::reset() {
    check_not_being_built(is_being_built, "IndexBinaryHNSWSIMD", "reset");
    IndexBinaryHNSW::reset();
    places = {};
}

} // namespace faiss_ext
