// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>

#include "core/bit_rows.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/hamming.h"
#include "core/parallel.h"
#include "indexes/bit_scan.h"
#include "indexes/index_positions.h"
#include "indexes/range_result.h"
#include "indexes/search_params.h"
#include "simd/common_bits.h"
#include "simd/top_k.h"

namespace faiss_ext {

namespace {

using List = IndexBinaryFlatKernel::List;

constexpr int64_t one = largest_bit_distance;
constexpr int32_t no_distance = std::numeric_limits<int32_t>::max();

/// Packs the number of ones of a code and its position in their list.
constexpr int position_bits = 48;

uint64_t pack_place(int ones, size_t position) {
    return uint64_t(ones) << position_bits | position;
}

int ones_of(uint64_t place) {
    return int(place >> position_bits);
}

size_t position_in_list(uint64_t place) {
    return place & ((uint64_t(1) << position_bits) - 1);
}

/// Reserves memory, so that appending items cannot fail.
template <class Vector>
void make_room(Vector& items, size_t more) {
    const size_t needed = items.size() + more;
    if (needed > items.capacity()) {
        items.reserve(std::max(needed, 2 * items.capacity()));
    }
}

} // namespace

IndexBinaryFlatKernel::IndexBinaryFlatKernel(int d)
        : IndexBinaryFlatKernel(d, JaccardBitKernel()) {}

IndexBinaryFlatKernel::IndexBinaryFlatKernel(int d, const BitKernel& kernel)
        : kernel(kernel.clone()) {
    this->d = d; // FAISS's constructor takes only multiples of 8
    code_size = bytes_of_bits(d);
    init();
}

size_t IndexBinaryFlatKernel::stride() const {
    return (size_t(code_size) + 7) / 8 * 8;
}

bool IndexBinaryFlatKernel::is_mapped() const {
    return std::any_of(lists.begin(), lists.end(), [](const List& list) {
        return list.ids.mapped() || list.codes.mapped() || list.folded.mapped();
    });
}

double IndexBinaryFlatKernel::kernel_value(int32_t distance) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            distance >= 0,
            "IndexBinaryFlatKernel::kernel_value: the distance is %d, expected a number >= 0",
            distance);
    return std::max(0.0, 1 - double(distance) / double(one));
}

int32_t IndexBinaryFlatKernel::distance(double kernel_value) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            kernel_value >= 0 && kernel_value <= 1,
            "IndexBinaryFlatKernel::distance: the kernel value is %g, expected a number from 0 to 1",
            kernel_value);
    return int32_t(std::lround((1 - kernel_value) * double(one)));
}

void IndexBinaryFlatKernel::fields(FieldVisitor& v) const {
    v.part("kernel", kernel, "a kernel of packed bits");
    std::vector<int32_t> ones;
    for (const List& list : lists) {
        ones.push_back(list.ones);
    }
    v.array("ones", ones);
    size_t number = 0;
    v.items(lists, ones.size(), [&](const List& list) {
        v.assign(list.ones, ones[number++]);
        const size_t of_folded = FoldedCodes::size_of(stride());
        v.array("ids", list.ids);
        v.array("codes", list.codes, list.ids.size() * stride());
        v.array("folded", list.folded, list.ids.size() * of_folded);
    });
}

void IndexBinaryFlatKernel::init() {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0 && d <= most_kernel_bits && code_size == bytes_of_bits(d),
            "IndexBinaryFlatKernel: the number of bits is %d, expected 1 to %d",
            d,
            most_kernel_bits);
    check_fields(*this);
    number_lists();
}

void IndexBinaryFlatKernel::number_lists() {
    numbers.assign(d + 1, -1);
    for (size_t l = 0; l < lists.size(); l++) {
        numbers.at(lists[l].ones) = int32_t(l);
    }
}

/// Makes a list for each number of ones that some codes have.
void IndexBinaryFlatKernel::add_lists(const std::vector<idx_t>& sizes) {
    std::vector<int32_t> missing;
    for (int ones = 0; ones <= d; ones++) {
        if (sizes[ones] > 0 && numbers[ones] < 0) {
            missing.push_back(ones);
        }
    }
    lists.reserve(lists.size() + missing.size());
    for (const int32_t ones : missing) {
        lists.emplace_back().ones = ones;
    }
    std::sort(lists.begin(), lists.end(), [](const List& a, const List& b) {
        return a.ones < b.ones;
    });
    number_lists();
}

List& IndexBinaryFlatKernel::list_at(uint64_t place) {
    return lists[numbers[ones_of(place)]];
}

const List& IndexBinaryFlatKernel::list_at(uint64_t place) const {
    return lists[numbers[ones_of(place)]];
}

void IndexBinaryFlatKernel::restore() {
    check_restorable();
    init();
    const bool ascend =
            std::all_of(lists.begin(), lists.end(), [](const List& list) {
                return std::is_sorted(list.ids.begin(), list.ids.end());
            });
    if (!ascend) {
        remember_places();
    }
}

void IndexBinaryFlatKernel::remember_places() {
    if (!has_places) {
        check_restorable();
        std::vector<uint64_t> empty(ntotal);
        places.swap(empty);
        fill_places();
        has_places = true;
    }
}

void IndexBinaryFlatKernel::check_restorable() const {
    check_lists();
    const bool reads_codes = !is_mapped(); // all of a file
    std::vector<bool> seen(ntotal);
    for (const List& list : lists) {
        for (size_t i = 0; i < list.ids.size(); i++) {
            const idx_t id = list.ids.sequential()[i];
            FAISS_EXT_THROW_IF_NOT_FMT(
                    id >= 0 && id < ntotal && !seen[id],
                    "IndexBinaryFlatKernel: id %" PRId64
                    " of the list of codes with %d ones is out of range or used twice",
                    int64_t(id),
                    list.ones);
            seen[id] = true;
            if (!reads_codes) {
                continue;
            }
            const uint8_t* code = &list.codes[i * stride()];
            FAISS_EXT_THROW_IF_NOT_FMT(
                    number_of_ones(code, stride()) == list.ones,
                    "IndexBinaryFlatKernel: code %" PRId64
                    " does not have %d ones, as its list says",
                    int64_t(id),
                    list.ones);
            check_bits(1, d, code, "IndexBinaryFlatKernel");
            uint8_t folded[FoldedCodes::most_bytes];
            const size_t size = FoldedCodes::size_of(stride());
            if (size > 0) {
                FoldedCodes::fold(code, stride(), folded);
            }
            FAISS_EXT_THROW_IF_NOT_FMT(
                    std::equal(folded, folded + size, &list.folded[i * size]),
                    "IndexBinaryFlatKernel: code %" PRId64
                    " is not folded as it should be",
                    int64_t(id));
        }
    }
}

void IndexBinaryFlatKernel::check_lists() const {
    const size_t size = stride(), folded = FoldedCodes::size_of(size);
    size_t n = 0;
    bool fit = true;
    int before = -1;
    for (const List& list : lists) {
        const size_t length = list.ids.size();
        n += length;
        fit &= list.ones > before && list.ones <= d;
        fit &= list.codes.size() == length * size;
        fit &= list.folded.size() == length * folded;
        before = list.ones;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            fit,
            "IndexBinaryFlatKernel: the lists do not fit the codes in them; they must not be changed by hand");
    FAISS_EXT_THROW_IF_NOT_FMT(
            n == size_t(ntotal),
            "IndexBinaryFlatKernel: ntotal is %" PRId64
            ", but %zu codes are stored; ntotal must not be set by hand",
            int64_t(ntotal),
            n);
}

/// Appends a code that has the ones of the list. Fails only if there is no room
/// (reserve).
void IndexBinaryFlatKernel::append(List& list, idx_t id, const uint8_t* code) {
    AlignedVector<uint8_t>& codes = list.codes.make_owned();
    const size_t begin = codes.size();
    list.ids.make_owned().push_back(id);
    codes.resize(begin + stride());
    std::copy_n(code, code_size, &codes[begin]);
    if (const size_t size = FoldedCodes::size_of(stride()); size > 0) {
        AlignedVector<uint8_t>& folded = list.folded.make_owned();
        folded.resize(folded.size() + size);
        FoldedCodes::fold(
                &codes[begin], stride(), folded.data() + folded.size() - size);
    }
}

/// Overwrites a code with another one of the same list, and its id.
void IndexBinaryFlatKernel::move_code(List& list, size_t from, size_t to) {
    const auto move = [&](MappableVector<uint8_t>& all, size_t size) {
        AlignedVector<uint8_t>& codes = all.make_owned();
        if (!codes.empty()) {
            std::memmove(&codes[to * size], &codes[from * size], size);
        }
    };
    list.ids.make_owned()[to] = list.ids[from];
    move(list.codes, stride());
    move(list.folded, FoldedCodes::size_of(stride()));
}

/// Keeps only the first n codes.
void IndexBinaryFlatKernel::truncate(List& list, size_t n) {
    list.ids.make_owned().resize(n);
    list.codes.make_owned().resize(n * stride());
    list.folded.make_owned().resize(n * FoldedCodes::size_of(stride()));
}

/// Reserves memory, so that so many more codes can be appended.
void IndexBinaryFlatKernel::reserve(List& list, size_t more) {
    make_room(list.ids.make_owned(), more);
    make_room(list.codes.make_owned(), more * stride());
    make_room(list.folded.make_owned(), more * FoldedCodes::size_of(stride()));
}

/// Needs ntotal places.
void IndexBinaryFlatKernel::fill_places() {
    for (const List& list : lists) {
        for (size_t i = 0; i < list.ids.size(); i++) {
            places[list.ids[i]] = pack_place(list.ones, i);
        }
    }
}

uint64_t IndexBinaryFlatKernel::place_of(idx_t id) const {
    const uint64_t place = places.at(id);
    const auto& ids = list_at(place).ids;
    const size_t position = position_in_list(place);
    FAISS_EXT_THROW_IF_NOT_FMT(
            position < ids.size() && ids[position] == id,
            "IndexBinaryFlatKernel: code %" PRId64
            " was not found; the lists must not be changed by hand",
            int64_t(id));
    return place;
}

/// The place of a code, without remembered places.
uint64_t IndexBinaryFlatKernel::find_place(idx_t id) const {
    for (const List& list : lists) {
        const auto& ids = list.ids;
        const auto at = std::lower_bound(ids.begin(), ids.end(), id);
        if (at != ids.end() && *at == id) {
            return pack_place(list.ones, at - ids.begin());
        }
    }
    FAISS_EXT_THROW_FMT(
            "IndexBinaryFlatKernel: code %" PRId64
            " was not found; the lists must not be changed by hand",
            int64_t(id));
}

void IndexBinaryFlatKernel::train(idx_t n, const uint8_t* x) {
    check_batch(n, x, "IndexBinaryFlatKernel::train");
    check_bits(n, d, x, "IndexBinaryFlatKernel::train");
}

void IndexBinaryFlatKernel::add(idx_t n, const uint8_t* x) {
    check_batch(n, x, "IndexBinaryFlatKernel::add");
    check_bits(n, d, x, "IndexBinaryFlatKernel::add");
    check_not_mapped(is_mapped(), "IndexBinaryFlatKernel::add");
    check_lists();
    std::vector<int> ones(n);
    std::vector<idx_t> more(d + 1);
    for (idx_t i = 0; i < n; i++) {
        ones[i] = number_of_ones(x + i * code_size, code_size);
        more[ones[i]]++;
    }
    add_lists(more);
    for (List& list : lists) {
        reserve(list, more[list.ones]);
    }
    if (has_places) {
        make_room(places, n);
    }
    for (idx_t i = 0; i < n; i++) {
        List& list = lists[numbers[ones[i]]];
        const uint8_t* code = x + i * code_size;
        if (has_places) {
            places.push_back(pack_place(ones[i], list.ids.size()));
        }
        append(list, ntotal + i, code);
    }
    ntotal += n;
}

void IndexBinaryFlatKernel::reset() {
    lists.clear();
    number_lists();
    places = {};
    ntotal = 0;
}

void IndexBinaryFlatKernel::add_with_ids(idx_t, const uint8_t*, const idx_t*) {
    throw_unsupported(
            "IndexBinaryFlatKernel",
            "add_with_ids",
            "put an IDMap or IndexIDTable in front of the index");
}

void IndexBinaryFlatKernel::search(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryFlatKernel::search");
    check_bits(n, d, x, "IndexBinaryFlatKernel::search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexBinaryFlatKernel::search");
    check_lists();
    check_k(k, "IndexBinaryFlatKernel::search");
    const auto fill = [&](idx_t q, std::span<const TopK<int32_t>> found) {
        const auto hits = smallest_of(found, k);
        for (idx_t i = 0; i < k; i++) {
            const bool is_there = i < idx_t(hits.size());
            distances[q * k + i] = is_there ? hits[i].first : no_distance;
            labels[q * k + i] = is_there ? hits[i].second : -1;
        }
    };
    if (ntotal == 0) {
        for (idx_t q = 0; q < n; q++) {
            fill(q, {});
        }
        return;
    }
    scan_bits(*this, n, x, k, no_distance, sel, fill);
}

void IndexBinaryFlatKernel::range_search(
        idx_t n,
        const uint8_t* x,
        int radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_batch(n, x, "IndexBinaryFlatKernel::range_search");
    check_bits(n, d, x, "IndexBinaryFlatKernel::range_search");
    const faiss::IDSelector* sel =
            plain_selector(params, "IndexBinaryFlatKernel::range_search");
    check_lists();
    std::vector<std::vector<std::pair<int32_t, idx_t>>> found(n);
    if (radius > 0 && ntotal > 0) {
        const auto keep = [&](idx_t q, std::span<const TopK<int32_t>> all) {
            found[q] = hits_of(all);
            std::sort(
                    found[q].begin(),
                    found[q].end(),
                    [](const auto& a, const auto& b) {
                        return a.second < b.second;
                    });
        };
        scan_bits(*this, n, x, ntotal, radius - 1, sel, keep);
    }
    fill_range_result(
            found,
            result,
            [](const auto& hit) { return float_at_most(hit.first); },
            [](const auto& hit) { return hit.second; });
}

void IndexBinaryFlatKernel::compute_distance_subset(
        idx_t n,
        const uint8_t* x,
        idx_t k,
        int32_t* distances,
        const idx_t* labels) const {
    constexpr const char* where =
            "IndexBinaryFlatKernel::compute_distance_subset";
    check_batch(n, x, where);
    check_bits(n, d, x, where);
    check_lists();
    check_labels(n, k, labels, ntotal, where);
    parallel_blocks(n, 1, [&](idx_t i, idx_t) {
        std::vector<uint64_t> query(stride() / 8);
        std::memcpy(query.data(), x + i * code_size, code_size);
        const int ones = number_of_ones(x + i * code_size, code_size);
        std::vector<const uint8_t*> codes;
        std::vector<int> of_codes;
        for (idx_t j = i * k; j < (i + 1) * k; j++) {
            if (labels[j] >= 0) {
                const uint64_t place = has_places ? place_of(labels[j])
                                                  : find_place(labels[j]);
                codes.push_back(
                        list_at(place).codes.data() +
                        position_in_list(place) * stride());
                of_codes.push_back(ones_of(place));
            }
        }
        std::vector<uint32_t> common(codes.size());
        simd::common_bits(
                query.size(),
                query.data(),
                codes.size(),
                codes.data(),
                common.data());
        size_t c = 0;
        for (idx_t j = i * k; j < (i + 1) * k; j++) {
            distances[j] = no_distance;
            if (labels[j] >= 0) {
                distances[j] = scaled_distance(
                        *kernel, {d, ones, of_codes[c], int(common[c])});
                c++;
            }
        }
    });
}

size_t IndexBinaryFlatKernel::remove_ids(const faiss::IDSelector& sel) {
    check_not_mapped(is_mapped(), "IndexBinaryFlatKernel::remove_ids");
    check_lists();
    std::vector<idx_t> new_id(ntotal, -1);
    idx_t kept = 0;
    for (idx_t i = 0; i < ntotal; i++) {
        if (!sel.is_member(i)) {
            new_id[i] = kept++;
        }
    }
    for (List& list : lists) {
        size_t to = 0;
        for (size_t i = 0; i < list.ids.size(); i++) {
            const idx_t id = new_id[list.ids[i]];
            if (id >= 0) {
                move_code(list, i, to);
                list.ids.make_owned()[to++] = id;
            }
        }
        truncate(list, to);
    }
    if (has_places) {
        places.resize(kept);
        fill_places();
    }
    return std::exchange(ntotal, kept) - kept;
}

std::function<void()> IndexBinaryFlatKernel::prepare_moves(
        const PlaceMoves& moves) {
    check_not_mapped(is_mapped(), "IndexBinaryFlatKernel");
    check_lists();
    if (moves.before > moves.after) {
        remember_places();
    }
    const auto check = [this](idx_t id) {
        if (id < ntotal) { // others are added before the change
            place_of(id);
        }
    };
    moves.for_removed(check);
    for (const auto& move : moves.moves) {
        check(move.from);
    }
    return [this, &moves] {
        moves.for_removed([this](idx_t id) {
            List& list = list_at(places[id]);
            const size_t position = position_in_list(places[id]);
            const size_t last = list.ids.size() - 1;
            if (position != last) {
                move_code(list, last, position);
                places[list.ids[position]] = places[id];
            }
            truncate(list, last);
        });
        for (const auto [from, to] : moves.moves) {
            places[to] = places[from];
            List& list = list_at(places[to]);
            list.ids.make_owned()[position_in_list(places[to])] = to;
        }
        places.resize(std::min(places.size(), size_t(moves.after)));
        ntotal = moves.after;
    };
}

void IndexBinaryFlatKernel::reconstruct(idx_t key, uint8_t* recons) const {
    reconstruct_n(key, 1, recons);
}

void IndexBinaryFlatKernel::reconstruct_n(idx_t i0, idx_t ni, uint8_t* recons)
        const {
    check_lists();
    check_ids(i0, ni, ntotal, "IndexBinaryFlatKernel::reconstruct");
    if (has_places) {
        for (idx_t i = 0; i < ni; i++) {
            const uint64_t place = place_of(i0 + i);
            const List& list = list_at(place);
            std::memcpy(
                    recons + i * code_size,
                    &list.codes[position_in_list(place) * stride()],
                    code_size);
        }
        return;
    }
    for (const List& list : lists) {
        const auto first =
                std::lower_bound(list.ids.begin(), list.ids.end(), i0);
        for (auto at = first; at != list.ids.end() && *at < i0 + ni; ++at) {
            std::memcpy(
                    recons + (*at - i0) * code_size,
                    &list.codes[(at - list.ids.begin()) * stride()],
                    code_size);
        }
    }
}

void IndexBinaryFlatKernel::merge_from(
        faiss::IndexBinary& other,
        idx_t add_id) {
    check_compatible_for_merge(other);
    check_no_add_id(add_id);
    auto& source = dynamic_cast<IndexBinaryFlatKernel&>(other);
    check_not_mapped(is_mapped(), "IndexBinaryFlatKernel::merge_from");
    check_lists();
    source.check_lists();
    std::vector<idx_t> more(d + 1);
    for (const List& list : source.lists) {
        more[list.ones] = idx_t(list.ids.size());
    }
    add_lists(more);
    for (List& list : lists) {
        reserve(list, more[list.ones]);
    }
    if (source.has_places) {
        remember_places();
    }
    if (has_places) {
        make_room(places, source.ntotal);
        places.resize(ntotal + source.ntotal);
    }
    for (const List& from : source.lists) {
        for (size_t i = 0; i < from.ids.size(); i++) {
            List& list = lists[numbers[from.ones]];
            const idx_t id = ntotal + from.ids[i];
            if (has_places) {
                places[id] = pack_place(list.ones, list.ids.size());
            }
            append(list, id, &from.codes[i * stride()]);
        }
    }
    ntotal += source.ntotal;
    source.reset();
}

void IndexBinaryFlatKernel::check_compatible_for_merge(
        const faiss::IndexBinary& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    const auto* source = dynamic_cast<const IndexBinaryFlatKernel*>(&other);
    FAISS_EXT_THROW_IF_NOT_MSG(
            source && source->d == d,
            "cannot merge: expected another IndexBinaryFlatKernel with the same number of bits");
    check_same_kernel(*kernel, *source->kernel);
}

} // namespace faiss_ext
