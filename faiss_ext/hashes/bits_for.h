// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace faiss_ext {

/** The number of bits that keep the distances of all pairs of n vectors
 * accurate: with probability at least 1 - epsilon, all normalised Hamming
 * distances are within delta of their expectations.
 *
 * It is log(n^2 / epsilon) / (2 delta^2) (M. Raginsky and S. Lazebnik,
 * Locality-sensitive binary codes from shift-invariant kernels, NIPS 2009,
 * theorem 2.4), rounded up to a multiple of 8, as codes have.
 *
 * The formula is Hoeffding's inequality for one pair, P(|Ham / nbits - h| >
 * delta) <= 2 exp(-2 nbits delta^2), summed over the pairs. It needs
 * independent bits, in any scheme. These have them:
 *
 * - SIK with proj=dense or proj=generated
 * - AHK and RHBE with proj=dense or proj=generated, and without center and rot
 * - SCR, whose h is not known
 *
 * With proj=structured the bits of one rotation (StructuredProjection) depend
 * on each other, and less is proven. With nbits_r bits of rotation r, P(|Ham /
 * nbits - E Ham / nbits| > delta) <= 2 exp(-2 delta^2 / sum_r (nbits_r /
 * nbits)^2). This is Hoeffding's inequality for rotations instead of bits, and
 * says nothing if there is only one rotation. That deviations are no larger
 * than those of independent bits is measured, not proven. Bits of bilinear
 * projections are correlated (BilinearShiftInvariantHash::covariance_of_pair).
 *
 * Theorem 2.6 of the source covers all points of a compact set at once: max(C
 * L_K d diam / delta^2, 2 / delta^2 log(2 / epsilon)) bits. d is the set's
 * Assouad dimension, diam its diameter, and L_K is
 * ShiftInvariantKernel::lipschitz_constant, which must be finite. There is no
 * function for it, since the source does not give the constant C.
 *
 * Throws if the number exceeds the longest codes, 2^31 - 8 bits.
 *
 * @param n        number of vectors, at least 1
 * @param delta    deviation of a normalised distance, between 0 and 1
 * @param epsilon  probability of failure, between 0 and 1
 */
int64_t bits_for(int64_t n, double delta, double epsilon);

} // namespace faiss_ext
