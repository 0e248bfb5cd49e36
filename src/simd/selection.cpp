// SPDX-License-Identifier: MIT
#include "simd/selection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "simd/instruction_set.h"
#include "simd/ranking.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/selection.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, 16>;

/// Returns the smaller value, or a if b is NaN.
template <class V>
HWY_INLINE V smaller(V a, V b) {
    return hn::IfThenElse(hn::Lt(b, a), b, a);
}

/// Returns the smallest lane. MinOfLanes of EMU128 begins at the largest finite
/// value, which is wrong if all lanes are infinite.
HWY_INLINE float smallest_lane(Lanes tag, hn::Vec<Lanes> v) {
    const float found = hn::GetLane(hn::MinOfLanes(tag, v));
    return hn::AllTrue(tag, hn::Gt(v, hn::Set(tag, found)))
            ? std::numeric_limits<float>::infinity()
            : found;
}

/// Returns the largest lane; see smallest_lane.
HWY_INLINE float largest_lane(Lanes tag, hn::Vec<Lanes> v) {
    const float found = hn::GetLane(hn::MaxOfLanes(tag, v));
    return hn::AllTrue(tag, hn::Lt(v, hn::Set(tag, found)))
            ? -std::numeric_limits<float>::infinity()
            : found;
}

float smallest_value_target(size_t n, const float* HWY_RESTRICT v) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const auto none = hn::Set(tag, std::numeric_limits<float>::infinity());
    auto even = none, odd = none;
    size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        even = smaller(even, hn::LoadU(tag, v + i));
        odd = smaller(odd, hn::LoadU(tag, v + i + lanes));
    }
    float found = smallest_lane(tag, smaller(even, odd));
    for (; i < n; i++) {
        found = v[i] < found ? v[i] : found;
    }
    return found;
}

size_t first_smallest_target(size_t n, const float* HWY_RESTRICT v) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const float wanted = smallest_value_target(n, v);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto equal = hn::Eq(hn::LoadU(tag, v + i), hn::Set(tag, wanted));
        const intptr_t first = hn::FindFirstTrue(tag, equal);
        if (first >= 0) {
            return i + first;
        }
    }
    for (; i < n; i++) {
        if (v[i] == wanted) {
            return i;
        }
    }
    return 0;
}

/// Counts the values up to the bound and finds the largest of them.
HWY_INLINE size_t count_up_to(
        size_t n,
        const float* HWY_RESTRICT v,
        float bound,
        float& largest) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const auto limit = hn::Set(tag, bound);
    const auto none = hn::Set(tag, -std::numeric_limits<float>::infinity());
    auto most = none;
    size_t i = 0, count = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto value = hn::LoadU(tag, v + i);
        const auto is_up_to = hn::Le(value, limit);
        count += hn::CountTrue(tag, is_up_to);
        most = hn::Max(most, hn::IfThenElse(is_up_to, value, none));
    }
    largest = largest_lane(tag, most);
    for (; i < n; i++) {
        if (v[i] <= bound) {
            count++;
            largest = std::max(largest, v[i]);
        }
    }
    return count;
}

float kth_smallest_target(size_t n, const float* v, size_t k) {
    // Bisect over floats as ordered integers. A positive float is its bits; the
    // order of negative ones is reversed.
    const auto number_of = [](float f) {
        const auto bits = int64_t(std::bit_cast<int32_t>(f));
        return bits >= 0 ? bits : int64_t(INT32_MIN) - bits;
    };
    const auto float_of = [](int64_t number) {
        return std::bit_cast<float>(
                int32_t(number >= 0 ? number : int64_t(INT32_MIN) - number));
    };
    float largest;
    count_up_to(n, v, std::numeric_limits<float>::infinity(), largest);
    int64_t too_low = number_of(smallest_value_target(n, v)) - 1;
    int64_t high = number_of(largest);
    while (high - too_low > 1) {
        const int64_t middle = too_low + (high - too_low) / 2;
        const size_t count = count_up_to(n, v, float_of(middle), largest);
        if (count == k) {
            return largest;
        }
        if (count < k) {
            too_low = middle;
        } else {
            high = middle;
        }
    }
    return float_of(high);
}

/// Computes the smallest value of each group and returns the number of groups.
/// A group is lane l of `together` consecutive vectors; each remaining value is
/// a group by itself.
size_t group_minima_target(
        size_t n,
        const float* HWY_RESTRICT v,
        size_t together,
        float* HWY_RESTRICT minima) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    size_t i = 0, groups = 0;
    for (; i + together * lanes <= n; i += together * lanes) {
        auto least = hn::Set(tag, std::numeric_limits<float>::infinity());
        for (size_t j = 0; j < together; j++) {
            least = smaller(least, hn::LoadU(tag, v + i + j * lanes));
        }
        hn::StoreU(least, tag, minima + groups);
        groups += lanes;
    }
    std::copy(v + i, v + n, minima + groups);
    return groups + (n - i);
}

/// Appends the values up to the bound, with their positions.
void take_up_to_target(
        size_t n,
        const float* HWY_RESTRICT v,
        float bound,
        std::vector<std::pair<float, uint32_t>>& found) {
    const Lanes tag;
    const hn::RebindToUnsigned<Lanes> positions;
    const size_t lanes = hn::Lanes(tag);
    const auto limit = hn::Set(tag, bound);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto value = hn::LoadU(tag, v + i);
        const auto taken = hn::Le(value, limit);
        if (!hn::AllFalse(tag, taken)) {
            HWY_ALIGN float values[hn::MaxLanes(tag)];
            HWY_ALIGN uint32_t places[hn::MaxLanes(tag)];
            hn::Store(hn::Compress(value, taken), tag, values);
            hn::Store(
                    hn::Compress(
                            hn::Iota(positions, uint32_t(i)),
                            hn::RebindMask(positions, taken)),
                    positions,
                    places);
            const size_t count = hn::CountTrue(tag, taken);
            for (size_t j = 0; j < count; j++) {
                found.emplace_back(values[j], places[j]);
            }
        }
    }
    for (; i < n; i++) {
        if (v[i] <= bound) {
            found.emplace_back(v[i], uint32_t(i));
        }
    }
}

size_t first_below_target(
        size_t n,
        const float* HWY_RESTRICT v,
        size_t from,
        float bound) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const auto limit = hn::Set(tag, bound);
    size_t i = from;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        const auto least =
                smaller(smaller(limit, hn::LoadU(tag, v + i)),
                        hn::LoadU(tag, v + i + lanes));
        const auto others =
                smaller(smaller(limit, hn::LoadU(tag, v + i + 2 * lanes)),
                        hn::LoadU(tag, v + i + 3 * lanes));
        if (!hn::AllFalse(tag, hn::Lt(smaller(least, others), limit))) {
            break;
        }
    }
    for (; i + lanes <= n; i += lanes) {
        const auto below = hn::Lt(hn::LoadU(tag, v + i), limit);
        const intptr_t first = hn::FindFirstTrue(tag, below);
        if (first >= 0) {
            return i + first;
        }
    }
    while (i < n && !(v[i] < bound)) {
        i++;
    }
    return i;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(smallest_value_target);
HWY_EXPORT(first_smallest_target);
HWY_EXPORT(first_below_target);
HWY_EXPORT(kth_smallest_target);
HWY_EXPORT(group_minima_target);
HWY_EXPORT(take_up_to_target);

size_t first_smallest(size_t n, const float* v) {
    return HWY_DYNAMIC_DISPATCH(first_smallest_target)(n, v);
}

size_t first_below(size_t n, const float* v, size_t from, float bound) {
    return HWY_DYNAMIC_DISPATCH(first_below_target)(n, v, from, bound);
}

float kth_smallest(size_t n, const float* v, size_t k) {
    return HWY_DYNAMIC_DISPATCH(kth_smallest_target)(n, v, k);
}

void k_smallest(
        size_t n,
        const float* v,
        size_t k,
        std::vector<std::pair<float, uint32_t>>& found,
        std::vector<float>& work,
        float slack) {
    found.clear();
    if (k == 0) {
        return;
    }
    float bound = std::numeric_limits<float>::infinity();
    if (k == 1) {
        bound = HWY_DYNAMIC_DISPATCH(smallest_value_target)(n, v);
    } else if (k < n) {
        // the k-th smallest of some groups' minima is a bound, since at least k
        // values are within it
        const size_t together = std::max<size_t>(1, n / (4 * k));
        work.resize(n);
        const size_t groups = HWY_DYNAMIC_DISPATCH(group_minima_target)(
                n, v, together, work.data());
        if (groups >= k) {
            const auto finite = std::partition(
                    work.begin(), work.begin() + groups, [](float x) {
                        return std::isfinite(x);
                    });
            const size_t count = finite - work.begin();
            if (count >= k) {
                bound = HWY_DYNAMIC_DISPATCH(kth_smallest_target)(
                        count, work.data(), k);
            }
        }
    }
    HWY_DYNAMIC_DISPATCH(take_up_to_target)(n, v, bound + slack, found);
    if (slack == 0) {
        keep_smallest(found, k);
        return;
    }
    if (k > 1 && found.size() > k) {
        work.resize(found.size());
        std::transform(
                found.begin(), found.end(), work.begin(), [](const auto& f) {
                    return f.first;
                });
        const float last = kth_smallest(found.size(), work.data(), k) + slack;
        std::erase_if(found, [=](const auto& f) { return f.first > last; });
    }
}

} // namespace faiss_ext::simd
#endif
