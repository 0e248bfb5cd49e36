// SPDX-License-Identifier: MIT
#include "simd/homogeneous_map.h"

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/homogeneous_map.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "simd/sin_cos-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

/// Computes sine and cosine for |t| up to some 1000. The angle is reduced by
/// multiples of pi / 2, which are subtracted in three parts.
HWY_INLINE SinCos sin_cos(Vec t) {
    const Tag tag;
    const auto set = [&](float v) { return hn::Set(tag, v); };
    const Vec q = hn::Round(hn::Mul(t, set(0.636619772f)));
    Vec r = hn::NegMulAdd(q, set(1.5703125f), t);
    r = hn::NegMulAdd(q, set(4.837512969970703e-4f), r);
    r = hn::NegMulAdd(q, set(7.549789948768648e-8f), r);
    return sin_cos_reduced(r, q);
}

/// Maps one vector of coordinates. store(i, v) receives component i of each.
template <class Store>
HWY_INLINE void map_vector(
        const HomogeneousMap& map,
        Vec x,
        Vec scale,
        Store&& store) {
    const Tag tag;
    const Vec v = hn::Mul(hn::Abs(x), scale);
    const auto zero = hn::Lt(v, hn::Set(tag, 1e-37f));
    if (hn::AllTrue(tag, zero)) { // common in images and sparse histograms
        for (size_t i = 0; i < 2 * map.order + 1; i++) {
            store(i, hn::CopySign(hn::Zero(tag), x));
        }
        return;
    }
    // the logarithm of 0 would be as fast, but gives infinities
    const Vec safe = hn::IfThenElse(zero, hn::Set(tag, 1.0f), v);
    const bool needs_log = map.order > 0 || map.half_degree != 0.5f;
    const Vec log = needs_log ? hn::Log(tag, safe) : hn::Zero(tag);
    Vec root;
    if (map.half_degree == 0.5f) {
        root = hn::Sqrt(safe);
    } else {
        root = hn::Exp(tag, hn::Mul(hn::Set(tag, map.half_degree), log));
        root = hn::Min(root, hn::Set(tag, 1e38f));
    }
    root = hn::CopySign(hn::IfThenZeroElse(zero, root), x);
    store(0, hn::Mul(root, hn::Set(tag, map.amplitudes[0])));
    if (map.order == 0) {
        return;
    }
    const SinCos first = sin_cos(hn::Mul(hn::Set(tag, map.frequency), log));
    SinCos now = first;
    for (size_t j = 1;; j++) {
        const Vec r = hn::Mul(root, hn::Set(tag, map.amplitudes[j]));
        store(2 * j - 1, hn::Mul(r, now.cos));
        store(2 * j, hn::Mul(r, now.sin));
        if (j == map.order) {
            break;
        }
        const Vec c =
                hn::NegMulAdd(now.sin, first.sin, hn::Mul(now.cos, first.cos));
        now.sin = hn::MulAdd(now.sin, first.cos, hn::Mul(now.cos, first.sin));
        now.cos = c;
    }
}

void homogeneous_map_target(
        const HomogeneousMap& map,
        size_t d,
        const float* HWY_RESTRICT x,
        float scale,
        float* HWY_RESTRICT out) {
    const Tag tag;
    const size_t lanes = hn::Lanes(tag);
    const Vec s = hn::Set(tag, scale);
    size_t k = 0;
    for (; k + lanes <= d; k += lanes) {
        map_vector(map, hn::LoadU(tag, x + k), s, [&](size_t i, Vec v) {
            hn::StoreU(v, tag, out + i * d + k);
        });
    }
    if (k < d) {
        HWY_ALIGN float rest[hn::MaxLanes(Tag())] = {};
        for (size_t j = k; j < d; j++) {
            rest[j - k] = x[j];
        }
        map_vector(map, hn::Load(tag, rest), s, [&](size_t i, Vec v) {
            hn::Store(v, tag, rest);
            for (size_t j = k; j < d; j++) {
                out[i * d + j] = rest[j - k];
            }
        });
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(homogeneous_map_target);

void homogeneous_map(
        const HomogeneousMap& map,
        size_t d,
        const float* x,
        float scale,
        float* out) {
    HWY_DYNAMIC_DISPATCH(homogeneous_map_target)(map, d, x, scale, out);
}

} // namespace faiss_ext::simd
#endif
