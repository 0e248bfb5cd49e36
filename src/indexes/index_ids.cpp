// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/index_ids.h>

#include <algorithm>

#include <faiss_ext/indexes/IndexConcurrent.h>

#include "core/errors.h"
#include "core/parallel.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_steps.h"

namespace faiss_ext {

namespace {

/// Calls f with the table of the ids of an index, which may be the index
/// itself.
template <class IndexT, class F>
void change(IndexT& index, idx_t n, const char* method, F&& f) {
    using Table = IndexIDTableTemplate<IndexT>;
    if (auto* shared = dynamic_cast<IndexConcurrentTemplate<IndexT>*>(&index)) {
        shared->change([&](IndexT& inside) { change(inside, n, method, f); });
        return;
    }
    check_all_counts(index);
    check_lists_not_mapped(
            index, (AnyIndex(index).class_name() + "::" + method).c_str());
    const auto call = [&](Table& table) {
        f(table);
        return n > 0;
    };
    auto* own = dynamic_cast<HasIds<IndexT>*>(&index);
    if (auto* table = dynamic_cast<Table*>(&index)) {
        f(*table);
    } else if (!own || !own->change(call)) {
        throw UnsupportedError(
                AnyIndex(index).class_name() + "::" + method +
                (has_unmovable_lists(index)
                         ? ": FAISS cannot replace vectors in lists of this class; build the index again, or use IVF,PQ or KIVF"
                         : ": the index has no table of ids; put an IndexIDTable around it, or IDMap at the beginning of its string"));
    }
}

template <class IndexT, class X>
void update_in(IndexT& index, idx_t n, const idx_t* ids, const X* x) {
    change(index, n, "update_vectors", [&](auto& table) {
        table.update_vectors(n, ids, x);
    });
}

template <class IndexT, class X>
idx_t upsert_to(IndexT& index, idx_t n, const X* x, const idx_t* ids) {
    idx_t replaced = 0;
    change(index, n, "upsert", [&](auto& table) {
        replaced = table.upsert(n, x, ids);
    });
    return replaced;
}

} // namespace

void update_vectors(
        faiss::Index& index,
        idx_t n,
        const idx_t* ids,
        const float* x) {
    update_in(index, n, ids, x);
}

void update_vectors(
        faiss::IndexBinary& index,
        idx_t n,
        const idx_t* ids,
        const uint8_t* codes) {
    update_in(index, n, ids, codes);
}

idx_t upsert(faiss::Index& index, idx_t n, const float* x, const idx_t* ids) {
    return upsert_to(index, n, x, ids);
}

idx_t upsert(
        faiss::IndexBinary& index,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids) {
    return upsert_to(index, n, codes, ids);
}

bool has_id_table(const AnyIndex& index) {
    return bool(id_table_of(index));
}

void contains(const AnyIndex& index, idx_t n, const idx_t* ids, bool* found) {
    const ReadingStep step(index);
    check_all_counts(index);
    const AnyIndex own = id_table_of(index);
    const AnyIndex& table = own ? own : index;
    if (const auto* floats = table.as<IndexIDTable>()) {
        floats->contains(n, ids, found);
    } else if (const auto* codes = table.as<IndexBinaryIDTable>()) {
        codes->contains(n, ids, found);
    } else if (const auto parts = parts_of(index); parts.size() == 1 &&
               parts[0].answers && !parts[0].by_position && parts[0].index) {
        contains(parts[0].index, n, ids, found);
    } else {
        const std::vector<bool> holds = holds_ids(index, {ids, ids + n});
        std::copy(holds.begin(), holds.end(), found);
    }
}

void reconstruct_batch(
        const faiss::Index& index,
        idx_t n,
        const idx_t* ids,
        float* recons) {
    const ReadingStep step(index);
    try {
        index.reconstruct_batch(n, ids, recons);
    } catch (const faiss::FaissException&) {
        // FAISS's parallel loop has kept only the text of an error
        for (idx_t i = 0; i < n; i++) {
            index.reconstruct(ids[i], recons + i * index.d);
        }
        throw;
    }
}

void reconstruct_batch(
        const faiss::IndexBinary& index,
        idx_t n,
        const idx_t* ids,
        uint8_t* recons) {
    const ReadingStep step(index);
    for (idx_t i = 0; i < n; i++) {
        check_interrupt();
        index.reconstruct(ids[i], recons + i * index.code_size);
    }
}

} // namespace faiss_ext
