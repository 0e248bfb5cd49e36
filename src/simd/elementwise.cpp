#include "simd/elementwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// v = f(v), vector by vector.
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
        return hn::Mul(hn::Set(tag, b), hn::Expm1(tag, power));
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

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(exp_affine_target);
HWY_EXPORT(expm1_scaled_target);
HWY_EXPORT(multiply_target);

void exp_affine(size_t n, float a, float b, float* v) {
    HWY_DYNAMIC_DISPATCH(exp_affine_target)(n, a, b, v);
}

void expm1_scaled(size_t n, float a, float b, float* v) {
    HWY_DYNAMIC_DISPATCH(expm1_scaled_target)(n, a, b, v);
}

void multiply(size_t n, float a, const float* b, float* v) {
    HWY_DYNAMIC_DISPATCH(multiply_target)(n, a, b, v);
}

} // namespace faiss_ext::simd
#endif
