// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexHNSWKernel.h>

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/errors.h"
#include "core/huge_pages.h"
#include "core/parallel.h"
#include "indexes/GraphChanges.h"
#include "indexes/graph_checks.h"
#include "indexes/graph_search.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "simd/ranking.h"

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
    FAISS_EXT_THROW_IF_NOT_MSG(
            storage->store != IndexFlatKernel::Store::sparse,
            "IndexHNSWKernel: the storage has sparse vectors (store=sparse), expected dense ones");
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

idx_t IndexHNSWKernel::num_removed() const {
    return idx_t(places.places.size() - places.vertices.size());
}

void IndexHNSWKernel::check_graph(const char* where) const {
    check_not_being_built(is_being_built, "IndexHNSWKernel", where);
    check_graph_of(*this, "IndexHNSWKernel", where);
}

struct IndexHNSWKernel::Storage : GraphStorage {
    IndexFlatKernel& flat;

    explicit Storage(IndexFlatKernel& flat) : flat(flat) {}

    std::unique_ptr<VertexScores> scores() const override {
        return std::make_unique<RowScores>(flat, "build_graph");
    }
    void remove_last(idx_t n) override {
        flat.remove_ids(PlaceSelector::from(flat.ntotal - n, flat.ntotal));
    }
    std::function<void()> prepare_moves(const PlaceMoves& moves) override {
        return faiss_ext::prepare_moves(&flat, moves);
    }
    /// The vectors of an IndexFileKernel stay where they are.
    bool can_move() const override {
        const PlaceMoves none(flat.ntotal, {});
        return bool(faiss_ext::prepare_moves(&flat, none));
    }
    std::function<void()> prepare_exchange(
            const std::vector<int32_t>& vertices) override {
        return exchange_of(flat, flat.codes, vertices);
    }
};

GraphChanges IndexHNSWKernel::changes(Storage& storage) {
    return {hnsw, places, ntotal, is_being_built, storage};
}

void IndexHNSWKernel::add(idx_t n, const float* x) {
    check_graph("add");
    check_levels(*this, n, "IndexHNSWKernel");
    check_trained(is_trained, "IndexHNSWKernel::add");
    check_ef(hnsw.efConstruction, "efConstruction", "IndexHNSWKernel::add");
    if (n == 0) {
        return;
    }
    vectors().kernel->check_input(n, x, d, "IndexFlatKernel::add");
    append(n, [&](IndexFlatKernel& flat) { flat.add(n, x); });
}

void IndexHNSWKernel::append(
        idx_t n,
        const std::function<void(IndexFlatKernel&)>& store) {
    Storage storage(vectors());
    changes(storage).append(n, [&] { store(vectors()); });
}

size_t IndexHNSWKernel::remove_ids(const faiss::IDSelector& sel) {
    check_graph("remove_ids");
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel::remove_ids");
    Storage storage(vectors());
    return changes(storage).remove(sel);
}

std::function<void()> IndexHNSWKernel::prepare_moves(const PlaceMoves& moves) {
    check_graph("remove_ids");
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel");
    Storage storage(vectors());
    return changes(storage).prepare_moves(moves);
}

void IndexHNSWKernel::compact() {
    check_graph("compact");
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel::compact");
    Storage storage(vectors());
    if (!storage.can_move()) {
        throw UnsupportedError(
                "IndexHNSWKernel::compact: the storage cannot move its vectors, because they are in a file (IndexFileKernel)");
    }
    changes(storage).compact();
}

/// Calls found(searches, scores) after the checks of a search.
template <class Found>
void IndexHNSWKernel::for_searches(
        const char* where,
        idx_t n,
        const float* x,
        Found&& found) const {
    check_graph(where);
    const IndexFlatKernel& flat = vectors();
    const std::string name = std::string("IndexHNSWKernel::") + where;
    check_trained(is_trained && flat.kernel->is_trained, name.c_str());
    flat.kernel->check_input(n, x, d, name.c_str());
    const RowScores scores(flat, name.c_str());
    const GraphSearches searches{
            hnsw,
            places,
            ntotal,
            name,
            n,
            [&](idx_t i, size_t m, const int32_t* vertices, float* out) {
                scores(x + i * d, m, vertices, out);
            },
            [&](const faiss::IDSelector& sel,
                idx_t k,
                float* found_scores,
                idx_t* labels) {
                faiss::SearchParameters params;
                params.sel = const_cast<faiss::IDSelector*>(&sel);
                flat.search_scores(n, x, k, found_scores, labels, &params);
            },
            [&](const faiss::IDSelector& sel,
                idx_t k,
                float* found_scores,
                idx_t* labels) {
                complete_results(flat, sel, {n, x, d}, k, found_scores, labels);
            }};
    found(searches);
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
    check_k(k, "IndexHNSWKernel::search");
    for_searches("search", n, x, [&](const GraphSearches& searches) {
        searches.nearest(k, scores, labels, params);
    });
}

void IndexHNSWKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_radius(radius, "IndexHNSWKernel::range_search");
    const Kernel& kernel = *vectors().kernel;
    std::vector<std::vector<ScoredVertex>> found;
    const auto is_within_radius = [&](float& score) {
        kernel.values_of_scores(metric_type, 1, &score);
        return is_within(metric_type, score, radius);
    };
    for_searches("range_search", n, x, [&](const GraphSearches& searches) {
        found = searches.within(is_within_radius, params);
    });
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
    check_graph("reconstruct");
    if (places.are_equal()) {
        vectors().reconstruct_n(i0, ni, recons);
        return;
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            i0 >= 0 && ni >= 0 && i0 <= ntotal - ni,
            "IndexHNSWKernel::reconstruct: ids %" PRId64 " to %" PRId64
            " were asked for, expected ids from 0 to %" PRId64,
            int64_t(i0),
            int64_t(i0 + ni - 1),
            int64_t(ntotal - 1));
    for (idx_t i = 0; i < ni; i++) {
        vectors().reconstruct(places.vertex(i0 + i), recons + i * d);
    }
}

namespace {

/// Computes distances to vectors by their places.
struct DistancesByPlace : faiss::DistanceComputer {
    const GraphPlaces& places;
    const std::unique_ptr<faiss::DistanceComputer> distances;

    DistancesByPlace(
            const GraphPlaces& places,
            faiss::DistanceComputer* distances)
            : places(places), distances(distances) {}

    void set_query(const float* x) override {
        distances->set_query(x);
    }
    float operator()(idx_t i) override {
        return (*distances)(places.vertex(i));
    }
    float symmetric_dis(idx_t i, idx_t j) override {
        return distances->symmetric_dis(places.vertex(i), places.vertex(j));
    }
};

} // namespace

faiss::DistanceComputer* IndexHNSWKernel::get_distance_computer() const {
    check_graph("get_distance_computer");
    std::unique_ptr<faiss::DistanceComputer> distances(
            vectors().get_distance_computer());
    return places.are_equal()
            ? distances.release()
            : new DistancesByPlace(places, distances.release());
}

void IndexHNSWKernel::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexHNSWKernel",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexHNSWKernel::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_before_merge(*this, other);
    check_not_itself(&other == this);
    const auto* source = dynamic_cast<const IndexHNSWKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source, "cannot merge: expected another IndexHNSWKernel");
    check_graph("merge_from");
    source->check_graph("merge_from");
    vectors().check_compatible_for_merge(source->vectors());
}

void IndexHNSWKernel::merge_from(faiss::Index& other, idx_t add_id) {
    check_compatible_for_merge(other);
    check_not_mapped(bool(vectors().mapped), "IndexHNSWKernel::merge_from");
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexHNSWKernel&>(other);
    const idx_t n = source.ntotal;
    if (n > 0) {
        check_ef(
                hnsw.efConstruction,
                "efConstruction",
                "IndexHNSWKernel::merge_from");
        append(n, [&](IndexFlatKernel& flat) {
            const uint8_t* from = source.vectors()
                                          .rows("IndexHNSWKernel::merge_from")
                                          .sequential;
            const size_t size = flat.code_size;
            const StaysInHugePages huge(flat.codes);
            flat.codes.resize((flat.ntotal + n) * size);
            for (idx_t place = 0; place < n; place++) {
                std::copy_n(
                        from + source.places.vertex(place) * size,
                        size,
                        &flat.codes[flat.ntotal++ * size]);
            }
        });
    }
    source.reset();
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
    check_not_being_built(is_being_built, "IndexHNSWKernel", "reset");
    IndexHNSW::reset();
    places = {};
}

} // namespace faiss_ext
