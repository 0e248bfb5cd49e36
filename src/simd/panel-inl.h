// SPDX-License-Identifier: MIT
// The vectors of a panel, for every target of Highway. Include this after
// <hwy/highway.h> and outside namespaces.

#if defined(FAISS_EXT_SIMD_PANEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_EXT_SIMD_PANEL_INL_H
#undef FAISS_EXT_SIMD_PANEL_INL_H
#else
#define FAISS_EXT_SIMD_PANEL_INL_H
#endif

#include <hwy/highway.h>

#include "simd/projection.h" // panel_width

HWY_BEFORE_NAMESPACE();
namespace faiss_ext::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, panel_width>;
using Vec = hn::Vec<Tag>;

constexpr size_t vector_lanes = hn::MaxLanes(Tag());
constexpr size_t panel_vectors = panel_width / vector_lanes;

/// Whether there are 32 registers, rather than 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr bool many_registers = true;
#else
constexpr bool many_registers = false;
#endif

} // namespace HWY_NAMESPACE
} // namespace faiss_ext::simd
HWY_AFTER_NAMESPACE();

#endif
