// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryPermuted.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <random>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/field_files.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/search_params.h"
#include "indexes/selected_places.h"

namespace faiss_ext {

namespace {

using List = IndexBinaryPermuted::List;

constexpr int prefix_bits = 64;

/// Overhead of an allocation.
constexpr size_t malloc_bytes = 16;

bool bit(const uint8_t* code, int i) {
    return code[i >> 3] >> (i & 7) & 1;
}

/// Returns the first permuted bits; the first is the most significant.
uint64_t prefix_of(const uint8_t* code, const List& list) {
    const int n = std::min<int>(prefix_bits, int(list.permutation.size()));
    uint64_t prefix = 0;
    for (int i = 0; i < n; i++) {
        prefix = prefix << 1 | uint64_t(bit(code, list.permutation[i]));
    }
    return n == 0 ? 0 : prefix << (prefix_bits - n);
}

/// Returns the number of leading permuted bits that two codes share.
int common_prefix(
        const uint8_t* a,
        uint64_t a_prefix,
        const uint8_t* b,
        uint64_t b_prefix,
        const List& list) {
    const int d = int(list.permutation.size());
    if (a_prefix != b_prefix) {
        return std::countl_zero(a_prefix ^ b_prefix);
    }
    if (std::equal(a, a + d / 8, b)) { // common if hashes make the codes
        return d;
    }
    int i = std::min(prefix_bits, d);
    while (i < d &&
           bit(a, list.permutation[i]) == bit(b, list.permutation[i])) {
        i++;
    }
    return i;
}

/// Returns whether permuted code a comes before b. Equal codes are ordered by
/// id.
bool before(
        const uint8_t* a,
        uint64_t a_prefix,
        int32_t a_id,
        const uint8_t* b,
        uint64_t b_prefix,
        int32_t b_id,
        const List& list) {
    if (a_prefix != b_prefix) {
        return a_prefix < b_prefix;
    }
    const int i = common_prefix(a, a_prefix, b, b_prefix, list);
    return i < int(list.permutation.size()) ? bit(b, list.permutation[i])
                                            : a_id < b_id;
}

/// An entry that is about to be removed has its id complemented.
int32_t unmarked(int32_t id) {
    return id < 0 ? ~id : id;
}

/// Returns the first position from begin to end whose entry does not come
/// before a code with an id.
size_t place_in_list(
        const uint8_t* code,
        uint64_t prefix,
        int32_t id,
        const List& list,
        size_t begin,
        size_t end,
        const uint8_t* xb,
        size_t code_size) {
    size_t low = begin, high = end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int32_t other = unmarked(list.ids[middle]);
        if (before(xb + other * code_size,
                   list.prefixes[middle],
                   other,
                   code,
                   prefix,
                   id,
                   list)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// Sorts an entry, whose id became smaller, among the equal codes before it.
void sort_in(List& list, size_t at, const uint8_t* xb, size_t code_size) {
    if (at > 0 && list.prefixes[at - 1] == list.prefixes[at] &&
        list.ids[at - 1] > list.ids[at]) {
        const int32_t id = list.ids[at];
        const size_t to = place_in_list(
                xb + id * code_size,
                list.prefixes[at],
                id,
                list,
                0,
                at,
                xb,
                code_size);
        const auto ids = list.ids.begin();
        std::rotate(ids + to, ids + at, ids + at + 1);
    }
}

/// Removes the marked entries, of which the first is at a position.
void erase_marked(List& list, size_t first, idx_t count) {
    const size_t n = list.ids.size();
    int32_t* ids = list.ids.data();
    uint64_t* prefixes = list.prefixes.data();
    size_t to = first, marked = first;
    for (; count > 0; count--) {
        const size_t begin = marked + 1;
        for (marked = count == 1 ? n : begin; marked < n && ids[marked] >= 0;) {
            marked++;
        }
        std::copy(ids + begin, ids + marked, ids + to);
        std::copy(prefixes + begin, prefixes + marked, prefixes + to);
        to += marked - begin;
    }
    list.ids.resize(to);
    list.prefixes.resize(to);
}

/// Sorts codes [n0, n) into a list that already holds the earlier ones.
void extend_list(
        const uint8_t* xb,
        size_t code_size,
        idx_t n0,
        idx_t n,
        List& list) {
    struct Entry {
        uint64_t prefix;
        int32_t id;
    };
    const auto less = [&](const Entry& a, const Entry& b) {
        return before(
                xb + a.id * code_size,
                a.prefix,
                a.id,
                xb + b.id * code_size,
                b.prefix,
                b.id,
                list);
    };
    std::vector<Entry> entries(n - n0);
    for (idx_t i = n0; i < n; i++) {
        entries[i - n0] = {prefix_of(xb + i * code_size, list), int32_t(i)};
    }
    std::sort(entries.begin(), entries.end(), less);
    list.prefixes.resize(n);
    list.ids.resize(n);
    uint64_t* prefixes = list.prefixes.data();
    int32_t* ids = list.ids.data();
    size_t end = n0; // earlier entries that have not moved
    for (size_t left = entries.size(); left > 0; left--) {
        const Entry& entry = entries[left - 1];
        const auto place = [&](size_t from, size_t to) {
            return place_in_list(
                    xb + entry.id * code_size,
                    entry.prefix,
                    entry.id,
                    list,
                    from,
                    to,
                    xb,
                    code_size);
        };
        // many entries are near the last one
        size_t begin = end;
        for (size_t step = 1; begin > 0 && place(begin - 1, begin) < begin;
             step *= 2) {
            begin -= std::min(step, begin);
        }
        const size_t at = place(begin, end);
        std::copy_backward(
                prefixes + at, prefixes + end, prefixes + end + left);
        std::copy_backward(ids + at, ids + end, ids + end + left);
        prefixes[at + left - 1] = entry.prefix;
        ids[at + left - 1] = entry.id;
        end = at;
    }
}

std::vector<int32_t> random_permutation(int d, uint64_t seed, uint64_t index) {
    std::seed_seq sequence{
            uint32_t(seed), uint32_t(seed >> 32), uint32_t(index)};
    std::mt19937_64 rng(sequence);
    std::vector<int32_t> permutation(d);
    std::iota(permutation.begin(), permutation.end(), 0);
    for (int i = d - 1; i > 0; i--) {
        std::uniform_int_distribution<int> below(0, i);
        std::swap(permutation[i], permutation[below(rng)]);
    }
    return permutation;
}

} // namespace

IndexBinaryPermutedStats indexBinaryPermuted_stats;

namespace {

void count_search(size_t nq, size_t ncandidates, size_t ntotal) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    indexBinaryPermuted_stats.nq += nq;
    indexBinaryPermuted_stats.ncandidates += ncandidates;
    indexBinaryPermuted_stats.ntotal += nq * ntotal;
}

} // namespace

void IndexBinaryPermutedStats::reset() {
    *this = IndexBinaryPermutedStats();
}

double IndexBinaryPermuted::max_gb_read = 8;

IndexBinaryPermuted::IndexBinaryPermuted(int d, double eps, int B)
        : IndexBinary(checked_bits(d, "IndexBinaryPermuted")), eps(eps), B(B) {
    init();
}

void IndexBinaryPermuted::fields(FieldVisitor& v) const {
    v.integer("M", M, 0, 1 << 20, "number of lists; 0: by eps");
    if (M == 0 || v.wants_all()) {
        v.number(
                "eps",
                eps,
                1e-3,
                1e3,
                "2 n^(1 / (1 + eps)) lists, n codes; not with M");
    }
    v.integer("B", B, 0, 1 << 30, "further entries to visit on each side");
    v.integer("seed", seed, 0, INT64_MAX, "seed of the permutations");
    v.number("max_gb", max_gb, 0, 1e6, "largest size of the lists, in GB");
    v.array("codes", xb, ntotal * size_t(code_size));
}

void IndexBinaryPermuted::init() {
    checked_bits(d, "IndexBinaryPermuted");
    check_parameters();
}

void IndexBinaryPermuted::restore() {
    init();
    check_size_in_file();
    rebuild();
}

void IndexBinaryPermuted::check_restorable() const {
    check_parameters();
    check_size(ntotal);
    check_size_in_file();
}

void IndexBinaryPermuted::check_size_in_file() const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            copies_in_memory() || bytes_of_lists(ntotal) <= 1e9 * max_gb_read,
            "IndexBinaryPermuted: %d sorted lists of %" PRId64
            " codes take %.3g GB, more than the limit for files, %.3g GB; raise IndexBinaryPermuted::max_gb_read",
            num_lists(ntotal),
            int64_t(ntotal),
            bytes_of_lists(ntotal) / 1e9,
            max_gb_read);
}

void IndexBinaryPermuted::check_parameters() const {
    check_fields(*this);
    check_codes();
}

void IndexBinaryPermuted::check_codes() const {
    check_stored(ntotal, xb.size(), code_size, "IndexBinaryPermuted");
    for (const List& list : lists) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                list.ids.size() == size_t(ntotal) &&
                        list.prefixes.size() == size_t(ntotal),
                "IndexBinaryPermuted: the index has %" PRId64
                " codes, and a sorted list %zu; call rebuild()",
                int64_t(ntotal),
                list.ids.size());
    }
}

int IndexBinaryPermuted::num_lists(idx_t n) const {
    if (M > 0) {
        return M;
    }
    return int(std::min(
            std::ceil(2 * std::pow(double(n), 1 / (1 + eps))),
            double(1 << 30)));
}

double IndexBinaryPermuted::bytes_of_lists(idx_t n) const {
    // with few codes, most memory is for the lists themselves
    constexpr size_t list_bytes = sizeof(List) + 3 * malloc_bytes;
    return num_lists(n) * (12.0 * double(n) + 4.0 * d + double(list_bytes));
}

void IndexBinaryPermuted::check_size(idx_t n) const {
    const double bytes = bytes_of_lists(n);
    FAISS_EXT_THROW_IF_NOT_FMT(
            bytes <= 1e9 * max_gb,
            "IndexBinaryPermuted: %d sorted lists of %" PRId64
            " codes take %.3g GB, more than max_gb, %.3g GB; use fewer lists (a smaller M, or a larger eps), or raise max_gb",
            num_lists(n),
            int64_t(n),
            bytes / 1e9,
            max_gb);
    FAISS_EXT_THROW_IF_NOT_FMT(
            n <= std::numeric_limits<int32_t>::max(),
            "IndexBinaryPermuted: %" PRId64 " codes, expected at most 2^31 - 1",
            int64_t(n));
}

void IndexBinaryPermuted::build_lists(idx_t n0) {
    const int nlists = ntotal == 0 ? 0 : num_lists(ntotal);
    const int nkept = std::min<int>(nlists, int(lists.size()));
    lists.resize(std::max(lists.size(), size_t(nlists)));
    parallel_blocks("sorted lists", nlists, 1, [&](idx_t l, idx_t) {
        List& list = lists[l];
        if (l >= nkept) {
            list.permutation = random_permutation(d, seed, l);
        }
        extend_list(xb.data(), code_size, l < nkept ? n0 : 0, ntotal, list);
    });
    lists.resize(nlists);
}

template <class F>
void IndexBinaryPermuted::keep_entries(F&& new_id) {
    single_thread_after_fork();
#pragma omp parallel for
    for (size_t l = 0; l < lists.size(); l++) {
        List& list = lists[l];
        size_t to = 0;
        for (size_t i = 0; i < list.ids.size(); i++) {
            const int32_t id = new_id(list.ids[i]);
            if (id >= 0) {
                list.ids[to] = id;
                list.prefixes[to] = list.prefixes[i];
                sort_in(list, to++, xb.data(), code_size);
            }
        }
        list.ids.resize(to);
        list.prefixes.resize(to);
    }
}

void IndexBinaryPermuted::rebuild() {
    check_size(ntotal);
    lists.clear();
    build_lists(0);
}

void IndexBinaryPermuted::add(idx_t n, const uint8_t* x) {
    check_batch(n, x, "IndexBinaryPermuted::add");
    check_parameters();
    if (n == 0) {
        return;
    }
    check_size(ntotal + n);
    const idx_t n0 = ntotal;
    const size_t nlists = lists.size();
    xb.insert(xb.end(), x, x + n * code_size);
    ntotal += n;
    try {
        build_lists(n0);
    } catch (...) {
        // restore the old state; nothing here can be interrupted or fail
        ntotal = n0;
        xb.resize(n0 * code_size);
        lists.resize(nlists);
        keep_entries([n0](int32_t id) { return id < n0 ? id : -1; });
        throw;
    }
}

void IndexBinaryPermuted::reset() {
    xb.clear();
    lists.clear();
    ntotal = 0;
}

std::vector<int32_t> IndexBinaryPermuted::candidates(
        const uint8_t* x,
        idx_t num_further) const {
    /// The entries [low, high) of a list that have been visited.
    struct Window {
        int32_t low, high;
        uint64_t prefix;
    };
    /// The next entry of a list above or below its window.
    struct Next {
        int common;
        int list;
        bool above;

        bool operator<(const Next& other) const {
            if (common != other.common) {
                return common < other.common;
            }
            if (list != other.list) {
                return list > other.list;
            }
            return !above && other.above;
        }
    };
    std::vector<Window> windows(lists.size());
    std::priority_queue<Next> queue;
    const auto code = [&](int32_t id) {
        return xb.data() + size_t(id) * code_size;
    };
    const auto push = [&](int l, bool above) {
        const List& list = lists[l];
        const Window& w = windows[l];
        const int32_t i = above ? w.high : w.low - 1;
        if (i >= 0 && i < ntotal) {
            queue.push(
                    {common_prefix(
                             x,
                             w.prefix,
                             code(list.ids[i]),
                             list.prefixes[i],
                             list),
                     l,
                     above});
        }
    };
    for (int l = 0; l < int(lists.size()); l++) {
        const List& list = lists[l];
        const uint64_t prefix = prefix_of(x, list);
        const auto low = int32_t(place_in_list(
                x, prefix, -1, list, 0, ntotal, xb.data(), code_size));
        windows[l] = {low, low, prefix};
        push(l, true);
        push(l, false);
    }
    for (size_t i = 0; i < 2 * lists.size() && !queue.empty(); i++) {
        const Next next = queue.top();
        queue.pop();
        Window& w = windows[next.list];
        next.above ? w.high++ : w.low--;
        push(next.list, next.above);
    }
    std::vector<int32_t> found;
    for (size_t l = 0; l < lists.size(); l++) {
        const idx_t low =
                std::max<idx_t>(0, idx_t(windows[l].low) - num_further);
        const idx_t high =
                std::min(ntotal, idx_t(windows[l].high) + num_further);
        found.insert(
                found.end(),
                lists[l].ids.begin() + low,
                lists[l].ids.begin() + high);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

/// The selected codes that a query is compared with.
struct IndexBinaryPermuted::Candidates {
    const IndexBinaryPermuted& index;
    const faiss::IDSelector* const sel; ///< null selects all codes
    std::optional<Selected> selected;
    idx_t num_further;

    Candidates(const IndexBinaryPermuted& index, const faiss::IDSelector* sel)
            : index(index), sel(sel), num_further(index.B) {
        if (sel) {
            const double found =
                    2.0 * double(index.lists.size()) * (1.0 + index.B);
            selected.emplace(
                    *sel, index.ntotal, most_compared(found, index.ntotal));
            num_further = idx_t(std::min(
                    std::ceil((1.0 + index.B) / selected->fraction) - 1,
                    double(index.ntotal)));
        }
    }

    /// Calls found(id) for each.
    template <class Found>
    void operator()(const uint8_t* x, Found&& found) const {
        if (selected && selected->few) {
            std::ranges::for_each(*selected->few, found);
            return;
        }
        for (const int32_t id : index.candidates(x, num_further)) {
            if (!sel || sel->is_member(id)) {
                found(id);
            }
        }
    }

    /// Calls found(id) for each selected code.
    template <class Found>
    void all(Found&& found) const {
        for (idx_t id = 0; id < index.ntotal; id++) {
            if (sel->is_member(id)) {
                found(id);
            }
        }
    }
};

void IndexBinaryPermuted::add_with_ids(idx_t, const uint8_t*, const idx_t*) {
    throw_unsupported(
            "IndexBinaryPermuted",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexBinaryPermuted::search(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryPermuted::search");
    check_parameters();
    check_k(k, "IndexBinaryPermuted::search");
    const Candidates candidates(
            *this, plain_selector(params, "IndexBinaryPermuted::search"));
    std::atomic<size_t> ncandidates{0};
    parallel_blocks(n, 1, [&](idx_t q, idx_t) {
        const uint8_t* query = x + q * code_size;
        std::vector<std::pair<int32_t, idx_t>> found;
        const auto compare = [&](idx_t id) {
            found.emplace_back(
                    hamming_distance(query, &xb[id * code_size], code_size),
                    id);
        };
        candidates(query, compare);
        if (candidates.sel && found.size() < size_t(k)) {
            found.clear();
            candidates.all(compare);
        }
        ncandidates += found.size();
        const idx_t m = std::min<idx_t>(k, found.size());
        std::partial_sort(found.begin(), found.begin() + m, found.end());
        for (idx_t j = 0; j < k; j++) {
            distances[q * k + j] = j < m ? found[j].first
                                         : std::numeric_limits<int32_t>::max();
            labels[q * k + j] = j < m ? found[j].second : -1;
        }
    });
    count_search(n, ncandidates, ntotal);
}

void IndexBinaryPermuted::range_search(
        idx_t n,
        const uint8_t* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryPermuted::range_search");
    check_parameters();
    const Candidates candidates(
            *this, plain_selector(params, "IndexBinaryPermuted::range_search"));
    std::vector<std::vector<std::pair<int32_t, idx_t>>> found(n);
    std::atomic<size_t> ncandidates{0};
    parallel_blocks(n, 1, [&](idx_t q, idx_t) {
        const uint8_t* query = x + q * code_size;
        candidates(query, [&](idx_t id) {
            const int32_t distance =
                    hamming_distance(query, &xb[id * code_size], code_size);
            ncandidates++;
            if (distance < radius) {
                found[q].emplace_back(distance, id);
            }
        });
    });
    count_search(n, ncandidates, ntotal);
    fill_range_result(
            found,
            result,
            [](const auto& hit) { return float(hit.first); },
            [](const auto& hit) { return hit.second; });
}

size_t IndexBinaryPermuted::remove_ids(const faiss::IDSelector& sel) {
    check_codes();
    std::vector<int32_t> new_id(ntotal, -1);
    int32_t kept = 0;
    for (idx_t i = 0; i < ntotal; i++) {
        if (!sel.is_member(i)) {
            new_id[i] = kept++;
        }
    }
    for (idx_t i = 0; i < ntotal; i++) {
        if (new_id[i] >= 0) {
            std::memmove(
                    &xb[new_id[i] * size_t(code_size)],
                    &xb[i * size_t(code_size)],
                    code_size);
        }
    }
    const size_t removed = ntotal - kept;
    ntotal = kept;
    xb.resize(size_t(kept) * code_size);
    lists.resize(
            kept == 0 ? 0 : std::min<size_t>(lists.size(), num_lists(kept)));
    keep_entries([&](int32_t id) { return new_id[id]; });
    return removed;
}

/// Throws if the code is not there, because codes or lists were changed.
size_t IndexBinaryPermuted::find_entry(const List& list, idx_t id) const {
    const uint8_t* code = &xb[id * size_t(code_size)];
    const size_t at = place_in_list(
            code,
            prefix_of(code, list),
            int32_t(id),
            list,
            0,
            list.ids.size(),
            xb.data(),
            code_size);
    FAISS_EXT_THROW_IF_NOT_FMT(
            at < list.ids.size() && list.ids[at] == id,
            "IndexBinaryPermuted: code %" PRId64
            " is not in its place in a sorted list; call rebuild()",
            int64_t(id));
    return at;
}

std::function<void()> IndexBinaryPermuted::prepare_moves(
        const PlaceMoves& moves) {
    // more are faster to remove in one pass than to find
    constexpr idx_t part_to_find = 512;
    check_codes();
    std::vector<idx_t> new_id;
    if (moves.before - moves.after > moves.before / part_to_find) {
        new_id = moves.new_places();
    } else {
        parallel_blocks(lists.size(), 1, [&](idx_t l, idx_t) {
            const auto check = [&](idx_t id) {
                if (id < ntotal) { // others are added before the change
                    find_entry(lists[l], id);
                }
            };
            moves.for_removed(check);
            for (const auto& move : moves.moves) {
                check(move.from);
            }
        });
    }
    return [this, &moves, new_id = std::move(new_id)] {
        const size_t nlists = moves.after == 0 ? 0 : num_lists(moves.after);
        lists.resize(std::min(lists.size(), nlists));
        if (new_id.empty()) {
            apply_to_few(moves);
        } else {
            moves.apply_to(xb.data(), code_size);
            keep_entries([&](int32_t id) { return int32_t(new_id[id]); });
        }
        xb.resize(moves.after * size_t(code_size));
        ntotal = moves.after;
    };
}

/// Changes the lists and moves the codes.
void IndexBinaryPermuted::apply_to_few(const PlaceMoves& moves) {
    single_thread_after_fork();
#pragma omp parallel for
    for (size_t l = 0; l < lists.size(); l++) {
        List& list = lists[l];
        size_t first = list.ids.size();
        moves.for_removed([&](idx_t id) {
            const size_t at = find_entry(list, id);
            list.ids[at] = int32_t(~id);
            first = std::min(first, at);
        });
        erase_marked(list, first, moves.before - moves.after);
    }
    moves.apply_to(xb.data(), code_size);
#pragma omp parallel for
    for (size_t l = 0; l < lists.size(); l++) {
        List& list = lists[l];
        for (const auto [from, to] : moves.moves) {
            const size_t at = find_entry(list, from);
            list.ids[at] = int32_t(to);
            sort_in(list, at, xb.data(), code_size);
        }
    }
}

void IndexBinaryPermuted::reconstruct(idx_t key, uint8_t* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexBinaryPermuted::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    check_codes();
    check_ids(i0, ni, ntotal, "IndexBinaryPermuted::reconstruct");
    if (ni > 0) {
        std::memcpy(recons, &xb[i0 * code_size], ni * code_size);
    }
}

void IndexBinaryPermuted::merge_from(faiss::IndexBinary& other, idx_t add_id) {
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexBinaryPermuted&>(other);
    source.check_codes();
    add(source.ntotal, source.xb.data());
    source.reset();
}

void IndexBinaryPermuted::check_compatible_for_merge(
        const faiss::IndexBinary& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            dynamic_cast<const IndexBinaryPermuted*>(&other) && other.d == d,
            "cannot merge: expected another IndexBinaryPermuted with the same number of bits");
}

} // namespace faiss_ext
