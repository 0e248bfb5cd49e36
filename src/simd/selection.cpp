#include "simd/selection.h"

#include <algorithm>
#include <limits>

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

/// The smaller one; a where b is NaN.
template <class V>
HWY_INLINE V smaller(V a, V b) {
    return hn::IfThenElse(hn::Lt(b, a), b, a);
}

float smallest_value(size_t n, const float* HWY_RESTRICT v) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const auto none = hn::Set(tag, std::numeric_limits<float>::infinity());
    auto even = none, odd = none;
    size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        even = smaller(even, hn::LoadU(tag, v + i));
        odd = smaller(odd, hn::LoadU(tag, v + i + lanes));
    }
    float found = hn::GetLane(hn::MinOfLanes(tag, smaller(even, odd)));
    for (; i < n; i++) {
        found = v[i] < found ? v[i] : found;
    }
    return found;
}

size_t first_smallest_target(size_t n, const float* HWY_RESTRICT v) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const float wanted = smallest_value(n, v);
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

/// The smallest value of each group, where lane l of `together` consecutive
/// vectors is a group, and the rest one each. Returns how many there are.
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

/// Appends the values up to the bound with their positions.
void take_up_to_target(
        size_t n,
        const float* HWY_RESTRICT v,
        float bound,
        std::vector<std::pair<float, uint32_t>>& found) {
    const Lanes tag;
    const size_t lanes = hn::Lanes(tag);
    const auto limit = hn::Set(tag, bound);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto taken = hn::Le(hn::LoadU(tag, v + i), limit);
        if (!hn::AllFalse(tag, taken)) {
            for (size_t j = i; j < i + lanes; j++) {
                if (v[j] <= bound) {
                    found.emplace_back(v[j], uint32_t(j));
                }
            }
        }
    }
    for (; i < n; i++) {
        if (v[i] <= bound) {
            found.emplace_back(v[i], uint32_t(i));
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(first_smallest_target);
HWY_EXPORT(group_minima_target);
HWY_EXPORT(take_up_to_target);

size_t first_smallest(size_t n, const float* v) {
    return HWY_DYNAMIC_DISPATCH(first_smallest_target)(n, v);
}

void k_smallest(
        size_t n,
        const float* v,
        size_t k,
        std::vector<std::pair<float, uint32_t>>& found,
        std::vector<float>& work) {
    found.clear();
    if (k == 0) {
        return;
    }
    float bound = std::numeric_limits<float>::infinity();
    if (k < n) {
        // the k-th of the minima of some groups is a bound: k values reach it
        const size_t together = std::max<size_t>(1, n / (4 * k));
        work.resize(n);
        const size_t groups = HWY_DYNAMIC_DISPATCH(group_minima_target)(
                n, v, together, work.data());
        if (groups >= k) {
            const auto numbers = std::partition(
                    work.begin(), work.begin() + groups, [](float x) {
                        return x == x;
                    });
            const auto kth = work.begin() + (k - 1);
            if (kth < numbers) {
                std::nth_element(work.begin(), kth, numbers);
                bound = *kth;
            }
        }
    }
    HWY_DYNAMIC_DISPATCH(take_up_to_target)(n, v, bound, found);
    const size_t kept = std::min(k, found.size());
    std::partial_sort(found.begin(), found.begin() + kept, found.end());
    found.resize(kept);
}

} // namespace faiss_ext::simd
#endif
