// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexSparseKernel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/bisection.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "core/sparse_input.h"
#include "indexes/SparseBatch.h"
#include "indexes/SparseSegment.h"
#include "indexes/SparseTimes.h"
#include "indexes/index_facts.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "indexes/subset_scores.h"
#include "kernels/SparseQuery.h"
#include "kernels/sparse_blocks.h"
#include "simd/ranking.h"

namespace faiss_ext {

namespace {

/// Finite dense vectors as sparse ones.
SparseRows checked_copy(idx_t n, const float* x, int d, const char* where) {
    check_finite(n, x, d, where);
    return sparse_copy(n, x, d);
}

/// Canonical vectors on which a kernel is defined.
struct CheckedVectors : CanonicalVectors {
    CheckedVectors(
            const IndexSparseKernel& index,
            const SparseVectors& x,
            const char* where)
            : CanonicalVectors(x, where) {
        check_dimension(x, index.d, where);
        check_trained(index.is_trained && index.kernel->is_trained, where);
        index.kernel->check_sparse_input(*this, where);
    }
};

/// Throws if a method that takes positions is called from outside and the
/// index has a table of ids.
void check_by_position(const IndexSparseKernel& index, const char* method) {
    if (IndexPositions<faiss::Index>::inside != &index && id_table_of(index)) {
        throw UnsupportedError(
                std::string("IndexSparseKernel::") + method +
                ": this method takes positions, and the index has a table of ids; use the functions of faiss_ext/indexes/sparse_calls.h");
    }
}

/// The largest score of a vector within a radius.
float largest_score(const IndexSparseKernel& index, float radius) {
    return largest_float([&](float score) {
        float value = score;
        index.kernel->values_of_scores(index.metric_type, 1, &value);
        // no distance is negative
        return std::isnan(value) ? score < 0
                                 : is_within(index.metric_type, value, radius);
    });
}

} // namespace

IndexSparseKernel::IndexSparseKernel()
        : times(std::make_unique<SparseTimes>()) {}

IndexSparseKernel::~IndexSparseKernel() = default;

IndexSparseKernel::IndexSparseKernel(
        int d,
        const Kernel& kernel,
        faiss::MetricType metric)
        : IndexSparseKernel() {
    this->d = d;
    metric_type = metric;
    this->kernel = kernel.clone();
    init();
}

void IndexSparseKernel::fields(FieldVisitor& v) const {
    parameters(v);
    double count = double(segments.size());
    v.learned("segments", count);
    const auto num_segments = size_t(std::clamp(count, 0.0, 1e9));
    v.items(segments, num_segments, [&](const auto& segment) {
        if (v.sets()) {
            settable(segment) = std::make_unique<SparseSegment>();
        }
        segment->fields(v);
    });
}

void IndexSparseKernel::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
    check_metric(metric_type);
    check_fields(*this);
    check_ignores_zeros(*kernel, "IndexSparseKernel");
    store = Store::sparse;
    code_size = 0;
    is_trained = kernel->is_trained;
}

void IndexSparseKernel::check_restorable() const {
    constexpr const char* where = "IndexSparseKernel";
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel->is_trained == is_trained && d > 0,
            "the kernel and the index are inconsistent: either both or neither must be trained, and the dimension must be positive");
    check_ignores_zeros(*kernel, "IndexSparseKernel");
    std::vector<bool> seen(ntotal);
    idx_t count = 0;
    for (const auto& segment : segments) {
        std::vector<int64_t> indptr;
        const SparseVectors x = segment->checked(d, indptr);
        const CheckedVectors canonical(*this, x, where);
        FAISS_EXT_THROW_IF_NOT_MSG(
                canonical->indices == x.indices,
                "IndexSparseKernel: the columns of a vector do not ascend, or a component is 0");
        for (size_t i = 0; i < segment->size(); i++) {
            const idx_t place = segment->place(i);
            if (place == SparseSegment::removed) {
                continue;
            }
            FAISS_EXT_THROW_IF_NOT_FMT(
                    place >= 0 && place < ntotal && !seen[place],
                    "IndexSparseKernel: place %" PRId64
                    " of a vector is out of range, or used twice",
                    int64_t(place));
            seen[place] = true;
            count++;
        }
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            count == ntotal,
            "IndexSparseKernel: it contains %" PRId64
            " vectors, expected %" PRId64,
            int64_t(count),
            int64_t(ntotal));
}

void IndexSparseKernel::restore() {
    check_restorable();
    store = Store::sparse;
    code_size = 0;
    places.resize(ntotal);
    for (size_t s = 0; s < segments.size(); s++) {
        segments[s]->restore();
        for (size_t i = 0; i < segments[s]->size(); i++) {
            const idx_t place = segments[s]->place(i);
            if (place != SparseSegment::removed) {
                places[place] = {uint32_t(s), uint16_t(i)};
            }
        }
    }
}

void IndexSparseKernel::train(idx_t n, const float* x) {
    check_not_mapped(is_mapped(), "IndexSparseKernel::train");
    IndexFlatKernel::train(n, x);
}

void IndexSparseKernel::add(const SparseVectors& given) {
    check_by_position(*this, "add");
    check_not_mapped(is_mapped(), "IndexSparseKernel::add");
    const CheckedVectors x(*this, given, "IndexSparseKernel::add");
    constexpr idx_t most = std::numeric_limits<int32_t>::max();
    FAISS_EXT_THROW_IF_NOT_FMT(
            x->n <= most - ntotal,
            "IndexSparseKernel::add: %" PRId64 " vectors and %" PRId64
            " new ones exceed the limit of %" PRId64,
            int64_t(ntotal),
            int64_t(x->n),
            int64_t(most));
    const size_t before = segments.size();
    const size_t last_size = segments.empty() ? 0 : segments.back()->size();
    try {
        places.reserve(ntotal + x->n);
        for (idx_t i = 0; i < x->n;) {
            if (segments.empty() ||
                segments.back()->size() == SparseSegment::most_rows) {
                segments.push_back(std::make_unique<SparseSegment>());
            }
            SparseSegment& last = *segments.back();
            const idx_t end = std::min<idx_t>(
                    x->n, i + (SparseSegment::most_rows - last.size()));
            last.append(x->slice(i, end), ntotal + i);
            i = end;
        }
    } catch (...) {
        segments.resize(before);
        if (!segments.empty()) {
            segments.back()->truncate(last_size);
        }
        throw;
    }
    for (idx_t i = 0, row = last_size, s = std::max<idx_t>(before, 1) - 1;
         i < x->n;
         i++, row++) {
        if (size_t(row) == SparseSegment::most_rows) {
            row = 0;
            s++;
        }
        places.push_back({uint32_t(s), uint16_t(row)});
    }
    ntotal += x->n;
}

void IndexSparseKernel::add(idx_t n, const float* x) {
    add(checked_copy(n, x, d, "IndexSparseKernel::add").get());
}

void IndexSparseKernel::search(
        const SparseVectors& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_by_position(*this, "search");
    search_scores(x, k, distances, labels, params);
    values_of_scores(x.n, k, distances, labels);
}

void IndexSparseKernel::search_scores(
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const SparseRows copy = checked_copy(n, x, d, "IndexSparseKernel::search");
    search_scores(copy.get(), k, scores, labels, params);
}

void IndexSparseKernel::search_scores(
        const SparseVectors& given,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const CheckedVectors x(*this, given, "IndexSparseKernel::search");
    check_k(k, "IndexSparseKernel::search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexSparseKernel::search");
    std::optional<Selected> selected;
    if (sel) {
        // comparing a vector takes as long as many entries of lists
        selected.emplace(*sel, ntotal, std::max<idx_t>(ntotal / 256, k));
    }
    const size_t kept = size_t(std::min(k, std::max<idx_t>(ntotal, 1)));
    const SparseHits empty(kept);
    const SparseBatch batch{*kernel, metric_type, segments, x.get(), sel};
    SparseBatch::Hits found;
    if (selected && selected->few) {
        std::vector<SparseRow> rows;
        for (const idx_t place : *selected->few) {
            rows.push_back(row(place));
        }
        found = batch.compare(empty, rows, *selected->few);
    } else {
        found = batch.search(empty, *times);
    }
    for (idx_t i = 0; i < x->n; i++) {
        std::vector<Hit>& hits = found[i];
        keep_smallest(hits, std::min(kept, hits.size()));
        for (idx_t j = 0; j < k; j++) {
            const bool is_found = size_t(j) < hits.size();
            scores[i * k + j] = is_found ? hits[j].first : worst_score;
            labels[i * k + j] = is_found ? hits[j].second : -1;
        }
    }
}

void IndexSparseKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    const SparseRows copy =
            checked_copy(n, x, d, "IndexSparseKernel::range_search");
    range_search(copy.get(), radius, result, params);
}

void IndexSparseKernel::range_search(
        const SparseVectors& given,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_by_position(*this, "range_search");
    const CheckedVectors x(*this, given, "IndexSparseKernel::range_search");
    check_radius(radius, "IndexSparseKernel::range_search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexSparseKernel::range_search");
    const SparseBatch batch{*kernel, metric_type, segments, x.get(), sel};
    SparseBatch::Hits found = batch.search(
            SparseHits::within(largest_score(*this, radius)), *times);
    for (std::vector<Hit>& hits : found) {
        for (Hit& hit : hits) {
            kernel->values_of_scores(metric_type, 1, &hit.first);
        }
        std::erase_if(hits, [&](const Hit& hit) {
            return !is_within(metric_type, hit.first, radius);
        });
        std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
            return a.second < b.second;
        });
    }
    fill_range_result(
            found,
            result,
            [](const Hit& hit) { return hit.first; },
            [](const Hit& hit) { return hit.second; });
}

void IndexSparseKernel::compute_distance_subset(
        const SparseVectors& x,
        idx_t k,
        float* distances,
        const idx_t* labels) const {
    check_by_position(*this, "compute_distance_subset");
    compare_subset(Subset::distances, x, k, distances, labels);
}

void IndexSparseKernel::compute_kernel_subset(
        const SparseVectors& x,
        idx_t k,
        float* values,
        const idx_t* labels) const {
    check_by_position(*this, "compute_kernel_subset");
    compare_subset(Subset::kernel_values, x, k, values, labels);
}

void IndexSparseKernel::compute_score_subset(
        const SparseVectors& x,
        idx_t k,
        float* scores,
        const idx_t* labels) const {
    check_by_position(*this, "compute_score_subset");
    compare_subset(Subset::scores, x, k, scores, labels);
}

void IndexSparseKernel::train_batch(const VectorBatch& x) {
    if (!x.is_sparse) {
        train(x.n, x.dense);
        return;
    }
    constexpr const char* where = "IndexSparseKernel::train";
    check_not_mapped(is_mapped(), where);
    const CanonicalVectors canonical(x.sparse, where);
    check_dimension(x.sparse, d, where);
    train_kernel(
            [&] { kernel->check_sparse_input(canonical, where); },
            [&] { kernel->train_sparse(canonical.get()); });
}

void IndexSparseKernel::add_batch(const VectorBatch& x) {
    if (x.is_sparse) {
        add(x.sparse);
    } else {
        add(x.n, x.dense);
    }
}

void IndexSparseKernel::search_batch(
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    if (x.is_sparse) {
        search(x.sparse, k, distances, labels, params);
    } else {
        search(x.n, x.dense, k, distances, labels, params);
    }
}

void IndexSparseKernel::range_search_batch(
        const VectorBatch& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    if (x.is_sparse) {
        range_search(x.sparse, radius, result, params);
    } else {
        range_search(x.n, x.dense, radius, result, params);
    }
}

void IndexSparseKernel::compare_subset(
        Subset what,
        idx_t n,
        const float* x,
        idx_t k,
        float* out,
        const idx_t* labels) const {
    const SparseRows copy =
            checked_copy(n, x, d, "IndexSparseKernel::compute_subset");
    compare_subset(what, copy.get(), k, out, labels);
}

void IndexSparseKernel::compare_subset(
        Subset what,
        const SparseVectors& given,
        idx_t k,
        float* out,
        const idx_t* labels) const {
    constexpr const char* where = "IndexSparseKernel::compute_subset";
    const CheckedVectors x(*this, given, where);
    check_labels(x->n, k, labels, ntotal, where);
    fill_subset(
            *this,
            what,
            x->n,
            k,
            out,
            labels,
            [&](faiss::MetricType metric,
                idx_t i,
                const std::vector<idx_t>& ids,
                float* found) {
                std::vector<SparseRow> gathered;
                gathered.reserve(ids.size());
                for (const idx_t id : ids) {
                    gathered.push_back(row(id));
                }
                const SparseQuery query(*kernel, SparseRow::of(x.get(), i));
                query.scores(metric, gathered, found);
            });
}

bool IndexSparseKernel::is_mapped() const {
    return std::any_of(
            segments.begin(), segments.end(), [](const auto& segment) {
                return segment->is_mapped();
            });
}

SparseRow IndexSparseKernel::row(idx_t key) const {
    const Place& place = places[key];
    return segments[place.segment]->row(place.row);
}

size_t IndexSparseKernel::num_components(idx_t key) const {
    check_ids(key, 1, ntotal, "IndexSparseKernel::num_components");
    return row(key).size();
}

void IndexSparseKernel::reconstruct(idx_t key, int32_t* columns, float* values)
        const {
    check_ids(key, 1, ntotal, "IndexSparseKernel::reconstruct");
    const SparseRow found = row(key);
    std::copy(found.columns.begin(), found.columns.end(), columns);
    std::copy(found.values.begin(), found.values.end(), values);
}

void IndexSparseKernel::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    check_ids(i0, ni, ntotal, "IndexSparseKernel::reconstruct");
    for (idx_t i = 0; i < ni; i++) {
        const SparseRow found = row(i0 + i);
        float* to = recons + i * d;
        std::fill_n(to, d, 0.0f);
        for (size_t j = 0; j < found.size(); j++) {
            to[found.columns[j]] = found.values[j];
        }
    }
}

size_t IndexSparseKernel::remove_ids(const faiss::IDSelector& sel) {
    check_not_mapped(is_mapped(), "IndexSparseKernel::remove_ids");
    std::vector<bool> selected(ntotal); // asked before any change
    for (idx_t place = 0; place < ntotal; place++) {
        selected[place] = sel.is_member(place);
    }
    idx_t kept = 0;
    for (idx_t place = 0; place < ntotal; place++) {
        const Place at = places[place];
        if (selected[place]) {
            segments[at.segment]->remove(at.row);
        } else {
            segments[at.segment]->set_place(at.row, kept);
            places[kept++] = at;
        }
    }
    const size_t removed = ntotal - kept;
    places.resize(kept);
    ntotal = kept;
    free_removed();
    return removed;
}

void IndexSparseKernel::move(const PlaceMoves& moves) {
    moves.for_removed([&](idx_t place) {
        const Place at = places[place];
        segments[at.segment]->remove(at.row);
    });
    for (const auto [from, to] : moves.moves) {
        const Place at = places[to] = places[from];
        segments[at.segment]->set_place(at.row, to);
    }
    places.resize(moves.after);
    ntotal = moves.after;
    free_removed();
}

/// Frees removed vectors at the end, and copies the vectors of segments that
/// are removed for the most part.
void IndexSparseKernel::free_removed() {
    while (!segments.empty() && segments.back()->free_last() == 0) {
        segments.pop_back();
    }
    for (size_t s = 0; s < segments.size(); s++) {
        const SparseSegment& old = *segments[s];
        if (2 * old.num_removed() <= old.size() || old.num_removed() < 64) {
            continue;
        }
        auto fresh = std::make_unique<SparseSegment>();
        for (size_t i = 0; i < old.size(); i++) {
            if (old.place(i) != SparseSegment::removed) {
                fresh->append(old.row(i), old.place(i));
            }
        }
        for (size_t i = 0; i < fresh->size(); i++) {
            places[fresh->place(i)] = {uint32_t(s), uint16_t(i)};
        }
        segments[s] = std::move(fresh);
    }
}

void IndexSparseKernel::reset() {
    segments.clear();
    places.clear();
    ntotal = 0;
}

void IndexSparseKernel::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_before_merge(*this, other);
    check_not_itself(&other == this);
    const auto* source = dynamic_cast<const IndexSparseKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_FMT(
            source,
            "cannot merge: expected another IndexSparseKernel, got %s",
            AnyIndex(other).class_name().c_str());
    const std::string mine = kernel->description(),
                      others = source->kernel->description();
    FAISS_EXT_THROW_IF_NOT_FMT(
            d == other.d && metric_type == other.metric_type && mine == others,
            "cannot merge: one index has %d dimensions, %s and %s, the other %d, %s and %s",
            d,
            mine.c_str(),
            metric_name(metric_type).c_str(),
            other.d,
            others.c_str(),
            metric_name(other.metric_type).c_str());
}

void IndexSparseKernel::merge_from(faiss::Index& other, idx_t add_id) {
    check_not_mapped(is_mapped(), "IndexSparseKernel::merge_from");
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexSparseKernel&>(other);
    AppendedRows rows;
    for (idx_t i = 0; i < source.ntotal; i++) {
        rows.append(source.row(i));
    }
    std::vector<int64_t> indptr;
    add(rows.vectors(d, indptr));
    source.reset();
}

void IndexSparseKernel::permute_entries(const idx_t* perm) {
    check_not_mapped(is_mapped(), "IndexSparseKernel::permute_entries");
    check_permutation(ntotal, perm, "IndexSparseKernel::permute_entries");
    std::vector<Place> permuted(ntotal);
    for (idx_t i = 0; i < ntotal; i++) {
        permuted[i] = places[perm[i]];
    }
    places.swap(permuted);
    for (idx_t i = 0; i < ntotal; i++) {
        segments[places[i].segment]->set_place(places[i].row, i);
    }
}

namespace {

[[noreturn]] void throw_no_code(const char* method) {
    throw_unsupported(
            "IndexSparseKernel",
            method,
            "use IndexFlatKernel, which stores dense vectors");
}

} // namespace

IndexFlatKernel::Rows IndexSparseKernel::rows(const char*) const {
    throw_no_code("rows");
}

size_t IndexSparseKernel::sa_code_size() const {
    throw_no_code("sa_code_size");
}

void IndexSparseKernel::sa_encode(idx_t, const float*, uint8_t*) const {
    throw_no_code("sa_encode");
}

void IndexSparseKernel::sa_decode(idx_t, const uint8_t*, float*) const {
    throw_no_code("sa_decode");
}

void IndexSparseKernel::add_sa_codes(idx_t, const uint8_t*, const idx_t*) {
    throw_no_code("add_sa_codes");
}

faiss::FlatCodesDistanceComputer* IndexSparseKernel::
        get_FlatCodesDistanceComputer() const {
    throw_no_code("get_distance_computer");
}

} // namespace faiss_ext
