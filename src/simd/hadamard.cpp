// SPDX-License-Identifier: MIT
#include "simd/hadamard.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/hadamard.cpp"
#include <hwy/foreach_target.h>
// (must follow foreach_target.h)
#include <hwy/highway.h>

#include "simd/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

/// Number of rows of a transform that stay in registers.
constexpr size_t max_radix = many_registers ? 16 : 8;

/// Operation on a row when it is loaded.
enum class In {
    plain,
    row_sign,    ///< multiplies by one sign
    lane_levels, ///< does the levels within the row
    lane_signs,  ///< multiplies by a sign per lane, then does these levels
};

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE Vec lane_levels(Vec v) {
    return v;
}

#else

/// Moves lane i xor H to lane i.
template <size_t H>
HWY_INLINE Vec swap_lanes(Vec v) {
    const Tag tag;
    if constexpr (H == 1) {
        return hn::Shuffle2301(v);
    } else if constexpr (H == 2) {
        return hn::Shuffle1032(v);
    } else if constexpr (2 * H == vector_lanes) {
        return hn::ConcatLowerUpper(tag, v, v);
    } else {
        return hn::SwapAdjacentBlocks(v);
    }
}

/// Does the butterflies at all distances between lanes, from H upwards.
template <size_t H = 1>
HWY_INLINE Vec lane_levels(Vec v) {
    if constexpr (H == vector_lanes) {
        return v;
    } else {
        const Tag tag;
        HWY_ALIGN static constexpr auto plus_minus = [] {
            struct {
                float value[vector_lanes];
            } signs{};
            for (size_t i = 0; i < vector_lanes; i++) {
                signs.value[i] = i & H ? -1.0f : 1.0f;
            }
            return signs;
        }();
        return lane_levels<2 * H>(hn::MulAdd(
                v, hn::LoadU(tag, plus_minus.value), swap_lanes<H>(v)));
    }
}

#endif

template <size_t R, size_t H = 1>
HWY_INLINE void butterflies(Vec* v) {
    if constexpr (H < R) {
        for (size_t i = 0; i < R / 2; i++) {
            const size_t a = i / H * 2 * H + i % H;
            const Vec sum = hn::Add(v[a], v[a + H]);
            v[a + H] = hn::Sub(v[a], v[a + H]);
            v[a] = sum;
        }
        butterflies<R, 2 * H>(v);
    }
}

/// Does the levels with distances h to h R / 2 between rows.
template <size_t R, In in>
void levels_of(
        size_t rows,
        size_t h,
        const float* signs,
        const float* from,
        size_t from_stride,
        float* to,
        size_t to_stride) {
    const Tag tag;
    for (size_t i = 0; i < rows; i += R * h) {
        for (size_t j = i; j < i + h; j++) {
            Vec v[R];
            for (size_t q = 0; q < R; q++) {
                const size_t row = j + q * h;
                v[q] = hn::LoadU(tag, from + row * from_stride);
                if constexpr (in == In::row_sign) {
                    v[q] = hn::Mul(v[q], hn::Set(tag, signs[row]));
                }
                if constexpr (in == In::lane_signs) {
                    const float* s = signs + row * vector_lanes;
                    v[q] = hn::Mul(v[q], hn::LoadU(tag, s));
                }
                if constexpr (in >= In::lane_levels) {
                    v[q] = lane_levels(v[q]);
                }
            }
            butterflies<R>(v);
            for (size_t q = 0; q < R; q++) {
                hn::StoreU(v[q], tag, to + (j + q * h) * to_stride);
            }
        }
    }
}

/// levels_of with the radix as a run-time argument.
template <In in>
void levels(
        size_t radix,
        size_t rows,
        size_t h,
        const float* signs,
        const float* from,
        size_t from_stride,
        float* to,
        size_t to_stride) {
    const auto call = [&](auto r) {
        levels_of<r(), in>(rows, h, signs, from, from_stride, to, to_stride);
    };
    switch (radix) {
        case 16:
            if constexpr (max_radix == 16) {
                call(std::integral_constant<size_t, 16>());
            }
            return;
        case 8:
            return call(std::integral_constant<size_t, 8>());
        case 4:
            return call(std::integral_constant<size_t, 4>());
        case 2:
            return call(std::integral_constant<size_t, 2>());
        default:
            return call(std::integral_constant<size_t, 1>());
    }
}

/// Transforms x to y by way of work, as many levels at a time as registers can
/// hold.
template <In in>
void transform(
        size_t rows,
        const float* signs,
        const float* x,
        float* work,
        size_t stride,
        float* y,
        size_t y_stride) {
    size_t h = 1;
    do {
        const size_t radix = std::min(max_radix, rows / h);
        const bool is_last = h * radix == rows;
        float* to = is_last ? y : work;
        const size_t to_stride = is_last ? y_stride : stride;
        if (h == 1) {
            levels<in>(radix, rows, h, signs, x, stride, to, to_stride);
        } else {
            levels<In::plain>(
                    radix, rows, h, signs, work, stride, to, to_stride);
        }
        h *= radix;
    } while (h < rows);
}

void hadamard_rounds_target(
        size_t d_x,
        const float* HWY_RESTRICT x,
        size_t d,
        const float* HWY_RESTRICT signs,
        size_t d_y,
        const float* HWY_RESTRICT norms,
        float* HWY_RESTRICT work,
        float* HWY_RESTRICT y) {
    const Tag tag;
    constexpr size_t lanes = vector_lanes;
    const auto round = [&](size_t i) {
        transform<In::lane_signs>(
                d / lanes, signs + i * d, work, work, lanes, work, lanes);
    };
    size_t k = 0;
    for (; k + lanes <= d_x; k += lanes) {
        hn::StoreU(hn::LoadU(tag, x + k), tag, work + k);
    }
    for (; k < d_x; k++) {
        work[k] = x[k];
    }
    for (; k % lanes != 0; k++) {
        work[k] = 0;
    }
    for (; k < d; k += lanes) {
        hn::StoreU(hn::Zero(tag), tag, work + k);
    }
    round(0);
    round(1);

    const size_t d_last = std::bit_ceil(std::max<size_t>(16, d_y));
    if (d_last == d) {
        round(2);
    } else {
        // only the sums of the butterflies at the largest distances
        const float* last_signs = signs + 2 * d;
        size_t half = d / 2;
        for (k = 0; k < half; k += lanes) {
            const auto signed_at = [&](size_t i) HWY_ATTR {
                return hn::Mul(
                        hn::LoadU(tag, work + i),
                        hn::LoadU(tag, last_signs + i));
            };
            hn::StoreU(
                    hn::Add(signed_at(k), signed_at(k + half)), tag, work + k);
        }
        while (half > d_last) {
            half /= 2;
            for (k = 0; k < half; k += lanes) {
                const Vec sum =
                        hn::Add(hn::LoadU(tag, work + k),
                                hn::LoadU(tag, work + k + half));
                hn::StoreU(sum, tag, work + k);
            }
        }
        transform<In::lane_levels>(
                d_last / lanes, nullptr, work, work, lanes, work, lanes);
    }
    for (k = 0; k + lanes <= d_y; k += lanes) {
        hn::StoreU(
                hn::Mul(hn::LoadU(tag, work + k), hn::LoadU(tag, norms + k)),
                tag,
                y + k);
    }
    for (; k < d_y; k++) {
        y[k] = work[k] * norms[k];
    }
}

void hadamard_rounds_of_panel_target(
        size_t d,
        const float* HWY_RESTRICT signs,
        const float* HWY_RESTRICT x,
        float* HWY_RESTRICT work,
        float* HWY_RESTRICT y,
        size_t y_stride) {
    constexpr size_t stride = panel_width;
    for (size_t p = 0; p < panel_width; p += vector_lanes) {
        float* w = work + p;
        const auto round =
                [&](size_t i, const float* from, float* to, size_t s) {
                    transform<In::row_sign>(
                            d, signs + i * d, from, w, stride, to, s);
                };
        round(0, x + p, w, stride);
        round(1, w, w, stride);
        round(2, w, y + p, y_stride);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace faiss_ext::simd {

HWY_EXPORT(hadamard_rounds_target);
HWY_EXPORT(hadamard_rounds_of_panel_target);

void hadamard_rounds(
        size_t d_x,
        const float* x,
        size_t d,
        const float* signs,
        size_t d_y,
        const float* norms,
        float* work,
        float* y) {
    HWY_DYNAMIC_DISPATCH(hadamard_rounds_target)
    (d_x, x, d, signs, d_y, norms, work, y);
}

void hadamard_rounds_of_panel(
        size_t d,
        const float* signs,
        const float* x,
        float* work,
        float* y,
        size_t y_stride) {
    HWY_DYNAMIC_DISPATCH(hadamard_rounds_of_panel_target)
    (d, signs, x, work, y, y_stride);
}

} // namespace faiss_ext::simd
#endif
