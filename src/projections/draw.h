// SPDX-License-Identifier: MIT
// Draws the random projections that a ProjectionChoice asks for.

#pragma once

#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/// Draws rows from N(0, I).
ClonePtr<Projection> draw_gaussian(
        const ProjectionChoice& choice,
        int d_in,
        int d_out,
        int64_t seed);

/// Draws rows from the spectral density of a kernel at its present bandwidth,
/// divided by 2 pi. Bilinear projections approximate a Gaussian kernel's.
ClonePtr<Projection> draw_frequencies(
        const ProjectionChoice& choice,
        const ShiftInvariantKernel& kernel,
        int d_in,
        int d_out,
        int64_t seed);

/// Returns the kinds of frequencies that a kernel can have: rotations need
/// isotropic ones, and generated numbers a scale (sample_scale). If the kernel
/// is not known yet, returns all kinds.
std::vector<ProjectionChoice::Kind> frequency_kinds(
        const ShiftInvariantKernel* kernel);

} // namespace faiss_ext
