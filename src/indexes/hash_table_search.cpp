// SPDX-License-Identifier: MIT
#include "indexes/hash_table_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHash.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

/// Results of a search of the tables that are kept at once.
constexpr idx_t most_results = 1 << 20;

/// Calls f(id, code) for the codes that are selected. places: the same ones, if
/// they are known
template <class F>
void for_selected(
        const faiss::IndexBinary& index,
        const faiss::IDSelector& sel,
        const std::vector<idx_t>* places,
        F&& f) {
    const size_t size = index.code_size;
    const auto* tables =
            dynamic_cast<const faiss::IndexBinaryMultiHash*>(&index);
    if (tables && places) {
        for (const idx_t place : *places) {
            f(place, &tables->storage->xb[place * size]);
        }
    } else if (tables) {
        for (idx_t place = 0; place < index.ntotal; place++) {
            if (sel.is_member(place)) {
                f(place, &tables->storage->xb[place * size]);
            }
        }
    } else if (
            auto* table = dynamic_cast<const faiss::IndexBinaryHash*>(&index)) {
        for (const auto& [key, bucket] : table->invlists) {
            for (size_t i = 0; i < bucket.ids.size(); i++) {
                if (sel.is_member(bucket.ids[i])) {
                    f(bucket.ids[i], &bucket.vecs[i * size]);
                }
            }
        }
    }
}

/// Selected codes, for exact search.
struct SelectedCodes {
    std::vector<idx_t> ids; ///< ascending
    IndexBinaryFlatSIMD codes;

    SelectedCodes(
            const faiss::IndexBinary& index,
            const faiss::IDSelector& sel,
            const std::vector<idx_t>* places)
            : codes(index.d) {
        std::vector<std::pair<idx_t, const uint8_t*>> selected;
        for_selected(index, sel, places, [&](idx_t id, const uint8_t* code) {
            selected.emplace_back(id, code);
        });
        std::sort(selected.begin(), selected.end());
        for (const auto& [id, code] : selected) {
            ids.push_back(id);
            codes.add(1, code);
        }
    }

    void search(
            idx_t n,
            const uint8_t* x,
            idx_t k,
            int32_t* distances,
            idx_t* labels) const {
        codes.search(n, x, k, distances, labels);
        for (idx_t i = 0; i < n * k; i++) {
            labels[i] = labels[i] >= 0 ? ids[labels[i]] : -1;
        }
    }
};

/// Queries of a batch, and their results.
struct Queries {
    const idx_t k;
    const size_t code_size;
    std::vector<idx_t> numbers; ///< in the batch
    std::vector<uint8_t> codes;
    std::vector<int32_t> distances;
    std::vector<idx_t> labels;

    Queries(std::vector<idx_t> numbers,
            const uint8_t* batch,
            size_t code_size,
            idx_t k)
            : k(k), code_size(code_size), numbers(std::move(numbers)) {
        for (const idx_t i : this->numbers) {
            const uint8_t* code = batch + i * code_size;
            codes.insert(codes.end(), code, code + code_size);
        }
        // FAISS 1.7.3 reads eight bytes even if a code is shorter
        codes.reserve(codes.size() + 8);
        distances.resize(this->numbers.size() * k);
        labels.resize(distances.size());
    }

    template <class Search>
    void search(Search&& search) {
        search(idx_t(numbers.size()),
               codes.data(),
               k,
               distances.data(),
               labels.data());
    }
};

} // namespace

bool is_hash_table(const faiss::IndexBinary& index) {
    return dynamic_cast<const faiss::IndexBinaryHash*>(&index) ||
            dynamic_cast<const faiss::IndexBinaryMultiHash*>(&index);
}

void search_selected(
        const faiss::IndexBinary& tables,
        const SearchCodes& search,
        idx_t n,
        const uint8_t* codes,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::IDSelector& sel) {
    const idx_t ntotal = tables.ntotal;
    const Selected selected(sel, ntotal, most_compared(k, ntotal));
    if (selected.few) {
        SelectedCodes(tables, sel, &*selected.few)
                .search(n, codes, k, distances, labels);
        return;
    }
    std::vector<idx_t> left(n), incomplete;
    std::iota(left.begin(), left.end(), idx_t(0));
    const double first = std::ceil(2 * double(k) / selected.fraction);
    for (const int factor : {1, 4, 16}) {
        const idx_t number = idx_t(std::min(factor * first, double(ntotal)));
        const size_t block = std::max<size_t>(1, most_results / number);
        std::vector<idx_t> next;
        for (size_t begin = 0; begin < left.size(); begin += block) {
            const size_t end = std::min(begin + block, left.size());
            Queries queries(
                    {left.begin() + begin, left.begin() + end},
                    codes,
                    tables.code_size,
                    number);
            queries.search(search);
            for (size_t i = 0; i < end - begin; i++) {
                const idx_t query = left[begin + i];
                const idx_t* found = &queries.labels[i * number];
                idx_t count = 0;
                for (idx_t j = 0; j < number && count < k; j++) {
                    if (found[j] >= 0 && sel.is_member(found[j])) {
                        distances[query * k + count] =
                                queries.distances[i * number + j];
                        labels[query * k + count++] = found[j];
                    }
                }
                if (count < k) {
                    const bool has_more =
                            number < ntotal && found[number - 1] >= 0;
                    (has_more ? next : incomplete).push_back(query);
                }
            }
        }
        left = std::move(next);
    }
    // exact search is faster than even more candidates
    incomplete.insert(incomplete.end(), left.begin(), left.end());
    if (!incomplete.empty()) {
        Queries queries(std::move(incomplete), codes, tables.code_size, k);
        const SelectedCodes exact(tables, sel, nullptr);
        queries.search([&](auto... arguments) { exact.search(arguments...); });
        for (size_t i = 0; i < queries.numbers.size(); i++) {
            const idx_t to = queries.numbers[i] * k;
            std::copy_n(&queries.distances[i * k], k, distances + to);
            std::copy_n(&queries.labels[i * k], k, labels + to);
        }
    }
}

bool range_search_few(
        const faiss::IndexBinary& tables,
        idx_t n,
        const uint8_t* codes,
        int radius,
        const faiss::IDSelector& sel,
        faiss::RangeSearchResult* result) {
    const idx_t ntotal = tables.ntotal;
    const Selected selected(sel, ntotal, most_compared(1, ntotal));
    if (!selected.few) {
        return false;
    }
    const SelectedCodes exact(tables, sel, &*selected.few);
    exact.codes.range_search(n, codes, radius, result);
    for (size_t i = 0; i < result->lims[n]; i++) {
        result->labels[i] = exact.ids[result->labels[i]];
    }
    return true;
}

void keep_selected(
        faiss::RangeSearchResult& result,
        const faiss::IDSelector& sel) {
    size_t begin = 0, kept = 0;
    for (size_t i = 0; i < result.nq; i++) {
        const size_t end = result.lims[i + 1];
        for (size_t j = begin; j < end; j++) {
            if (sel.is_member(result.labels[j])) {
                result.labels[kept] = result.labels[j];
                result.distances[kept++] = result.distances[j];
            }
        }
        begin = end;
        result.lims[i + 1] = kept;
    }
}

} // namespace faiss_ext
