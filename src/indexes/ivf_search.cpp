// SPDX-License-Identifier: MIT
#include "indexes/ivf_search.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/slices.h"
#include "indexes/incomplete_rows.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

/// The lists that each query visits, from the nearest on.
struct RankedLists {
    std::vector<idx_t> numbers; ///< size n * count; -1 is not visited
    std::vector<float> distances;

    RankedLists(
            const faiss::IndexIVF& index,
            idx_t n,
            const float* x,
            idx_t count)
            : numbers(n * count), distances(n * count) {
        index.quantizer->search(n, x, count, distances.data(), numbers.data());
    }
};

void search_ranked(
        const faiss::IndexIVF& index,
        const faiss::IDSelector& sel,
        const VectorBatch& x,
        idx_t k,
        const RankedLists& ranked,
        float* distances,
        idx_t* labels) {
    if (x.n == 0) {
        return;
    }
    faiss::SearchParametersIVF params;
    params.nprobe = ranked.numbers.size() / x.n;
    params.sel = const_cast<faiss::IDSelector*>(&sel); // FAISS's type
    index.search_preassigned(
            x.n,
            x.dense,
            k,
            ranked.numbers.data(),
            ranked.distances.data(),
            distances,
            labels,
            false,
            &params);
}

/// Ranks as many lists as the queries need, and marks those that a query does
/// not visit.
RankedLists lists_for(
        const faiss::IndexIVF& index,
        const ListsForSelected& lists,
        const VectorBatch& x) {
    for (size_t count = lists.first();; count = lists.more_than(count)) {
        RankedLists ranked(index, x.n, x.dense, idx_t(count));
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
            std::min(index.nprobe, index.nlist),
            index.nlist,
            index.ntotal,
            [&](size_t list) { return index.invlists->list_size(list); },
            [&](size_t list, size_t i) {
                return index.invlists->get_single_id(list, i);
            });
    const idx_t batch = idx_t(std::max<size_t>(1, most_ranked / index.nlist));
    for_batches(n, batch, [&](idx_t begin, idx_t end) {
        const VectorBatch part{end - begin, x + begin * index.d, index.d};
        float* D = distances + begin * k;
        idx_t* I = labels + begin * k;
        search_ranked(index, sel, part, k, lists_for(index, lists, part), D, I);
        const IncompleteRows rows(part, k, I);
        rows.search_again(D, I, [&](const VectorBatch& q, float* d, idx_t* i) {
            const RankedLists all(index, q.n, q.dense, idx_t(index.nlist));
            search_ranked(index, sel, q, k, all, d, i);
        });
    });
}

} // namespace faiss_ext
