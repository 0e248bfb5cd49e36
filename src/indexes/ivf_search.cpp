// SPDX-License-Identifier: MIT
#include "indexes/ivf_search.h"

#include <algorithm>
#include <vector>

#include <faiss/utils/distances.h>

#include "core/slices.h"
#include "indexes/incomplete_rows.h"
#include "indexes/ivf_fields.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

/// The lists that each query visits.
struct VisitedLists {
    size_t count;               ///< of each query
    std::vector<idx_t> numbers; ///< size n * count; -1 is not visited
    std::vector<float> distances;

    /// Finds the nearest lists of each query.
    VisitedLists(
            const faiss::IndexIVF& index,
            const VectorBatch& x,
            size_t count)
            : count(count), numbers(x.n * count), distances(x.n * count) {
        index.quantizer->search(
                x.n, x.dense, idx_t(count), distances.data(), numbers.data());
    }

    /// Adds the lists that a quantizer has not found, such as a graph, for
    /// which `count` is the number of all lists.
    void add_missing(const faiss::IndexIVF& index, const VectorBatch& x) {
        if (std::find(numbers.begin(), numbers.end(), -1) == numbers.end()) {
            return;
        }
        std::vector<float> centroids(count * index.d);
        index.quantizer->reconstruct_n(0, idx_t(count), centroids.data());
        for (idx_t q = 0; q < x.n; q++) {
            idx_t* of_query = &numbers[q * count];
            std::vector<bool> is_there(count);
            for (size_t i = 0; i < count; i++) {
                if (of_query[i] >= 0) {
                    is_there[of_query[i]] = true;
                }
            }
            size_t list = 0;
            for (size_t i = 0; i < count; i++) {
                if (of_query[i] >= 0) {
                    continue;
                }
                while (is_there[list]) {
                    list++;
                }
                distances[q * count + i] = distance(
                        index,
                        x.dense + q * index.d,
                        &centroids[list * index.d]);
                of_query[i] = idx_t(list++);
            }
        }
    }

   private:
    static float distance(
            const faiss::IndexIVF& index,
            const float* x,
            const float* centroid) {
        return index.metric_type == faiss::METRIC_INNER_PRODUCT
                ? faiss::fvec_inner_product(x, centroid, index.d)
                : faiss::fvec_L2sqr(x, centroid, index.d);
    }
};

void search_lists(
        const faiss::IndexIVF& index,
        const faiss::IDSelector& sel,
        const VectorBatch& x,
        idx_t k,
        const VisitedLists& lists,
        float* distances,
        idx_t* labels) {
    if (x.n == 0) {
        return;
    }
    faiss::SearchParametersIVF params;
    params.nprobe = lists.count;
    params.sel = const_cast<faiss::IDSelector*>(&sel); // FAISS's type
    index.search_preassigned(
            x.n,
            x.dense,
            k,
            lists.numbers.data(),
            lists.distances.data(),
            distances,
            labels,
            false,
            &params);
}

/// Ranks as many lists as the queries need, and marks those that a query does
/// not visit.
VisitedLists lists_for(
        const faiss::IndexIVF& index,
        const ListsForSelected& lists,
        const VectorBatch& x) {
    for (size_t count = lists.first();; count = lists.more_than(count)) {
        VisitedLists ranked(index, x, count);
        bool are_enough = true;
        for (idx_t q = 0; are_enough && q < x.n; q++) {
            idx_t* numbers = &ranked.numbers[q * count];
            const auto visited =
                    lists.visited(count, [&](size_t i) { return numbers[i]; });
            are_enough = visited.has_value();
            std::fill(numbers + visited.value_or(count), numbers + count, -1);
        }
        if (are_enough) {
            return ranked;
        }
    }
}

} // namespace

void search_selected(
        const faiss::IndexIVF& index,
        const faiss::IDSelector& sel,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels) {
    constexpr size_t most_ranked = 1 << 22;
    const ListsForSelected lists(
            sel,
            std::min(nprobe_of(index), index.nlist),
            index.nlist,
            index.ntotal,
            [&](size_t list) { return invlists_of(index)->list_size(list); },
            [&](size_t list, size_t i) {
                return invlists_of(index)->get_single_id(list, i);
            });
    const auto batch = idx_t(std::max<size_t>(1, most_ranked / index.nlist));
    for_batches(n, batch, [&](idx_t begin, idx_t end) {
        const VectorBatch part{end - begin, x + begin * index.d, index.d};
        float* D = distances + begin * k;
        idx_t* I = labels + begin * k;
        search_lists(index, sel, part, k, lists_for(index, lists, part), D, I);
        const IncompleteRows rows(part, k, I);
        rows.search_again(D, I, [&](const VectorBatch& q, float* d, idx_t* i) {
            VisitedLists all(index, q, index.nlist);
            all.add_missing(index, q);
            search_lists(index, sel, q, k, all, d, i);
        });
    });
}

} // namespace faiss_ext
