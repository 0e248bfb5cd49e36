// SPDX-License-Identifier: MIT
#include "simd/weighted_samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "simd/instruction_set.h"

// The half plane of weights and ranks is divided into cells. A cell has a
// number of points that is drawn from a Poisson distribution, and each of them
// has a random bit, weight and rank. Each number is a hash of the component,
// the cell and the number of the point, so that only the cells that may contain
// a sample are visited.
//
// Level i holds the weights from 2^(i - 150) to 2^(i - 149), which is its
// width. Level 0 holds all weights below 2^-149, and is as wide as level 1. A
// weight is written as level * 2^23 plus its mantissa. In each level, ranks are
// measured in units in which a unit has one point, of all bits together.
//
// From rank 1 on, each unit of ranks is a cell. Cells of lower ranks contain
// few points of each level. The lower the ranks, the more levels have a cell in
// common, so that few cells are empty and few are visited in vain.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/weighted_samples.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

#ifndef FAISS_EXT_WEIGHTED_SAMPLES
#define FAISS_EXT_WEIGHTED_SAMPLES
namespace faiss_ext::simd {
namespace {

constexpr int num_levels = 278;
constexpr int most_points = 13;

/// Thresholds of a uniform 32-bit number: a cell has more than n points if the
/// number exceeds more_than[n].
struct Counts {
    uint32_t more_than[most_points + 1];
};

/// @param none  exp(-mean)
constexpr Counts poisson_counts(double mean, double none) {
    Counts counts{};
    double probability = none, sum = 0;
    for (int n = 0; n <= most_points; n++) {
        sum += probability;
        const double threshold = sum * 0x1p32 - 1;
        counts.more_than[n] =
                threshold < 0xffffffffp0 ? uint32_t(threshold) : 0xffffffff;
        probability *= mean / (n + 1);
    }
    return counts;
}

/// Cells of the same size. There is one for each group of 2^log_levels levels;
/// of units there is one for each level and rank.
struct Family {
    int log_levels;
    float begin, width; ///< ranks
    Counts counts;
};

constexpr double exp_7_32 = 0.8035225736890608;
constexpr Family families[] = {
        {0, 1, 1, poisson_counts(1, 0.36787944117144233)},
        {0, 1.0f / 4, 3.0f / 4, poisson_counts(0.75, 0.4723665527410147)},
        {0, 1.0f / 32, 7.0f / 32, poisson_counts(7.0 / 32, exp_7_32)},
        {3, 1.0f / 256, 7.0f / 256, poisson_counts(7.0 / 32, exp_7_32)},
        {6, 1.0f / 2048, 7.0f / 2048, poisson_counts(7.0 / 32, exp_7_32)},
        {9, 0, 1.0f / 2048, poisson_counts(0.25, 0.7788007830714049)}};
constexpr int num_families = 6, units = 0;

constexpr uint32_t multiplier_a = 0x7feb352d, multiplier_b = 0x2c1b3c6d,
                   last_a = 0x846ca68b, last_b = 0x297a2d39,
                   last_weight = 0x9e3779b1;
/// Added to the hashes for the next rank, and for the next point of a cell.
constexpr uint32_t rank_a = 0x9e3779b9, rank_b = 0x85ebca6b,
                   point_a = 0xc2b2ae35, point_b = 0x27d4eb2f;

constexpr uint32_t mixed(uint32_t v) {
    v = (v ^ v >> 16) * multiplier_a;
    v = (v ^ v >> 15) * last_a;
    return v ^ v >> 16;
}

/// Added to the hashes for each group of levels.
struct Salts {
    uint32_t a[num_families][num_levels], b[num_families][num_levels];
};

constexpr Salts salts = [] {
    Salts s{};
    uint32_t next = 1;
    for (int f = 0; f < num_families; f++) {
        for (int i = 0; i < num_levels; i++) {
            s.a[f][i] = mixed(next++);
            s.b[f][i] = mixed(next++);
        }
    }
    return s;
}();

/// The lanes whose bits are set in a byte, in order, and their number.
struct ChosenLanes {
    uint32_t order[256][8];
    uint8_t count[256];
};

constexpr ChosenLanes chosen_lanes = [] {
    ChosenLanes lanes{};
    for (int bits = 0; bits < 256; bits++) {
        for (uint32_t lane = 0; lane < 8; lane++) {
            if (bits >> lane & 1) {
                lanes.order[bits][lanes.count[bits]++] = lane;
            }
        }
    }
    return lanes;
}();

/// A weight as level * 2^23 + mantissa; in whole numbers, since some processes
/// make the processor take subnormal numbers for 0.
inline uint32_t level_and_mantissa(float weight) {
    const uint32_t bits = std::bit_cast<uint32_t>(weight);
    if (bits >= 1u << 23) {
        return bits + (23u << 23);
    }
    const int shift = std::countl_zero(bits) - 8;
    return (uint32_t(23 - shift) << 23) + (bits << shift);
}

/// The weight of a level and mantissa.
inline double weight_of(uint32_t level_and_mantissa) {
    return std::bit_cast<double>(
            (uint64_t(level_and_mantissa) << 29) +
            (uint64_t(1023 - 150) << 52));
}

/// The highest level with weights below a weight, as of level_and_mantissa.
inline int top_level(uint32_t weight) {
    return int((weight - 1) >> 23);
}

inline double power_of_2(int exponent) {
    return std::bit_cast<double>(uint64_t(exponent + 1023) << 52);
}

/// The binary exponent of a level's width, but for a constant.
inline int width_exponent(int level) {
    return std::max(level, 1);
}

/// The components of a vector, by descending level, and the ranks to visit.
struct Sweep {
    size_t count;
    int top, bottom;
    const uint32_t* from_level; ///< number of components of this level or above
    double done, limit;         ///< ranks visited, in units of the top level

    size_t components_from(int level) const {
        return level > top       ? 0
                : level < bottom ? count
                                 : size_t(from_level[level]);
    }

    double in_units(int level, double rank) const {
        return rank * power_of_2(width_exponent(level) - width_exponent(top));
    }

    /// Whether to visit cells whose highest level is `level`.
    bool has(int level, double begin) const {
        return in_units(level, done) <= begin && begin < in_units(level, limit);
    }
};

/// Vectors are processed in blocks. Lists have room for what a block adds.
constexpr size_t block = 1024, full = 1024, room = full + block + 32;

} // namespace
} // namespace faiss_ext::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<uint32_t, 16>;
using Floats = hn::RebindToFloat<Tag>;
using Ints = hn::RebindToSigned<Tag>;
using Vec = hn::Vec<Tag>;
using Mask = hn::Mask<Tag>;

struct Lists {
    // of the components, by descending level
    uint32_t *hash_a, *hash_b, *weight;

    // points to be compared with the least of their bit
    uint32_t *key, *bit;
    size_t points = 0;

    // cells that have more points. `cell` is the rank of a unit as a float, or
    // the weight at which another cell begins; `number` gives the number of
    // points.
    uint32_t *more_a, *more_b, *more_weight, *cell, *number;
    size_t more = 0;

    uint32_t* keys; // the least keys found
    uint32_t nbits;

    void set_sizes(const Lists& other) {
        points = other.points;
        more = other.more;
    }
};

HWY_INLINE Vec stirred(Vec v, uint32_t multiplier) {
    v = hn::Xor(v, hn::ShiftRight<16>(v));
    v = hn::Mul(v, hn::Set(Tag(), multiplier));
    return hn::Xor(v, hn::ShiftRight<15>(v));
}

/// Returns the lower half of a random number times nbits / 2^16.
HWY_INLINE Vec bit_of(Vec number, uint32_t nbits) {
    const Tag tag;
    const Vec factor = hn::Set(tag, nbits);
#if HWY_TARGET == HWY_SCALAR
    return hn::ShiftRight<16>(
            hn::Mul(hn::And(number, hn::Set(tag, 0xffff)), factor));
#else
    const hn::Repartition<uint16_t, Tag> halves;
    return hn::BitCast(
            tag,
            hn::MulHigh(
                    hn::BitCast(halves, number), hn::BitCast(halves, factor)));
#endif
}

// The lanes of a mask, to be appended to arrays. Writes whole vectors.
#if HWY_HAVE_SCALABLE || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
struct Chosen {
    Mask mask;
    size_t count;
};

HWY_INLINE Chosen chosen(Mask mask) {
    return {mask, hn::CountTrue(Tag(), mask)};
}

HWY_INLINE void append(Vec v, const Chosen& lanes, uint32_t* to) {
    hn::StoreU(hn::Compress(v, lanes.mask), Tag(), to);
}
#else
// GCC copies the tables of Highway's Compress at every call
struct Chosen {
    decltype(hn::IndicesFromVec(Tag(), hn::Zero(Tag()))) order;
    size_t count;
};

HWY_INLINE Chosen chosen(Mask mask) {
    uint8_t bits[8];
    hn::StoreMaskBits(Tag(), mask, bits);
    const size_t at = bits[0];
    return {hn::IndicesFromVec(Tag(), hn::LoadU(Tag(), chosen_lanes.order[at])),
            chosen_lanes.count[at]};
}

HWY_INLINE void append(Vec v, const Chosen& lanes, uint32_t* to) {
    hn::StoreU(hn::TableLookupLanes(v, lanes.order), Tag(), to);
}
#endif

/// Appends a point of each cell in the mask whose weight is below that of the
/// component.
template <int family, bool check_weights>
HWY_INLINE void add_points(
        Lists& l,
        Vec a,
        Vec number,
        Vec b,
        Vec weight,
        Vec cell,
        uint32_t level,
        Mask mask) {
    constexpr Family f = families[family];
    const Tag tag;
    const Floats floats;
    const Vec bit = bit_of(number, l.nbits);
    const Vec stirred_b = stirred(b, multiplier_b);
    const Vec random = hn::Mul(stirred_b, hn::Set(tag, last_b));
    // an odd number of 21 bits, so that all products are exact
    const Vec fraction =
            hn::Or(hn::And(hn::ShiftRight<10>(random), hn::Set(tag, 0x1fffff)),
                   hn::Set(tag, 1));
    auto rank =
            hn::Mul(hn::ConvertTo(floats, hn::BitCast(Ints(), fraction)),
                    hn::Set(floats, f.width * 0x1p-21f));
    Vec first = hn::Set(tag, level);
    if constexpr (family == units) {
        rank = hn::Add(rank, hn::BitCast(floats, cell));
    } else {
        rank = hn::Add(rank, hn::Set(floats, f.begin));
        first = cell;
        if constexpr (f.log_levels > 0) {
            first = hn::Add(
                    first,
                    hn::ShiftLeft<23>(hn::ShiftRight<32 - f.log_levels>(a)));
        }
    }
    if (check_weights) {
        const Vec mantissa = hn::ShiftRight<9>(
                hn::Mul(stirred_b, hn::Set(tag, last_weight)));
        mask = hn::And(mask, hn::Lt(hn::Add(first, mantissa), weight));
    }
    // dividing by the width of the level subtracts from the exponent
    const Vec exponent =
            hn::Sub(hn::Set(tag, uint32_t(num_levels - 1) << 23),
                    hn::Max(first, hn::Set(tag, 1u << 23)));
    const Vec key = hn::Add(hn::BitCast(tag, rank), exponent);
    const Vec key_and_bit = hn::Or(
            hn::AndNot(hn::Set(tag, 1), key), hn::ShiftRight<31>(random));
    const Chosen lanes = chosen(mask);
    append(bit, lanes, l.bit + l.points);
    append(key_and_bit, lanes, l.key + l.points);
    l.points += lanes.count;
}

/// Appends the cells in the mask to those that have more points.
HWY_INLINE void append_cells(
        Lists& l,
        Vec a,
        Vec b,
        Vec weight,
        Vec number,
        Vec cell,
        Mask mask) {
    const Chosen lanes = chosen(mask);
    append(a, lanes, l.more_a + l.more);
    append(b, lanes, l.more_b + l.more);
    append(weight, lanes, l.more_weight + l.more);
    append(number, lanes, l.number + l.more);
    append(cell, lanes, l.cell + l.more);
    l.more += lanes.count;
}

/// Appends the first points of cells, and the cells that have more.
template <int family, bool check_weights>
HWY_INLINE void add_cells(
        Lists& l,
        Vec a,
        Vec b,
        Vec weight,
        Vec cell,
        uint32_t level) {
    constexpr Family f = families[family];
    const Tag tag;
    const Vec stirred_a = stirred(a, multiplier_a);
    const Vec number = hn::Mul(stirred_a, hn::Set(tag, last_a));
    const Mask some = hn::Gt(number, hn::Set(tag, f.counts.more_than[0]));
    if (family != units && hn::AllFalse(tag, some)) {
        return;
    }
    add_points<family, check_weights>(
            l, stirred_a, number, b, weight, cell, level, some);
    const Mask more = hn::Gt(number, hn::Set(tag, f.counts.more_than[1]));
    if (family == units || !hn::AllFalse(tag, more)) {
        append_cells(l, a, b, weight, number, cell, more);
    }
}

void keep_least(Lists& l) {
    uint32_t* HWY_RESTRICT keys = l.keys;
    const uint32_t* HWY_RESTRICT key = l.key;
    const uint32_t* HWY_RESTRICT bit = l.bit;
    const size_t points = l.points;
    for (size_t i = 0; i < points; i++) {
        keys[bit[i]] = std::min(keys[bit[i]], key[i]);
    }
    l.points = 0;
}

/// Appends the points of cells after the first.
template <int family>
void add_rest(Lists& lists, uint32_t level) {
    constexpr Family f = families[family];
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    for (int n = 2; lists.more > 0; n++) {
        if (lists.points > full) {
            keep_least(lists);
        }
        Lists l = lists; // the compiler keeps its sizes in registers
        const size_t size = l.more;
        l.more = 0;
        for (size_t i = 0; i < size; i += lanes) {
            const Mask valid = hn::FirstN(tag, size - i);
            const Vec a = hn::Add(
                    hn::LoadU(tag, l.more_a + i), hn::Set(tag, point_a));
            const Vec b = hn::Add(
                    hn::LoadU(tag, l.more_b + i), hn::Set(tag, point_b));
            const Vec weight = hn::LoadU(tag, l.more_weight + i);
            const Vec cell = hn::LoadU(tag, l.cell + i);
            const Vec number = hn::LoadU(tag, l.number + i);
            const Vec stirred_a = stirred(a, multiplier_a);
            add_points<family, true>(
                    l,
                    stirred_a,
                    hn::Mul(stirred_a, hn::Set(tag, last_a)),
                    b,
                    weight,
                    cell,
                    level,
                    valid);
            const Mask more = hn::And(
                    valid, hn::Gt(number, hn::Set(tag, f.counts.more_than[n])));
            append_cells(l, a, b, weight, number, cell, more);
        }
        lists.set_sizes(l);
        if (n == most_points) {
            lists.more = 0;
        }
    }
}

/// Makes room for a block.
template <int family>
HWY_INLINE void make_room(Lists& lists, uint32_t level) {
    if (lists.more > full) {
        add_rest<family>(lists, level);
    }
    if (lists.points > full) {
        keep_least(lists);
    }
}

/** Visits a cell of the first n components, or units of rank `begin` to `end` -
 * 1. The weights of the first `whole` components exceed those of the cell.
 */
template <int family>
void visit_components(
        Lists& lists,
        size_t n,
        size_t whole,
        int group,
        int begin = 0,
        int end = 1) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    const uint32_t level =
            uint32_t(uint64_t(group) << (23 + families[family].log_levels));
    const int together = int(std::max<size_t>(block / (n + lanes), 1));
    for (int rank = begin; rank < end; rank += together) {
        for (size_t first = 0; first < n; first += block) {
            make_room<family>(lists, level);
            Lists l = lists;
            const size_t last = std::min(n, first + block);
            for (int q = rank; q < std::min(end, rank + together); q++) {
                const Vec a = hn::Set(
                        tag, salts.a[family][group] + uint32_t(q) * rank_a);
                const Vec b = hn::Set(
                        tag, salts.b[family][group] + uint32_t(q) * rank_b);
                const Vec cell = hn::Set(
                        tag,
                        family == units ? std::bit_cast<uint32_t>(float(q))
                                        : level);
                size_t i = first;
                if (families[family].log_levels == 0) {
                    for (; i + lanes <= std::min(last, whole); i += lanes) {
                        add_cells<family, false>(
                                l,
                                hn::Add(hn::LoadU(tag, l.hash_a + i), a),
                                hn::Add(hn::LoadU(tag, l.hash_b + i), b),
                                hn::LoadU(tag, l.weight + i),
                                cell,
                                level);
                    }
                }
                for (; i < last; i += lanes) {
                    add_cells<family, true>(
                            l,
                            hn::Add(hn::LoadU(tag, l.hash_a + i), a),
                            hn::Add(hn::LoadU(tag, l.hash_b + i), b),
                            hn::LoadU(tag, l.weight + i),
                            cell,
                            level);
                }
            }
            lists.set_sizes(l);
        }
    }
}

/// Visits units of rank `begin` to `end` - 1 of one component.
void visit_units(Lists& lists, size_t i, int group, int begin, int end) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    const uint32_t level = uint32_t(group) << 23;
    for (int first = begin; first < end; first += int(block)) {
        make_room<units>(lists, level);
        Lists l = lists;
        const int last = std::min(end, first + int(block));
        for (int q = first; q < last; q += int(lanes)) {
            const Vec rank = hn::Iota(tag, uint32_t(q));
            const Vec a = hn::Set(tag, l.hash_a[i] + salts.a[units][group]);
            const Vec b = hn::Set(tag, l.hash_b[i] + salts.b[units][group]);
            add_cells<units, true>(
                    l,
                    hn::Add(a, hn::Mul(rank, hn::Set(tag, rank_a))),
                    hn::Add(b, hn::Mul(rank, hn::Set(tag, rank_b))),
                    // no weight is below 0
                    hn::IfThenElseZero(
                            hn::FirstN(tag, size_t(last - q)),
                            hn::Set(tag, l.weight[i])),
                    hn::BitCast(
                            tag,
                            hn::ConvertTo(Floats(), hn::BitCast(Ints(), rank))),
                    level);
        }
        lists.set_sizes(l);
    }
}

/// Visits the cells of a family other than units.
template <int family>
void visit_family(Lists& lists, const Sweep& s) {
    constexpr Family f = families[family];
    constexpr int levels = 1 << f.log_levels;
    for (int group = s.top / levels; group >= 0; group--) {
        const int highest = std::min(s.top, (group + 1) * levels - 1);
        if (s.in_units(highest, s.limit) <= f.begin) {
            break;
        }
        if (s.has(highest, f.begin)) {
            visit_components<family>(
                    lists,
                    s.components_from(group * levels),
                    s.components_from(group * levels + 1),
                    group);
        }
    }
    add_rest<family>(lists, 0);
}

void visit_all_units(Lists& lists, const Sweep& s) {
    const size_t lanes = hn::Lanes(Tag());
    for (int level = s.top; level >= 0; level--) {
        const int end = int(std::ceil(s.in_units(level, s.limit)));
        if (end <= 1) {
            break;
        }
        const int begin =
                std::max(1, int(std::ceil(s.in_units(level, s.done))));
        const size_t n = s.components_from(level);
        if (2 * n > lanes || end - begin < 2) {
            visit_components<units>(
                    lists, n, s.components_from(level + 1), level, begin, end);
        } else {
            for (size_t i = 0; i < n; i++) {
                visit_units(lists, i, level, begin, end);
            }
        }
        add_rest<units>(lists, uint32_t(level) << 23);
    }
}

/// Hashes the numbers of components, in place and to hash_b.
void hash_components(
        size_t count,
        uint32_t seed_a,
        uint32_t seed_b,
        uint32_t* hash_a,
        uint32_t* hash_b) {
    const Tag tag;
    const auto hash = [&](Vec v, uint32_t first, uint32_t last) HWY_ATTR {
        v = hn::Mul(stirred(v, first), hn::Set(tag, last));
        return hn::Xor(v, hn::ShiftRight<16>(v));
    };
    for (size_t i = 0; i < count; i += hn::Lanes(tag)) {
        const Vec k = hn::LoadU(tag, hash_a + i);
        const Vec a = hn::Add(k, hn::Set(tag, seed_a));
        const Vec b = hn::Add(
                hn::Mul(k, hn::Set(tag, last_weight)), hn::Set(tag, seed_b));
        hn::StoreU(hash(a, multiplier_a, last_a), tag, hash_a + i);
        hn::StoreU(hash(b, multiplier_b, last_b), tag, hash_b + i);
    }
}

void weighted_samples_target(
        size_t count,
        const int32_t* components,
        const float* weights,
        uint32_t seed_a,
        uint32_t seed_b,
        size_t nbits,
        uint32_t* keys,
        std::vector<uint32_t>& work) {
    constexpr size_t most_lanes = 16;
    const size_t padded = count + most_lanes;
    work.resize(3 * padded + 5 * room + 2 * (2 * room));
    uint32_t* free = work.data();
    const auto take = [&](size_t size) {
        return std::exchange(free, free + size);
    };
    Lists l;
    l.keys = keys;
    l.nbits = uint32_t(nbits);
    for (uint32_t** p : {&l.hash_a, &l.hash_b, &l.weight}) {
        *p = take(padded);
    }
    for (uint32_t** p : {&l.more_a, &l.more_b, &l.more_weight}) {
        *p = take(room);
    }
    l.cell = take(room);
    l.number = take(room);
    l.key = take(2 * room);
    l.bit = take(2 * room);

    // sort by level: count, then move
    uint32_t from_level[num_levels] = {};
    Sweep s{count, 0, num_levels, from_level, 0, 0};
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t weight = level_and_mantissa(weights[i]);
        const int level = top_level(weight);
        from_level[level]++;
        s.top = std::max(s.top, level);
        s.bottom = std::min(s.bottom, level);
        sum += weight_of(weight);
    }
    uint32_t before = 0;
    for (int level = s.top; level >= s.bottom; level--) {
        before += std::exchange(from_level[level], before);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t weight = level_and_mantissa(weights[i]);
        const size_t place = from_level[top_level(weight)]++;
        l.hash_a[place] = uint32_t(components[i]);
        l.weight[place] = weight;
    }
    for (size_t i = count; i < padded; i++) {
        l.hash_a[i] = l.weight[i] = 0;
    }
    hash_components(count, seed_a, seed_b, l.hash_a, l.hash_b);

    std::fill_n(keys, nbits, 0xffffffff);
    // With this number of points per bit, 2 of 3 vectors have one for each bit.
    double points = std::log(double(nbits)) + 1;
    const double unit =
            double(nbits) / sum * power_of_2(width_exponent(s.top) - 150);
    for (;;) {
        // a float with a short mantissa is exact in all units
        const float rounded = float(points * unit);
        const uint32_t limit =
                (std::bit_cast<uint32_t>(rounded) + 0xffff) & 0xffff0000;
        s.limit = double(std::bit_cast<float>(limit));
        visit_all_units(l, s);
        visit_family<1>(l, s);
        visit_family<2>(l, s);
        visit_family<3>(l, s);
        visit_family<4>(l, s);
        visit_family<5>(l, s);
        keep_least(l);
        // all points of lower ranks have been visited
        const uint32_t limit_of_keys = limit +
                (uint32_t(num_levels - 1 - width_exponent(s.top)) << 23);
        uint32_t largest = 0;
        for (size_t j = 0; j < nbits; j++) {
            largest = std::max(largest, keys[j]);
        }
        if (largest < limit_of_keys) {
            return;
        }
        s.done = s.limit;
        points += 1;
    }
}

size_t positive_components_target(
        size_t d,
        const float* HWY_RESTRICT x,
        int32_t* HWY_RESTRICT components,
        float* HWY_RESTRICT values) {
    const hn::CappedTag<float, 16> tag;
    const size_t lanes = hn::Lanes(tag);
    size_t count = 0;
    for (size_t begin = 0; begin < d; begin += lanes) {
        const size_t end = std::min(d, begin + lanes);
        if (end - begin == lanes &&
            hn::AllFalse(
                    tag, hn::Gt(hn::LoadU(tag, x + begin), hn::Zero(tag)))) {
            continue;
        }
        for (size_t k = begin; k < end; k++) {
            components[count] = int32_t(k);
            values[count] = x[k];
            count += x[k] > 0;
        }
    }
    return count;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(weighted_samples_target);
HWY_EXPORT(positive_components_target);

void weighted_samples(
        size_t count,
        const int32_t* components,
        const float* weights,
        uint32_t seed_a,
        uint32_t seed_b,
        size_t nbits,
        uint32_t* keys,
        std::vector<uint32_t>& work) {
    HWY_DYNAMIC_DISPATCH(weighted_samples_target)
    (count, components, weights, seed_a, seed_b, nbits, keys, work);
}

size_t positive_components(
        size_t d,
        const float* x,
        int32_t* components,
        float* values) {
    return HWY_DYNAMIC_DISPATCH(positive_components_target)(
            d, x, components, values);
}

} // namespace faiss_ext::simd
#endif
