// SPDX-License-Identifier: MIT
#include "simd/weighted_samples.h"

#include <limits>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/weighted_samples.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// At most 8 lanes, so that multiples of 8 bits have no remainder.
using Tag = hn::CappedTag<float, 8>;
using Ints = hn::RebindToSigned<Tag>;

/// Chooses for V vectors of bits from j on; the best components stay in
/// registers.
template <size_t V>
HWY_INLINE void samples(
        size_t count,
        const int32_t* HWY_RESTRICT components,
        const float* HWY_RESTRICT logarithms,
        size_t nbits,
        size_t j,
        const float* HWY_RESTRICT rate,
        const float* HWY_RESTRICT shift,
        const float* HWY_RESTRICT cost,
        int32_t* HWY_RESTRICT chosen,
        int32_t* HWY_RESTRICT level) {
    const Tag tag;
    const Ints ints;
    const size_t lanes = hn::Lanes(tag);
    const auto one = hn::Set(tag, 1);
    hn::Vec<Tag> best[V], level_of_best[V];
    hn::Vec<Ints> best_component[V];
    for (size_t v = 0; v < V; v++) {
        best[v] = hn::Set(tag, std::numeric_limits<float>::infinity());
        level_of_best[v] = hn::Zero(tag);
        best_component[v] = hn::Set(ints, -1);
    }
    for (size_t i = 0; i < count; i++) {
        const auto l = hn::Set(tag, logarithms[i]);
        const auto component = hn::Set(ints, components[i]);
        const size_t row = size_t(components[i]) * nbits + j;
        for (size_t v = 0; v < V; v++) {
            const size_t at = row + v * lanes;
            const auto r = hn::LoadU(tag, rate + at);
            const auto q = hn::Add(hn::Div(l, r), hn::LoadU(tag, shift + at));
            const auto whole = hn::Floor(q);
            const auto rest = hn::Sub(one, hn::Sub(q, whole));
            const auto value = hn::NegMulAdd(
                    r, rest, hn::Sub(hn::LoadU(tag, cost + at), l));
            const auto is_better = hn::Lt(value, best[v]);
            best[v] = hn::IfThenElse(is_better, value, best[v]);
            level_of_best[v] =
                    hn::IfThenElse(is_better, whole, level_of_best[v]);
            best_component[v] = hn::IfThenElse(
                    hn::RebindMask(ints, is_better),
                    component,
                    best_component[v]);
        }
    }
    for (size_t v = 0; v < V; v++) {
        hn::StoreU(best_component[v], ints, chosen + j + v * lanes);
        hn::StoreU(
                hn::ConvertTo(ints, level_of_best[v]),
                ints,
                level + j + v * lanes);
    }
}

void weighted_samples_target(
        size_t count,
        const int32_t* components,
        const float* logarithms,
        size_t nbits,
        const float* rate,
        const float* shift,
        const float* cost,
        int32_t* chosen,
        int32_t* level) {
    constexpr size_t together = 4;
    const size_t lanes = hn::Lanes(Tag());
    size_t j = 0;
    for (; j + together * lanes <= nbits; j += together * lanes) {
        samples<together>(
                count,
                components,
                logarithms,
                nbits,
                j,
                rate,
                shift,
                cost,
                chosen,
                level);
    }
    for (; j < nbits; j += lanes) {
        samples<1>(
                count,
                components,
                logarithms,
                nbits,
                j,
                rate,
                shift,
                cost,
                chosen,
                level);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(weighted_samples_target);

void weighted_samples(
        size_t count,
        const int32_t* components,
        const float* logarithms,
        size_t nbits,
        const float* rate,
        const float* shift,
        const float* cost,
        int32_t* chosen,
        int32_t* level) {
    HWY_DYNAMIC_DISPATCH(weighted_samples_target)
    (count, components, logarithms, nbits, rate, shift, cost, chosen, level);
}

} // namespace faiss_ext::simd
#endif
