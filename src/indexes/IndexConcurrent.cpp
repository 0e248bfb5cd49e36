// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexConcurrent.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/fair_lock.h"
#include "core/parallel.h"
#include "indexes/index_parts.h"
#include "indexes/index_steps.h"
#include "indexes/range_result.h"
#include "indexes/supported_calls.h"

namespace faiss_ext {

namespace {

/// Numbers of type component_t in a vector.
size_t width(const faiss::Index& index) {
    return index.d;
}

size_t width(const faiss::IndexBinary& index) {
    return index.code_size;
}

/// Whether to pass n vectors to an index. Some of FAISS's indexes fail if n is
/// 0. This library's indexes check whether they are trained.
bool takes(const AnyIndex& index, idx_t n) {
    return n != 0 || !type_name(index.type()).starts_with("faiss::");
}

template <class IndexT, class Component, class Distance>
void search_with_vectors(
        const IndexT& index,
        idx_t n,
        const Component* x,
        idx_t k,
        Distance* distances,
        idx_t* labels,
        Component* recons,
        const faiss::SearchParameters* params) {
    if constexpr (std::is_same_v<IndexT, faiss::IndexBinary>) {
        // FAISS's method writes d bytes for each code of d bits
        if (!dynamic_cast<const IndexBinaryIVFSIMD*>(&index)) {
            index.search(n, x, k, distances, labels, params);
            const size_t size = index.code_size;
            for (idx_t i = 0; i < n * k; i++) {
                if (labels[i] < 0) {
                    std::fill_n(recons + i * size, size, 255);
                } else {
                    index.reconstruct(labels[i], recons + i * size);
                }
            }
            return;
        }
    }
    index.search_and_reconstruct(n, x, k, distances, labels, recons, params);
}

/// Steps on two indexes, in an order that is the same for all threads.
template <class Step, class IndexT>
struct TwoSteps {
    Step first, second;

    TwoSteps(const IndexT& a, const IndexT& b)
            : first(std::less<>()(&a, &b) ? a : b),
              second(std::less<>()(&a, &b) ? b : a) {}
};

} // namespace

// Steps.

thread_local const IndexStep* IndexStep::innermost = nullptr;

IndexStep::IndexStep(const AnyIndex& index, Kind kind) : kind(kind) {
    FairLock* own = nullptr;
    if (const auto* floats = index.as<IndexConcurrent>()) {
        own = floats->lock.get();
    } else if (const auto* codes = index.as<IndexBinaryConcurrent>()) {
        own = codes->lock.get();
    }
    if (!own) {
        return;
    }
    for (const IndexStep* step = innermost; step; step = step->outer) {
        if (step->lock == own) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    kind != Kind::change || step->kind == Kind::change,
                    "%s: a call that reads the index cannot change it; a kernel, selector or progress function must not call the index that is calling it",
                    index.class_name().c_str());
            return;
        }
    }
    switch (kind) {
        case Kind::read:
            own->lock_shared();
            break;
        case Kind::long_read:
            own->lock_shared_for_long();
            break;
        case Kind::change:
            own->lock();
            break;
    }
    lock = own;
    outer = std::exchange(innermost, this);
}

IndexStep::~IndexStep() {
    if (!lock) {
        return;
    }
    innermost = outer;
    switch (kind) {
        case Kind::read:
            lock->unlock_shared();
            break;
        case Kind::long_read:
            lock->unlock_shared_for_long();
            break;
        case Kind::change:
            lock->unlock();
            break;
    }
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::change(
        const std::function<void(IndexT&)>& f) {
    const ChangingStep step(*this);
    const auto synchronize = [](IndexConcurrentTemplate* own) {
        own->ntotal = own->index->ntotal;
        own->is_trained = own->index->is_trained;
    };
    const std::unique_ptr<IndexConcurrentTemplate, decltype(synchronize)> end(
            this, synchronize); // also after an error
    f(*index);
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::read_in_steps(
        idx_t n,
        const std::function<void(idx_t, idx_t)>& f) const {
    using Clock = std::chrono::steady_clock;
    using std::chrono::microseconds;
    // several queries share the reading of vectors, and each thread needs one
    const idx_t least = std::max(8, omp_get_max_threads()), most = 1 << 20;
    idx_t begin = 0;
    do { // once for no queries: the index inside checks its arguments
        check_interrupt();
        const idx_t size = std::max(least, queries_in_step.load());
        const idx_t end = begin + std::min(size, n - begin);
        Clock::duration time;
        {
            const ReadingStep step(*this);
            const auto start = Clock::now();
            with_numbers_from(begin, [&] { f(begin, end); });
            time = Clock::now() - start;
        }
        if (time > microseconds(2000)) {
            queries_in_step = size / 2;
        } else if (time < microseconds(500) && end - begin == size) {
            queries_in_step = std::min(most, 2 * size);
        }
        begin = end;
    } while (begin < n);
}

// Construction.

template <class IndexT>
IndexConcurrentTemplate<IndexT>::IndexConcurrentTemplate()
        : lock(std::make_unique<FairLock>()) {}

template <class IndexT>
IndexConcurrentTemplate<IndexT>::IndexConcurrentTemplate(IndexT* index)
        : IndexConcurrentTemplate() {
    FAISS_EXT_THROW_IF_NOT_MSG(index, "IndexConcurrent: the index is null");
    FAISS_EXT_THROW_IF_NOT_MSG(
            !dynamic_cast<IndexConcurrentTemplate*>(index),
            "IndexConcurrent: the index inside is an IndexConcurrent, too; one is enough");
    static_cast<IndexT&>(*this) = *index; // dimension, metric and counts
    this->index = index;
}

template <class IndexT>
IndexConcurrentTemplate<IndexT>::~IndexConcurrentTemplate() {
    if (own_fields) {
        delete index;
    }
}

// Changes.

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::train(idx_t n, const component_t* x) {
    change([&](IndexT& inside) { inside.train(n, x); });
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::add(idx_t n, const component_t* x) {
    change([&](IndexT& inside) {
        if (takes(inside, n)) {
            check_addition(inside, n, "IndexConcurrent::add");
            inside.add(n, x);
        }
    });
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::add_with_ids(
        idx_t n,
        const component_t* x,
        const idx_t* xids) {
    change([&](IndexT& inside) {
        if (takes(inside, n)) {
            check_addition(inside, n, "IndexConcurrent::add_with_ids");
            inside.add_with_ids(n, x, xids);
        }
    });
}

#if FAISS_EXT_HAS_ADD_SA_CODES
template <class IndexT>
void IndexConcurrentTemplate<IndexT>::add_sa_codes(
        idx_t n,
        const uint8_t* codes,
        const idx_t* xids) {
    change([&](IndexT& inside) { inside.add_sa_codes(n, codes, xids); });
}
#endif

template <class IndexT>
size_t IndexConcurrentTemplate<IndexT>::remove_ids(
        const faiss::IDSelector& sel) {
    size_t removed = 0;
    change([&](IndexT& inside) {
        check_removal(inside, sel, "IndexConcurrent::remove_ids");
        removed = inside.remove_ids(sel);
    });
    return removed;
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::reset() {
    change([](IndexT& inside) {
        check_lists_not_mapped(inside, "IndexConcurrent::reset");
        inside.reset();
    });
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::merge_from(IndexT& other, idx_t add_id) {
    const TwoSteps<ChangingStep, IndexT> steps(*this, other);
    change([&](IndexT& inside) {
        if (auto* shared = dynamic_cast<IndexConcurrentTemplate*>(&other)) {
            shared->change([&](IndexT& from) {
                merge_and_empty(inside, from, add_id);
            });
        } else {
            merge_and_empty(inside, other, add_id);
        }
    });
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::check_compatible_for_merge(
        const IndexT& other) const {
    const TwoSteps<ReadingStep, IndexT> steps(*this, other);
    const auto* shared = dynamic_cast<const IndexConcurrentTemplate*>(&other);
    check_merge(*index, shared ? *shared->index : other);
}

// Reading.

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::search(
        idx_t n,
        const component_t* x,
        idx_t k,
        distance_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    read_in_steps(n, [&](idx_t begin, idx_t end) {
        index->search(
                end - begin,
                x + begin * width(*this),
                k,
                distances + begin * k,
                labels + begin * k,
                params);
    });
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::range_search(
        idx_t n,
        const component_t* x,
        distance_t radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    std::vector<std::unique_ptr<faiss::RangeSearchResult>> parts;
    read_in_steps(n, [&](idx_t begin, idx_t end) {
        parts.push_back(std::make_unique<faiss::RangeSearchResult>(
                std::max<idx_t>(end - begin, 0)));
        index->range_search(
                end - begin,
                x + begin * width(*this),
                radius,
                parts.back().get(),
                params);
    });
    join_results(parts, result);
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::search_and_reconstruct(
        idx_t n,
        const component_t* x,
        idx_t k,
        distance_t* distances,
        idx_t* labels,
        component_t* recons,
        const faiss::SearchParameters* params) const {
    read_in_steps(n, [&](idx_t begin, idx_t end) {
        search_with_vectors(
                *index,
                end - begin,
                x + begin * width(*this),
                k,
                distances + begin * k,
                labels + begin * k,
                recons + begin * k * width(*this),
                params);
    });
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::reconstruct(
        idx_t key,
        component_t* recons) const {
    const ReadingStep step(*this);
    index->reconstruct(key, recons);
}

template <class IndexT>
void IndexConcurrentTemplate<IndexT>::reconstruct_n(
        idx_t i0,
        idx_t ni,
        component_t* recons) const {
    const ReadingStep step(*this);
    index->reconstruct_n(i0, ni, recons);
}

// The calls of float indexes.

namespace internal {

namespace {

const faiss::Index& inside(const FloatCalls<faiss::Index>& calls) {
    return *static_cast<const IndexConcurrent&>(calls).index;
}

} // namespace

void FloatCalls<faiss::Index>::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* recons) const {
    const ReadingStep step(*this);
    inside(*this).reconstruct_batch(n, keys, recons);
}

faiss::DistanceComputer* FloatCalls<faiss::Index>::get_distance_computer()
        const {
    throw_unsupported(
            "IndexConcurrent",
            "get_distance_computer",
            "its result would point to vectors that other threads move");
}

size_t FloatCalls<faiss::Index>::sa_code_size() const {
    const ReadingStep step(*this);
    return inside(*this).sa_code_size();
}

void FloatCalls<faiss::Index>::sa_encode(
        idx_t n,
        const float* x,
        uint8_t* bytes) const {
    const ReadingStep step(*this);
    inside(*this).sa_encode(n, x, bytes);
}

void FloatCalls<faiss::Index>::sa_decode(
        idx_t n,
        const uint8_t* bytes,
        float* x) const {
    const ReadingStep step(*this);
    inside(*this).sa_decode(n, bytes, x);
}

#if FAISS_EXT_HAS_SEARCH1
void FloatCalls<faiss::Index>::search1(
        const float* x,
        faiss::ResultHandler& handler,
        faiss::SearchParameters* params) const {
    const ReadingStep step(*this);
    inside(*this).search1(x, handler, params);
}

void FloatCalls<faiss::Index>::search_subset(
        idx_t n,
        const float* x,
        idx_t k_base,
        const idx_t* base_labels,
        idx_t k,
        float* distances,
        idx_t* labels) const {
    const ReadingStep step(*this);
    inside(*this).search_subset(
            n, x, k_base, base_labels, k, distances, labels);
}
#endif

} // namespace internal

template struct IndexConcurrentTemplate<faiss::Index>;
template struct IndexConcurrentTemplate<faiss::IndexBinary>;

} // namespace faiss_ext
