// SPDX-License-Identifier: MIT
// Random projections as schemes choose them.

#pragma once

#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/projections/ProjectionChoice.h>

namespace faiss_ext {

/// Rows from N(0, I).
ClonePtr<Projection> draw_gaussian(
        const ProjectionChoice& choice,
        int d_in,
        int d_out,
        int64_t seed);

/// Rows from the spectral density of a kernel in its present bandwidth, over 2
/// pi. Bilinear ones stand for those of a Gaussian kernel.
ClonePtr<Projection> draw_frequencies(
        const ProjectionChoice& choice,
        const ShiftInvariantKernel& kernel,
        int d_in,
        int d_out,
        int64_t seed);

/// The forms that frequencies of a kernel can have: those of rotations are
/// isotropic. Both, if the kernel is not known yet.
std::vector<ProjectionChoice::Kind> frequency_kinds(
        const ShiftInvariantKernel* kernel);

} // namespace faiss_ext
