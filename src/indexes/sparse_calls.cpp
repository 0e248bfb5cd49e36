// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/sparse_calls.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/index_ids.h>

#include "core/errors.h"
#include "indexes/SparseLists.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/supported_calls.h"
#include "indexes/translated_params.h"

namespace faiss_ext {

namespace {

using HasTable = HasIds<faiss::Index>;
using Positions = IndexPositions<faiss::Index>;
using Order = std::vector<idx_t>;

[[noreturn]] void throw_not_sparse(
        const faiss::Index& index,
        const char* method) {
    throw UnsupportedError(
            AnyIndex(index).class_name() + "::" + method +
            ": the index takes no sparse vectors; KFlat(...,store=sparse) does, and so do indexes behind a hash or a map of this library, with store=sparse in Refine(KFlat(...)); FAISS's own transformations, such as PCA, take none");
}

/// The table of ids of an index, which may be the index itself; or null.
const IndexIDTable* table_of(const faiss::Index& index) {
    if (const auto* table = dynamic_cast<const IndexIDTable*>(&index)) {
        return table;
    }
    const auto* own = dynamic_cast<const HasTable*>(&index);
    return own ? own->id_table() : nullptr;
}

/// An index that takes sparse vectors, by positions: the given one, or the one
/// that the positions of a table belong to.
struct SparsePart {
    const faiss::Index& index;
    SparseInput& input;
    InsideStep<faiss::Index> inside;

    SparsePart(const faiss::Index& given, const char* method)
            : index(owner_of(given)),
              input(checked(index, method)),
              inside(&index) {}

    static const faiss::Index& owner_of(const faiss::Index& index) {
        const auto* positions = dynamic_cast<const Positions*>(&index);
        return positions ? *positions->owner : index;
    }

   private:
    static SparseInput& checked(const faiss::Index& index, const char* method) {
        const auto* input = dynamic_cast<const SparseInput*>(&index);
        if (!input || !input->takes_sparse()) {
            throw_not_sparse(index, method);
        }
        return const_cast<SparseInput&>(*input);
    }
};

/// Adds vectors by positions.
void append(faiss::Index& index, const SparseVectors& x, const char* method) {
    const SparsePart part(index, method);
    part.input.add_batch(x);
    index.ntotal = part.index.ntotal;
}

/// Calls f with the table of the ids of an index that has or can have one.
template <class F>
void change(faiss::Index& index, idx_t n, const char* method, F&& f) {
    if (auto* shared = dynamic_cast<IndexConcurrent*>(&index)) {
        shared->change(
                [&](faiss::Index& inside) { change(inside, n, method, f); });
        return;
    }
    check_all_counts(index);
    auto* own = dynamic_cast<HasTable*>(&index);
    if (auto* table = dynamic_cast<IndexIDTable*>(&index)) {
        f(*table);
    } else if (!own || !own->change([&](IndexIDTable& table) {
                   f(table);
                   return n > 0;
               })) {
        throw_not_sparse(index, method);
    }
}

idx_t replace(
        faiss::Index& index,
        const SparseVectors& x,
        const idx_t* ids,
        const char* method,
        bool adds) {
    idx_t replaced = 0;
    change(index, x.n, method, [&](IndexIDTable& table) {
        const CanonicalVectors canonical(x, method);
        const auto add = [&](faiss::Index& inside, const Order& order) {
            AppendedRows rows;
            for (const idx_t i : order) {
                rows.append(SparseRow::of(canonical.get(), i));
            }
            std::vector<int64_t> indptr;
            append(inside, rows.vectors(x.d, indptr), method);
        };
        replaced = table.change_by(x.n, ids, method, adds, add);
    });
    return replaced;
}

/// The parameters of a search behind a table of ids.
TranslatedParams params_inside(
        const IndexIDTable& table,
        const faiss::SearchParameters* params,
        const char* method) {
    check_all_counts(table);
    check_params_for(*table.index, params, method);
    check_params_supported(*table.index, params, method);
    return TranslatedParams(table, params);
}

} // namespace

bool takes_sparse(const faiss::Index& index) {
    if (const auto* shared = dynamic_cast<const IndexConcurrent*>(&index)) {
        return takes_sparse(*shared->index);
    }
    if (const auto* table = dynamic_cast<const IndexIDTable*>(&index)) {
        return takes_sparse(*table->index);
    }
    const auto* input =
            dynamic_cast<const SparseInput*>(&SparsePart::owner_of(index));
    return input && input->takes_sparse();
}

void check_takes_sparse(const faiss::Index& index, const char* method) {
    if (!takes_sparse(index)) {
        throw_not_sparse(index, method);
    }
}

void train(faiss::Index& index, const SparseVectors& x) {
    if (auto* shared = dynamic_cast<IndexConcurrent*>(&index)) {
        shared->change([&](faiss::Index& inside) { train(inside, x); });
    } else if (auto* table = dynamic_cast<IndexIDTable*>(&index)) {
        train(*table->index, x);
        table->is_trained = table->index->is_trained;
    } else {
        SparsePart(index, "train").input.train_batch(x);
    }
}

void add(faiss::Index& index, const SparseVectors& x, const idx_t* ids) {
    if (auto* shared = dynamic_cast<IndexConcurrent*>(&index)) {
        shared->change([&](faiss::Index& inside) { add(inside, x, ids); });
        return;
    }
    const char* method = ids ? "add_with_ids" : "add";
    check_takes_sparse(index, method);
    if (ids || table_of(index)) {
        change(index, x.n, method, [&](IndexIDTable& table) {
            table.add_by(x.n, ids, method, [&](faiss::Index& inside) {
                append(inside, x, method);
            });
        });
    } else {
        append(index, x, method);
    }
}

void search(
        const faiss::Index& index,
        const SparseVectors& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    if (const auto* shared = dynamic_cast<const IndexConcurrent*>(&index)) {
        shared->read_in_steps(x.n, [&](idx_t begin, idx_t end) {
            search(*shared->index,
                   x.slice(begin, end),
                   k,
                   distances + begin * k,
                   labels + begin * k,
                   params);
        });
        return;
    }
    if (const IndexIDTable* table = table_of(index)) {
        const auto inside = params_inside(*table, params, "search");
        search(*table->index, x, k, distances, labels, inside.get());
        table->to_ids(x.n * k, labels);
        return;
    }
    SparsePart(index, "search")
            .input.search_batch(x, k, distances, labels, params);
}

void range_search(
        const faiss::Index& index,
        const SparseVectors& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) {
    if (const auto* shared = dynamic_cast<const IndexConcurrent*>(&index)) {
        std::vector<std::unique_ptr<faiss::RangeSearchResult>> parts;
        shared->read_in_steps(x.n, [&](idx_t begin, idx_t end) {
            auto part = std::make_unique<faiss::RangeSearchResult>(end - begin);
            range_search(
                    *shared->index,
                    x.slice(begin, end),
                    radius,
                    part.get(),
                    params);
            parts.push_back(std::move(part));
        });
        join_results(parts, result);
        return;
    }
    if (const IndexIDTable* table = table_of(index)) {
        const auto inside = params_inside(*table, params, "range_search");
        range_search(*table->index, x, radius, result, inside.get());
        table->to_ids(idx_t(result->lims[result->nq]), result->labels);
        return;
    }
    SparsePart(index, "range_search")
            .input.range_search_batch(x, radius, result, params);
}

void search_and_reconstruct(
        const faiss::Index& index,
        const SparseVectors& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) {
    if (const auto* shared = dynamic_cast<const IndexConcurrent*>(&index)) {
        shared->read_in_steps(x.n, [&](idx_t begin, idx_t end) {
            search_and_reconstruct(
                    *shared->index,
                    x.slice(begin, end),
                    k,
                    distances + begin * k,
                    labels + begin * k,
                    recons + begin * k * index.d,
                    params);
        });
        return;
    }
    search(index, x, k, distances, labels, params);
    for (idx_t i = 0; i < x.n * k; i++) {
        float* to = recons + i * index.d;
        if (labels[i] == -1) {
            std::fill_n(to, index.d, std::numeric_limits<float>::quiet_NaN());
        } else {
            index.reconstruct(labels[i], to);
        }
    }
}

void search_scores(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* scores,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    const InsideStep<faiss::Index> inside(&index);
    if (const IndexIDTable* table = table_of(index)) {
        const TranslatedParams translated(*table, params);
        index.search_scores(x, k, scores, labels, translated.get());
        table->to_ids(x.n * k, labels);
    } else {
        index.search_scores(x, k, scores, labels, params);
    }
}

namespace {

/// Calls compute(labels) with the positions of ids.
template <class F>
void by_position(
        const IndexSparseKernel& index,
        idx_t n,
        const idx_t* labels,
        F&& compute) {
    const InsideStep<faiss::Index> inside(&index);
    const IndexIDTable* table = table_of(index);
    std::vector<idx_t> positions(table ? n : 0);
    if (table) {
        table->to_positions(n, labels, positions.data());
    }
    compute(table ? positions.data() : labels);
}

} // namespace

void compute_distance_subset(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* distances,
        const idx_t* labels) {
    by_position(index, x.n * k, labels, [&](const idx_t* at) {
        index.compute_distance_subset(x, k, distances, at);
    });
}

void compute_kernel_subset(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* values,
        const idx_t* labels) {
    by_position(index, x.n * k, labels, [&](const idx_t* at) {
        index.compute_kernel_subset(x, k, values, at);
    });
}

void compute_score_subset(
        const IndexSparseKernel& index,
        const SparseVectors& x,
        idx_t k,
        float* scores,
        const idx_t* labels) {
    by_position(index, x.n * k, labels, [&](const idx_t* at) {
        index.compute_score_subset(x, k, scores, at);
    });
}

void update_vectors(
        faiss::Index& index,
        const SparseVectors& x,
        const idx_t* ids) {
    replace(index, x, ids, "update_vectors", false);
}

idx_t upsert(faiss::Index& index, const SparseVectors& x, const idx_t* ids) {
    return replace(index, x, ids, "upsert", true);
}

} // namespace faiss_ext
