// SPDX-License-Identifier: MIT
// Sine and cosine, for the targets of Highway.

#if defined(FAISS_EXT_SIMD_SIN_COS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_EXT_SIMD_SIN_COS_INL_H
#undef FAISS_EXT_SIMD_SIN_COS_INL_H
#else
#define FAISS_EXT_SIMD_SIN_COS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct SinCos {
    hn::Vec<hn::ScalableTag<float>> sin, cos;
};

/// Computes both of r + q pi / 2 by polynomials, for r in [-pi / 4, pi / 4] and
/// whole q.
inline HWY_ATTR SinCos sin_cos_reduced(
        hn::Vec<hn::ScalableTag<float>> r,
        hn::Vec<hn::ScalableTag<float>> q) {
    using Vec = hn::Vec<hn::ScalableTag<float>>;
    const hn::ScalableTag<float> tag;
    const auto set = [&](float v) HWY_ATTR { return hn::Set(tag, v); };
    const Vec r2 = hn::Mul(r, r);

    Vec s = hn::MulAdd(r2, set(-1.9515295891e-4f), set(8.3321608736e-3f));
    s = hn::MulAdd(r2, s, set(-1.6666654611e-1f));
    s = hn::MulAdd(hn::Mul(r2, r), s, r);
    Vec c = hn::MulAdd(r2, set(2.443315711809948e-5f), set(-1.388731625e-3f));
    c = hn::MulAdd(r2, c, set(4.166664568298827e-2f));
    c = hn::MulAdd(hn::Mul(r2, r2), c, hn::NegMulAdd(set(0.5f), r2, set(1)));

    // the quadrant q mod 4, from 0 to 3, is exact in float
    const Vec quadrant =
            hn::NegMulAdd(set(4), hn::Floor(hn::Mul(q, set(0.25f))), q);
    const auto odd = hn::Or(hn::Eq(quadrant, set(1)), hn::Eq(quadrant, set(3)));
    const Vec sine = hn::IfThenElse(odd, c, s);
    const Vec cosine = hn::IfThenElse(odd, s, c);
    return {hn::IfThenElse(hn::Ge(quadrant, set(2)), hn::Neg(sine), sine),
            hn::IfThenElse(
                    hn::Or(hn::Eq(quadrant, set(1)), hn::Eq(quadrant, set(2))),
                    hn::Neg(cosine),
                    cosine)};
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#endif
