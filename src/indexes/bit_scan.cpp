// SPDX-License-Identifier: MIT
#include "indexes/bit_scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/hamming.h"
#include "core/prefetch.h"
#include "indexes/blocked_scan.h"
#include "indexes/hamming_hits.h"
#include "simd/common_bits.h"
#include "simd/hamming_scan.h"

namespace faiss_ext {

int32_t scaled_distance(const BitKernel& kernel, const BitCounts& n) {
    // rounded; it is not negative, and lround takes longer
    constexpr double one = largest_bit_distance, half = 0.5;
    return int32_t(kernel.distance(n) * one + half);
}

void check_same_kernel(const BitKernel& kernel, const BitKernel& other) {
    const std::string own = kernel.description(), its = other.description();
    FAISS_EXT_THROW_IF_NOT_FMT(
            own == its,
            "cannot merge: this index has the kernel %s and the other one %s, expected the same",
            own.c_str(),
            its.c_str());
}

namespace {

using List = IndexBinaryFlatKernel::List;

constexpr idx_t query_block = 32;

/// The least number of common bits at which the distance is at most `distance`;
/// min(x, y) + 1 if there is none.
int least_common(const BitKernel& kernel, BitCounts n, int32_t distance) {
    if (distance >= largest_bit_distance) {
        return 0;
    }
    const int most = std::min(n.x, n.y);
    const auto is_within = [&](int common) {
        n.common = common;
        return scaled_distance(kernel, n) <= distance;
    };
    if (!is_within(most)) {
        return most + 1;
    }
    const double real = kernel.common_bits(
            (double(distance) + 0.5) / double(largest_bit_distance), n);
    int common = int(std::ceil(std::clamp(real, 0.0, double(most))));
    while (common > 0 && is_within(common - 1)) {
        common--;
    }
    while (!is_within(common)) {
        common++;
    }
    return common;
}

/// The mean number of ones in a folded code of so many bits that has `ones`
/// ones before.
double folded_ones(double bits, double ones) {
    return bits / 2 * (1 - std::pow(1 - 2 / bits, ones));
}

/// Collects the hits of one query.
struct BitHits : simd::HammingSink {
    TopK<int32_t> hits;

    /// @param code       of the query, as words of 8 bytes
    /// @param largest    largest distance of interest
    /// @param num_alike  queries that are compared with the same codes
    BitHits(const IndexBinaryFlatKernel& index,
            const uint64_t* code,
            int ones,
            size_t k,
            int32_t largest,
            const faiss::IDSelector* sel,
            idx_t num_alike)
            : hits(k, largest),
              index(index),
              code(code),
              ones(ones),
              folded_bits(8.0 * double(FoldedCodes::size_of(index.stride()))),
              folded(folded_bits > 0 ? folded_ones(folded_bits, ones) : 0),
              // scans of short codes by a batch are fast
              folds_below(folded_bits <= 64 && num_alike > 1 ? 0.5 : 0.7),
              sel(sel) {
        keys = buffer;
        capacity = keys_at_once;
        make_room = [](simd::HammingSink& sink) {
            static_cast<BitHits&>(sink).take();
        };
    }
    BitHits(const BitHits&) = delete;
    BitHits& operator=(const BitHits&) = delete;

    /// Starts a list. Returns false if none of its codes can be of interest.
    bool begin(const List& next) {
        list = &next;
        list_ones = next.ones;
        set_bound();
        if (bound == 0) {
            return false;
        }
        is_folded = false;
        if (!list->folded.empty()) {
            const double other = folded_ones(folded_bits, list_ones);
            const double usual =
                    folded + other - 2 * folded * other / folded_bits;
            // otherwise too many codes would have to be compared again
            is_folded = bound < folds_below * usual;
        }
        return true;
    }

    /// Whether folded codes are compared first.
    bool is_folded = false;

    /// Takes the keys of the list.
    void take() {
        if (is_folded) {
            take_folded();
        } else {
            for (size_t i = 0; i < size; i++) {
                const int apart = int(distance_of(keys[i]));
                push((ones + list_ones - apart) / 2, position_of(keys[i]));
            }
        }
        size = 0;
        if (hits.bound != bounded_by) {
            set_bound();
        }
    }

    /// Ends a list. A lower bound may rule out the next ones, but is worth its
    /// time only after some more hits.
    void end() {
        take();
        if (hits.scores.size() > hits.k + hits.k / 4) {
            hits.shrink();
        }
    }

   private:
    static constexpr size_t keys_at_once = 64;
    static constexpr size_t most_keys = keys_at_once + simd::hamming_group;
    const IndexBinaryFlatKernel& index;
    const uint64_t* const code;
    const int ones;
    const double folded_bits;
    const double folded;      ///< ones of the query's folded code
    const double folds_below; ///< part of the usual distance
    const faiss::IDSelector* const sel;
    const List* list = nullptr;
    int list_ones = 0;
    int32_t bounded_by = 0; ///< the distance of which `bound` is
    uint64_t buffer[most_keys];

    BitCounts counts(int common) const {
        return {index.d, ones, list_ones, common};
    }

    void set_bound() {
        bounded_by = hits.bound;
        const int least = least_common(*index.kernel, counts(0), hits.bound);
        bound = least > std::min(ones, list_ones)
                ? 0
                : uint32_t(ones + list_ones - 2 * least + 1);
    }

    void push(int common, size_t position) {
        const idx_t id = list->ids[position];
        if (!sel || sel->is_member(id)) {
            hits.push(scaled_distance(*index.kernel, counts(common)), id);
        }
    }

    void take_folded() {
        uint32_t positions[most_keys], common[most_keys];
        for (size_t i = 0; i < size; i++) {
            positions[i] = uint32_t(position_of(keys[i]));
        }
        simd::common_bits(
                index.stride() / 8,
                code,
                list->codes.data(),
                size,
                positions,
                common);
        for (size_t i = 0; i < size; i++) {
            if (ones + list_ones - 2 * int(common[i]) < int(bound)) {
                push(int(common[i]), positions[i]);
            }
        }
    }
};

/// The lists, by the smallest distance that their codes can have from a query,
/// the smallest first.
class ListOrder {
   public:
    /// @param ones  of the query
    ListOrder(const IndexBinaryFlatKernel& index, int ones)
            : index(index), ones(ones) {
        const auto& lists = index.lists;
        end = int(lists.size());
        above =
                int(std::lower_bound(
                            lists.begin(),
                            lists.end(),
                            ones,
                            [](const List& list, int number) {
                                return list.ones < number;
                            }) -
                    lists.begin());
        below = above - 1;
        of_below = least_distance(below);
        of_above = least_distance(above);
    }

    /// The next list, or null if there is none.
    const List* next() {
        if (below < 0 && above >= end) {
            return nullptr;
        }
        if (above >= end || (below >= 0 && of_below < of_above)) {
            of_below = least_distance(below - 1);
            return &index.lists[below--];
        }
        of_above = least_distance(above + 1);
        return &index.lists[above++];
    }

    /// Leaves out the lists beyond one that no query needs, if they are as far
    /// from all queries.
    /// @param least, most  ones of the queries
    void end_beyond(const List& list, int least, int most) {
        if (list.ones <= least) {
            below = -1;
        }
        if (list.ones >= most) {
            above = end;
        }
    }

   private:
    const IndexBinaryFlatKernel& index;
    const int ones;
    int below = -1, above = 0, end = 0; ///< below and above: for next
    double of_below = 0, of_above = 0;  ///< their distances

    double least_distance(int number) const {
        if (number < 0 || number >= end) {
            return 0;
        }
        const int of_list = index.lists[number].ones;
        return index.kernel->distance(
                {index.d, ones, of_list, std::min(ones, of_list)});
    }
};

/// Queries with their folded codes, by the number of their ones, so that
/// queries of a block visit the same lists.
struct BitQueries {
    const size_t words, folded_words;
    std::vector<idx_t> order;
    std::vector<int> ones;        ///< in this order
    std::vector<uint64_t> codes;  ///< words for each query
    std::vector<uint64_t> folded; ///< folded_words for each query

    BitQueries(const IndexBinaryFlatKernel& index, idx_t n, const uint8_t* x)
            : words(index.stride() / 8),
              folded_words(FoldedCodes::size_of(index.stride()) / 8),
              order(n),
              ones(n),
              codes(n * words) {
        const size_t size = index.code_size;
        std::vector<int> given(n);
        for (idx_t i = 0; i < n; i++) {
            given[i] = number_of_ones(x + i * size, size);
        }
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](idx_t a, idx_t b) {
            return given[a] < given[b];
        });
        folded.resize(n * folded_words);
        for (idx_t i = 0; i < n; i++) {
            const uint8_t* code = x + order[i] * size;
            ones[i] = given[order[i]];
            std::memcpy(&codes[i * words], code, size);
            if (folded_words > 0) {
                FoldedCodes::fold(
                        &codes[i * words],
                        index.stride(),
                        &folded[i * folded_words]);
            }
        }
    }
};

/// Some queries that scan a list together.
struct ActiveQueries {
    std::vector<uint64_t> codes;
    std::vector<simd::HammingSink*> sinks;

    void clear() {
        codes.clear();
        sinks.clear();
    }

    void add(const uint64_t* code, size_t words, BitHits& hits) {
        codes.insert(codes.end(), code, code + words);
        sinks.push_back(&hits);
    }

    void scan(size_t n, const uint8_t* all, size_t code_size) {
        if (sinks.empty()) {
            return;
        }
        scan_codes(
                sinks.size(), codes.data(), 0, n, all, code_size, sinks.data());
        for (simd::HammingSink* sink : sinks) {
            static_cast<BitHits*>(sink)->end();
        }
    }
};

} // namespace

void FoldedCodes::fold(const void* code, size_t code_size, void* folded) {
    const auto* bytes = static_cast<const uint8_t*>(code);
    const size_t size = size_of(code_size);
    uint64_t words[most_bytes / 8] = {};
    for (size_t i = 0; i < code_size; i += 8) {
        words[i / 8 % (size / 8)] ^= word_at(bytes, i, code_size);
    }
    std::memcpy(folded, words, size);
}

void scan_bits(
        const IndexBinaryFlatKernel& index,
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t largest,
        const faiss::IDSelector* sel,
        const std::function<void(idx_t, std::span<const TopK<int32_t>>)>&
                result) {
    const BitQueries queries(index, n, x);
    const size_t words = queries.words;
    const BlockedScan blocks(n, index.ntotal, query_block, 1, 16384);
    const auto scan = [&](idx_t q0,
                          idx_t nq,
                          idx_t slice,
                          idx_t,
                          idx_t,
                          auto&& found) {
        std::vector<std::unique_ptr<BitHits>> hits;
        for (idx_t q = q0; q < q0 + nq; q++) {
            hits.push_back(std::make_unique<BitHits>(
                    index,
                    &queries.codes[q * words],
                    queries.ones[q],
                    std::min(k, index.ntotal),
                    largest,
                    sel,
                    nq));
        }
        const int least = queries.ones[q0], most = queries.ones[q0 + nq - 1];
        ListOrder order(index, queries.ones[q0 + nq / 2]);
        ActiveQueries plain, folded;
        while (const List* list = order.next()) {
            plain.clear();
            folded.clear();
            // not by their order, which ends at other lists in other slices
            const bool is_mine =
                    (list - index.lists.data()) % blocks.nslices == slice;
            for (idx_t q = 0; q < nq; q++) {
                BitHits& of_query = *hits[q];
                if (!of_query.begin(*list)) {
                    continue;
                }
                if (of_query.is_folded) {
                    const size_t size = queries.folded_words;
                    folded.add(
                            &queries.folded[(q0 + q) * size], size, of_query);
                } else {
                    plain.add(
                            &queries.codes[(q0 + q) * words], words, of_query);
                }
            }
            if (plain.sinks.empty() && folded.sinks.empty()) {
                order.end_beyond(*list, least, most);
            } else if (is_mine) {
                const size_t size = list->ids.size();
                plain.scan(size, list->codes.sequential(), index.stride());
                folded.scan(
                        size,
                        list->folded.sequential(),
                        8 * queries.folded_words);
            }
        }
        for (idx_t q = 0; q < nq; q++) {
            found(q0 + q, std::move(hits[q]->hits));
        }
    };
    scan_slices<TopK<int32_t>>(
            blocks,
            index.ntotal,
            scan,
            [&](idx_t q, std::span<const TopK<int32_t>> found) {
                result(queries.order[q], found);
            });
}

} // namespace faiss_ext
