// SPDX-License-Identifier: MIT
// The random part of KLSH.

#pragma once

#include <vector>

#include <faiss_ext/hashes/KernelizedLSH.h>

#include "maps/kernel_spectrum.h"

namespace faiss_ext {

/// The random numbers, which do not depend on the kernel: the t landmarks of
/// each bit (clt), or g for each bit (gauss).
struct Draws {
    std::vector<std::vector<int>> landmarks;
    Matrix normal;

    Draws(const KernelizedLSH& hash, int t);
};

/// Computes w for each bit, size nbits * p, from the `rank` largest
/// eigenvalues.
Matrix make_weights(const Draws& draws, const KernelSpectrum& s, int rank);

/// Makes w the projection of a hash and sets its thresholds.
void set_weights(KernelizedLSH& hash, const Matrix& w, const KernelSpectrum& s);

} // namespace faiss_ext
