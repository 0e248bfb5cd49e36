// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexFlatKernel.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "core/cache_sizes.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "core/huge_pages.h"
#include "core/parallel.h"
#include "core/prefetch.h"
#include "indexes/blocked_scan.h"
#include "indexes/gathered_rows.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/row_codec.h"
#include "indexes/row_scores.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"
#include "indexes/subset_scores.h"
#include "simd/selection.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

/// Queries that are compared with the same vectors. Each vector is loaded once
/// for all of them.
constexpr idx_t least_queries = 16, most_queries = 256;

/// minimum number of vectors in a slice; scattered ones take longer
constexpr idx_t least_vectors = 4096, least_places = 1024;

/// Returns the largest block of queries that still gives all threads work.
idx_t query_block(idx_t n, idx_t nslices) {
    const idx_t tasks = 2 * omp_get_max_threads();
    const idx_t nblocks = std::max<idx_t>(
            (tasks + nslices - 1) / nslices,
            (n + most_queries - 1) / most_queries);
    return std::clamp((n + nblocks - 1) / nblocks, least_queries, most_queries);
}

/// Vectors of each slice that all blocks of queries scan before the next ones.
idx_t vectors_in_turn(idx_t block) {
    return std::clamp<idx_t>(cache::pairs_in_turn / block, 2048, 32768);
}

/// Vectors that stay in the second-level cache while they are compared with a
/// block of queries.
idx_t vectors_per_block(int d) {
    return std::clamp(int(cache::half_l2) / d, 16, 1024);
}

/// Vectors to compare queries with.
struct ScannedRows {
    StoredRows stored;
    idx_t count;
    const idx_t* places = nullptr; ///< of size count; null: 0 to count - 1

    idx_t place(idx_t i) const {
        return places ? places[i] : i;
    }

    void decode(idx_t i, idx_t n, float* rows) const {
        if (!places) {
            stored.decode(i, n, rows);
            return;
        }
        const size_t code_size = stored.codec.code_size();
        const idx_t ahead = std::clamp<idx_t>(16384 / code_size, 4, 32);
        const idx_t end = i + n;
        for (idx_t j = i; j < std::min(i + ahead, end); j++) {
            prefetch_row(stored.row(places[j]), code_size);
        }
        for (; i < end; i++, rows += stored.codec.d) {
            if (i + ahead < end) {
                prefetch_row(stored.row(places[i + ahead]), code_size);
            }
            stored.decode(places[i], rows);
        }
    }
};

/// Compares a block of queries with the vectors [j0, j1). Calls
/// fn(query, j, n, scores) with the scores of a query and n vectors from the
/// j-th on, in order for each query.
template <class F>
void scan(
        const IndexFlatKernel& index,
        const ScannedRows& scanned,
        idx_t n,
        const float* x,
        idx_t j0,
        idx_t j1,
        F&& fn) {
    const idx_t step = std::min(vectors_per_block(index.d), j1 - j0);
    const Scratch scores(n * step);
    // with many queries, aligned copies in the cache are faster
    const float* floats = n < least_queries && !scanned.places
            ? scanned.stored.floats()
            : nullptr;
    const Scratch rows(floats ? 0 : step * index.d);
    for (idx_t j = j0; j < j1; j += step) {
        const idx_t m = std::min(step, j1 - j);
        const float* y = floats ? floats + j * index.d : rows.get();
        if (!floats) {
            scanned.decode(j, m, rows.get());
        }
        index.kernel->score_block(
                index.metric_type, n, x, m, y, index.d, scores.get());
        for (idx_t i = 0; i < n; i++) {
            fn(i, j, m, scores.get() + i * m);
        }
    }
}

bool is_selected(const faiss::IDSelector* sel, idx_t id) {
    return !sel || sel->is_member(id);
}

/// Searches for a group of queries whose results fit into memory.
void search_group(
        const IndexFlatKernel& index,
        const ScannedRows& scanned,
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::IDSelector* sel) {
    const idx_t count = scanned.count;
    const idx_t least = scanned.places ? least_places : least_vectors;
    const idx_t block = query_block(n, count / least + 1);
    const BlockedScan blocks(n, count, block, 2, least);
    const idx_t chunk = vectors_in_turn(block) * blocks.nslices;
    std::vector<TopK<float>> best(
            n * blocks.nslices,
            TopK(std::min(k, count), std::numeric_limits<float>::infinity()));
    for (idx_t j = 0; j < count; j += chunk) {
        blocks.run(
                j,
                std::min(j + chunk, count),
                [&](idx_t i0, idx_t ni, idx_t slice, idx_t begin, idx_t end) {
                    scan(index,
                         scanned,
                         ni,
                         x + i0 * index.d,
                         begin,
                         end,
                         [&](idx_t i, idx_t id, idx_t m, const float* found) {
                             best[(i0 + i) * blocks.nslices + slice].push_block(
                                     id, m, found, [sel](idx_t id) {
                                         return is_selected(sel, id);
                                     });
                         });
                });
    }

    parallel_blocks(n, 16, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            auto all = smallest_of<float>(
                    {&best[i * blocks.nslices], size_t(blocks.nslices)}, k);
            all.resize(k, {worst_score, -1});
            for (idx_t j = 0; j < k; j++) {
                const auto [score, at] = all[j];
                scores[i * k + j] = score;
                labels[i * k + j] = at < 0 ? -1 : scanned.place(at);
            }
        }
    });
}

/// Computes a block of distances or kernel values.
void compare_block(
        const Kernel& kernel,
        faiss::MetricType metric,
        size_t n,
        const float* x,
        size_t m,
        const float* y,
        size_t d,
        float* out) {
    if (metric == faiss::METRIC_L2) {
        kernel.distance_block(n, x, m, y, d, out);
    } else {
        kernel.block(n, x, m, y, d, out);
    }
}

/// FAISS calls these functions from parallel loops, which exceptions cannot
/// leave.
struct KernelDistances : faiss::FlatCodesDistanceComputer {
    const Kernel& kernel;
    const StoredRows stored;
    KernelExceptions& exceptions;
    faiss::MetricType metric;
    size_t d, size;
    const float* query = nullptr;

    KernelDistances(
            const IndexFlatKernel& index,
            const StoredRows& stored,
            size_t size)
            : FlatCodesDistanceComputer(stored.data, stored.stride),
              kernel(*index.kernel),
              stored(stored),
              exceptions(index.exceptions),
              metric(index.metric_type),
              d(index.d),
              size(size) {}

    void set_query(const float* x) override {
        query = x;
        try {
            kernel.check_input(1, x, d, "search");
        } catch (...) {
            record();
        }
    }

    float distance_to_code(const uint8_t* code) override {
        const idx_t id = (code - codes) / ptrdiff_t(code_size);
        float value;
        compare(query, 1, &id, &value);
        return value;
    }

    float symmetric_dis(idx_t i, idx_t j) override {
        float value;
        const auto compare_with_j = [&](size_t, size_t, const float* x) {
            compare(x, 1, &j, &value);
        };
        if (has(i)) {
            for_gathered_rows(stored, 1, &i, compare_with_j);
        } else {
            compare_with_j(0, 0, nullptr);
        }
        return value;
    }

   protected:
    /// Compares a vector with the n stored vectors with these ids.
    void compare(const float* x, size_t n, const idx_t* ids, float* values)
            const noexcept {
        try {
            if (failed || exceptions.has_failed()) {
                std::fill_n(values, n, worst_of(metric));
                return;
            }
            FAISS_EXT_THROW_IF_NOT_FMT(
                    x &&
                            std::all_of(
                                    ids,
                                    ids + n,
                                    [&](idx_t i) { return has(i); }),
                    "IndexFlatKernel: an id is out of range, expected ids below %zu",
                    size);
            for_gathered_rows(
                    stored,
                    n,
                    ids,
                    [&](size_t begin, size_t count, const float* y) {
                        compare_block(
                                kernel,
                                metric,
                                1,
                                x,
                                count,
                                y,
                                d,
                                values + begin);
                    });
        } catch (...) {
            record();
            std::fill_n(values, n, worst_of(metric));
        }
    }

   private:
    bool has(idx_t i) const {
        return i >= 0 && size_t(i) < size;
    }

    void record() const noexcept {
        failed = true;
        exceptions.record(std::current_exception());
    }

    /// after an exception all other pairs count as farthest, too
    mutable bool failed = false;
};

/// Adds the function with which FAISS compares four vectors at a time. It is an
/// override since 1.8.0, so the keyword cannot be written for older versions.
struct KernelDistanceComputer : KernelDistances {
    using KernelDistances::KernelDistances;

    void distances_batch_4(
            const idx_t i0,
            const idx_t i1,
            const idx_t i2,
            const idx_t i3,
            float& out0,
            float& out1,
            float& out2,
            float& out3) {
        const idx_t ids[] = {i0, i1, i2, i3};
        float values[4];
        compare(query, 4, ids, values);
        out0 = values[0];
        out1 = values[1];
        out2 = values[2];
        out3 = values[3];
    }
};

/// codec of the index's own vectors
RowCodec codec_of(const IndexFlatKernel& index) {
    return {index.store, size_t(index.d)};
}

} // namespace

IndexFlatKernel::Rows IndexFlatKernel::rows(const char* where) const {
    check_stored(ntotal, mapped ? mapped.size : codes.size(), code_size, where);
    const size_t expected = codec_of(*this).code_size();
    FAISS_EXT_THROW_IF_NOT_FMT(
            code_size == expected,
            "%s: the vectors are stored in %zu bytes, expected %zu; store and d must not be set by hand",
            where,
            code_size,
            expected);
    return {mapped ? mapped.random_access : codes.data(),
            mapped ? mapped.sequential : codes.data(),
            code_size,
            true};
}

IndexFlatKernel::IndexFlatKernel(
        int d,
        const Kernel& kernel,
        faiss::MetricType metric,
        Store store)
        : IndexFlatCodes(d * sizeof(float), d, metric),
          kernel(kernel.clone()),
          store(store) {
    init();
}

void IndexFlatKernel::parameters(FieldVisitor& v) const {
    v.part("kernel", kernel, "kernel that compares vectors");
    v.word("store",
           store,
           {"f32", "f16", "u8", "sparse", "auto", "i8"},
           "type of the stored components; sparse and auto: those other than 0");
}

void IndexFlatKernel::fields(FieldVisitor& v) const {
    parameters(v);
    v.assign(code_size, codec_of(*this).code_size());
    v.bytes("vectors", codes, mapped, ntotal * code_size);
}

void IndexFlatKernel::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
    check_metric(metric_type);
    check_fields(*this);
    FAISS_EXT_THROW_IF_NOT_MSG(
            store != Store::sparse && store != Store::automatic,
            "IndexFlatKernel stores dense vectors; IndexSparseKernel has store=sparse");
    code_size = codec_of(*this).code_size();
    is_trained = kernel->is_trained;
}

void IndexFlatKernel::restore() {
    check_restorable();
}

void IndexFlatKernel::check_restorable() const {
    FAISS_EXT_THROW_IF_NOT_MSG(
            kernel->is_trained == is_trained && d > 0,
            "the kernel and the index are inconsistent: either both or neither must be trained, and the dimension must be positive");
    check_rows(ntotal, rows("IndexFlatKernel").sequential, "IndexFlatKernel");
}

void IndexFlatKernel::check_rows(
        idx_t n,
        const uint8_t* bytes,
        const char* where) const {
    constexpr idx_t step = 1024;
    std::vector<float> decoded(std::min(step, n) * d);
    for (idx_t i = 0; i < n; i += step) {
        const idx_t m = std::min(step, n - i);
        sa_decode(m, bytes + i * code_size, decoded.data());
        with_numbers_from(
                i, [&] { kernel->check_input(m, decoded.data(), d, where); });
    }
}

void IndexFlatKernel::train(idx_t n, const float* x) {
    check_not_mapped(bool(mapped), "IndexFlatKernel::train");
    train_kernel(
            [&] { kernel->check_input(n, x, d, "IndexFlatKernel::train"); },
            [&] { kernel->train(n, x, d); });
}

void IndexFlatKernel::train_kernel(
        const std::function<void()>& check,
        const std::function<void()>& train) {
    check();
    if (!kernel->is_trained) {
        const auto before = kernel->clone();
        kernel->verbose = verbose;
        try {
            train();
            check(); // once it has a bandwidth it may refuse more
        } catch (...) {
            kernel->assign(*before);
            throw;
        }
    }
    is_trained = kernel->is_trained;
}

void IndexFlatKernel::add(idx_t n, const float* x) {
    check_trained(is_trained, "IndexFlatKernel::add");
    check_not_mapped(bool(mapped), "IndexFlatKernel::add");
    rows("IndexFlatKernel::add");
    kernel->check_input(n, x, d, "IndexFlatKernel::add");
    if (n > 0) {
        const StaysInHugePages huge(codes);
        codes.resize((ntotal + n) * code_size);
        try {
            encode(n, x, &codes[ntotal * code_size], "IndexFlatKernel::add");
        } catch (...) {
            codes.resize(ntotal * code_size);
            throw;
        }
        ntotal += n;
    }
}

void IndexFlatKernel::add_with_ids(idx_t, const float*, const idx_t*) {
    throw_unsupported(
            "IndexFlatKernel",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexFlatKernel::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_scores(n, x, k, distances, labels, params);
    values_of_scores(n, k, distances, labels);
}

void IndexFlatKernel::search_scores(
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_trained(is_trained && kernel->is_trained, "IndexFlatKernel::search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexFlatKernel::search");
    const StoredRows stored = StoredRows::of(*this, "IndexFlatKernel::search");
    check_k(k, "IndexFlatKernel::search");
    kernel->check_input(n, x, d, "IndexFlatKernel::search");
    ScannedRows scanned{stored, ntotal};
    std::vector<idx_t> places;
    if (sel) {
        // scattered vectors take up to twice as long
        Selected selected(*sel, ntotal, ntotal / 2);
        if (selected.few) {
            places = std::move(*selected.few);
            scanned = {stored, idx_t(places.size()), places.data()};
            sel = nullptr;
        }
    }
    // fewer if many neighbours of each are kept
    const idx_t group = omp_get_max_threads() *
            std::clamp<idx_t>((1 << 22) / k, 128, 2 * most_queries);
    for (idx_t i = 0; i < n; i += group) {
        search_group(
                *this,
                scanned,
                std::min(group, n - i),
                x + i * d,
                k,
                scores + i * k,
                labels + i * k,
                sel);
    }
}

void IndexFlatKernel::values_of_scores(
        idx_t n,
        idx_t k,
        float* scores,
        idx_t* labels) const {
    check_trained(
            is_trained && kernel->is_trained,
            "IndexFlatKernel::values_of_scores");
    parallel_blocks(n, 16, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            finish_results(*this, k, scores + i * k, labels + i * k);
        }
    });
}

void IndexFlatKernel::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_trained(
            is_trained && kernel->is_trained, "IndexFlatKernel::range_search");
    const StoredRows stored =
            StoredRows::of(*this, "IndexFlatKernel::range_search");
    check_radius(radius, "IndexFlatKernel::range_search");
    kernel->check_input(n, x, d, "IndexFlatKernel::range_search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexFlatKernel::range_search");
    const bool is_distance = metric_type == faiss::METRIC_L2;
    const float bound = is_distance ? radius : -radius;

    std::vector<std::vector<Hit>> found(n);
    const ScannedRows scanned{stored, ntotal};
    const idx_t block = query_block(n, 1), chunk = vectors_in_turn(block);
    for (idx_t j = 0; j < ntotal; j += chunk) {
        parallel_blocks(n, block, [&](idx_t begin, idx_t end) {
            scan(*this,
                 scanned,
                 end - begin,
                 x + begin * d,
                 j,
                 std::min(ntotal, j + chunk),
                 [&](idx_t i, idx_t id, idx_t m, float* values) {
                     kernel->values_of_scores(metric_type, m, values);
                     if (!is_distance) {
                         std::transform(
                                 values, values + m, values, std::negate<>());
                     }
                     const auto next = [&](idx_t l) {
                         return idx_t(simd::first_below(m, values, l, bound));
                     };
                     for (idx_t l = next(0); l < m; l = next(l + 1)) {
                         if (is_selected(sel, id + l)) {
                             found[begin + i].emplace_back(values[l], id + l);
                         }
                     }
                 });
        });
    }
    fill_range_result(
            found,
            result,
            [&](const Hit& hit) {
                return is_distance ? hit.first : -hit.first;
            },
            [](const Hit& hit) { return hit.second; });
}

void IndexFlatKernel::compute_distance_subset(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        const idx_t* labels) const {
    compare_subset(Subset::distances, n, x, k, distances, labels);
}

void IndexFlatKernel::compute_kernel_subset(
        idx_t n,
        const float* x,
        idx_t k,
        float* values,
        const idx_t* labels) const {
    compare_subset(Subset::kernel_values, n, x, k, values, labels);
}

void IndexFlatKernel::compute_score_subset(
        idx_t n,
        const float* x,
        idx_t k,
        float* scores,
        const idx_t* labels) const {
    compare_subset(Subset::scores, n, x, k, scores, labels);
}

void IndexFlatKernel::compare_subset(
        Subset what,
        idx_t n,
        const float* x,
        idx_t k,
        float* out,
        const idx_t* labels) const {
    const char* where = what == Subset::scores
            ? "IndexFlatKernel::compute_score_subset"
            : what == Subset::distances
            ? "IndexFlatKernel::compute_distance_subset"
            : "IndexFlatKernel::compute_kernel_subset";
    check_trained(is_trained && kernel->is_trained, where);
    const StoredRows stored = StoredRows::of(*this, where);
    check_labels(n, k, labels, ntotal, where);
    kernel->check_input(n, x, d, where);
    fill_subset(
            *this,
            what,
            n,
            k,
            out,
            labels,
            [&](faiss::MetricType metric,
                idx_t i,
                const std::vector<idx_t>& ids,
                float* found) {
                for_gathered_rows(
                        stored,
                        ids.size(),
                        ids.data(),
                        [&](size_t j, size_t count, const float* y) {
                            kernel->score_block(
                                    metric,
                                    1,
                                    x + i * d,
                                    count,
                                    y,
                                    d,
                                    &found[j]);
                        });
            });
}

void IndexFlatKernel::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    const StoredRows stored =
            StoredRows::of(*this, "IndexFlatKernel::reconstruct");
    check_ids(i0, ni, ntotal, "IndexFlatKernel::reconstruct");
    parallel_blocks(ni, 256, [&](idx_t begin, idx_t end) {
        stored.decode(i0 + begin, end - begin, recons + begin * d);
    });
}

void IndexFlatKernel::sa_encode(idx_t n, const float* x, uint8_t* bytes) const {
    kernel->check_input(n, x, d, "IndexFlatKernel::sa_encode");
    encode(n, x, bytes, "IndexFlatKernel::sa_encode");
}

void IndexFlatKernel::encode(
        idx_t n,
        const float* x,
        uint8_t* bytes,
        const char* where) const {
    codec_of(*this).encode(n, x, bytes, where);
    if (store != Store::f32) { // the kernel may refuse rounded values
        const std::string rounded = std::string(where) + ", rounded by store=" +
                (store == Store::f16          ? "f16"
                         : store == Store::u8 ? "u8"
                                              : "i8");
        check_rows(n, bytes, rounded.c_str());
    }
}

void IndexFlatKernel::sa_decode(idx_t n, const uint8_t* bytes, float* x) const {
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        codec_of(*this).decode(
                end - begin,
                bytes + begin * code_size,
                code_size,
                x + begin * d);
    });
}

faiss::FlatCodesDistanceComputer* IndexFlatKernel::
        get_FlatCodesDistanceComputer() const {
    try {
        const StoredRows stored =
                StoredRows::of(*this, "IndexFlatKernel::get_distance_computer");
        return new KernelDistanceComputer(*this, stored, ntotal);
    } catch (const faiss::FaissException&) {
        // FAISS calls this in parallel loops; search reports the error
        return new KernelDistanceComputer(
                *this, StoredRows{codec_of(*this), nullptr, nullptr, 1}, 0);
    }
}

size_t IndexFlatKernel::remove_ids(const faiss::IDSelector& sel) {
    check_not_mapped(bool(mapped), "IndexFlatKernel::remove_ids");
    rows("IndexFlatKernel::remove_ids");
    return IndexFlatCodes::remove_ids(sel);
}

void IndexFlatKernel::reset() {
    mapped = {};
    IndexFlatCodes::reset();
}

void IndexFlatKernel::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_before_merge(*this, other);
    check_not_itself(&other == this);
    FAISS_EXT_THROW_IF_NOT_FMT(
            AnyIndex(other).type() == AnyIndex(*this).type(),
            "cannot merge: expected another %s, got %s",
            AnyIndex(*this).class_name().c_str(),
            AnyIndex(other).class_name().c_str());
    const auto& source = dynamic_cast<const IndexFlatKernel&>(other);
    rows("IndexFlatKernel::merge_from");
    source.rows("IndexFlatKernel::merge_from");
    const IndexFlatKernel fresh;
    const std::string mine = fields_to_string(*this, fresh),
                      others = fields_to_string(source, fresh);
    FAISS_EXT_THROW_IF_NOT_FMT(
            d == other.d && metric_type == other.metric_type && mine == others,
            "cannot merge: one index is KFlat(%s) with %d dimensions and %s, the other KFlat(%s) with %d and %s",
            mine.c_str(),
            d,
            metric_name(metric_type).c_str(),
            others.c_str(),
            other.d,
            metric_name(other.metric_type).c_str());
}

void IndexFlatKernel::merge_from(faiss::Index& other, idx_t add_id) {
    check_not_mapped(bool(mapped), "IndexFlatKernel::merge_from");
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexFlatKernel&>(other);
    const StaysInHugePages huge(codes);
    if (!source.mapped) {
        IndexFlatCodes::merge_from(other, add_id);
        return;
    }
    codes.resize((ntotal + source.ntotal) * code_size);
    std::copy_n(
            source.mapped.sequential,
            source.mapped.size,
            &codes[ntotal * code_size]);
    ntotal += source.ntotal;
    source.reset();
}

void IndexFlatKernel::add_sa_codes(
        idx_t n,
        const uint8_t* bytes,
        const idx_t* xids) {
    constexpr const char* where = "IndexFlatKernel::add_sa_codes";
    check_trained(is_trained, where);
    check_not_mapped(bool(mapped), where);
    FAISS_EXT_THROW_IF_NOT_FMT(
            !xids,
            "%s: ids cannot be given, because they are positions; put IDMap in front",
            where);
    rows(where);
    check_rows(n, bytes, where);
    const StaysInHugePages huge(codes);
    codes.resize((ntotal + n) * code_size);
    std::copy_n(bytes, n * code_size, codes.data() + ntotal * code_size);
    ntotal += n;
}

void IndexFlatKernel::permute_entries(const idx_t* perm) {
    constexpr const char* where = "IndexFlatKernel::permute_entries";
    check_not_mapped(bool(mapped), where);
    rows(where);
    check_permutation(ntotal, perm, where);
    const StaysInHugePages huge(codes);
    auto permuted = codes;
    for (idx_t i = 0; i < ntotal; i++) {
        std::copy_n(
                &codes[perm[i] * code_size],
                code_size,
                &permuted[i * code_size]);
    }
    std::swap(codes, permuted);
}

} // namespace faiss_ext
