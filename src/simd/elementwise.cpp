// SPDX-License-Identifier: MIT
#include "simd/elementwise.h"

#include <algorithm>
#include <cmath>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "simd/sin_cos-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Applies f to all values, vector by vector.
template <class F>
HWY_INLINE void map_values(size_t n, float* HWY_RESTRICT v, F f) {
    const hn::ScalableTag<float> tag;
    const size_t lanes = hn::Lanes(tag);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        hn::StoreU(f(hn::LoadU(tag, v + i)), tag, v + i);
    }
    if (i < n) {
        HWY_ALIGN float rest[hn::MaxLanes(hn::ScalableTag<float>())] = {};
        std::copy(v + i, v + n, rest);
        hn::Store(f(hn::Load(tag, rest)), tag, rest);
        std::copy_n(rest, n - i, v + i);
    }
}

void exp_affine_target(size_t n, float a, float b, float* v) {
    const hn::ScalableTag<float> tag;
    map_values(n, v, [&](auto x) HWY_ATTR {
        return hn::Exp(tag, hn::MulAdd(hn::Set(tag, a), x, hn::Set(tag, b)));
    });
}

void expm1_scaled_target(size_t n, float a, float b, float* v) {
    const hn::ScalableTag<float> tag;
    map_values(n, v, [&](auto x) HWY_ATTR {
        const auto power = hn::Mul(hn::Set(tag, a), x);
        // adding 0 turns -0 into 0
        return hn::MulAdd(
                hn::Set(tag, b), hn::Expm1(tag, power), hn::Zero(tag));
    });
}

void multiply_target(
        size_t n,
        float a,
        const float* HWY_RESTRICT b,
        float* HWY_RESTRICT v) {
    const hn::ScalableTag<float> tag;
    const size_t lanes = hn::Lanes(tag);
    const auto factor = hn::Set(tag, a);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        hn::StoreU(
                hn::Mul(hn::LoadU(tag, v + i),
                        hn::Mul(factor, hn::LoadU(tag, b + i))),
                tag,
                v + i);
    }
    for (; i < n; i++) {
        v[i] = v[i] * (a * b[i]);
    }
}

void cos_sin_turns_target(
        size_t n,
        float a,
        const float* u,
        float* cos,
        float* sin) {
    const hn::ScalableTag<float> tag;
    const size_t lanes = hn::Lanes(tag);
    const auto compute = [&](const float* from, float* c, float* s) HWY_ATTR {
        // the fraction of a turn and then the quarter are exact
        const auto v = hn::LoadU(tag, from);
        const auto turn = hn::Sub(v, hn::Round(v));
        const auto q = hn::Round(hn::Mul(turn, hn::Set(tag, 4.0f)));
        const auto rest = hn::NegMulAdd(q, hn::Set(tag, 0.25f), turn);
        const auto both =
                sin_cos_reduced(hn::Mul(rest, hn::Set(tag, 6.28318531f)), q);
        const auto factor = hn::Set(tag, a);
        hn::StoreU(hn::Mul(factor, both.cos), tag, c);
        hn::StoreU(hn::Mul(factor, both.sin), tag, s);
    };
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        compute(u + i, cos + i, sin + i);
    }
    if (i < n) {
        constexpr size_t most = hn::MaxLanes(hn::ScalableTag<float>());
        HWY_ALIGN float rest[most] = {}, c[most], s[most];
        std::copy(u + i, u + n, rest);
        compute(rest, c, s);
        std::copy_n(c, n - i, cos + i);
        std::copy_n(s, n - i, sin + i);
    }
}

float max_abs_target(size_t n, const float* HWY_RESTRICT v) {
    const hn::ScalableTag<float> tag;
    const size_t lanes = hn::Lanes(tag);
    auto even = hn::Zero(tag), odd = hn::Zero(tag);
    size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        even = hn::Max(even, hn::Abs(hn::LoadU(tag, v + i)));
        odd = hn::Max(odd, hn::Abs(hn::LoadU(tag, v + i + lanes)));
    }
    float largest = hn::GetLane(hn::MaxOfLanes(tag, hn::Max(even, odd)));
    for (; i < n; i++) {
        largest = std::max(largest, std::abs(v[i]));
    }
    return largest;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(exp_affine_target);
HWY_EXPORT(expm1_scaled_target);
HWY_EXPORT(multiply_target);
HWY_EXPORT(cos_sin_turns_target);
HWY_EXPORT(max_abs_target);

void exp_affine(size_t n, float a, float b, float* v) {
    HWY_DYNAMIC_DISPATCH(exp_affine_target)(n, a, b, v);
}

void expm1_scaled(size_t n, float a, float b, float* v) {
    HWY_DYNAMIC_DISPATCH(expm1_scaled_target)(n, a, b, v);
}

void multiply(size_t n, float a, const float* b, float* v) {
    HWY_DYNAMIC_DISPATCH(multiply_target)(n, a, b, v);
}

void cos_sin_turns(size_t n, float a, const float* u, float* cos, float* sin) {
    HWY_DYNAMIC_DISPATCH(cos_sin_turns_target)(n, a, u, cos, sin);
}

float max_abs(size_t n, const float* v) {
    return HWY_DYNAMIC_DISPATCH(max_abs_target)(n, v);
}

} // namespace faiss_ext::simd
#endif
