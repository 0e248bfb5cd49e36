// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace faiss_ext {

/** The number of bits with which the normalised Hamming distances of all pairs
 * of n vectors are within delta of their expectations, with a probability of at
 * least 1 - epsilon: log(n^2 / epsilon) / (2 delta^2) (M. Raginsky and S.
 * Lazebnik, Locality-sensitive binary codes from shift-invariant kernels, NIPS
 * 2009, theorem 2.4), rounded up to a multiple of 8, as codes have.
 *
 * It is Hoeffding's inequality for one pair, P(|Ham / nbits - h| > delta) <= 2
 * exp(-2 nbits delta^2), summed over the pairs. It needs independent bits,
 * whatever the scheme: those of SIK, AHK and RHBE with proj=dense and without
 * center and rot, and those of SCR, whose h is not known.
 *
 * With proj=structured the bits of one rotation (StructuredProjection) depend
 * on each other, and what is proven is less: with nbits_r bits of rotation r,
 * P(|Ham / nbits - E Ham / nbits| > delta) <= 2 exp(-2 delta^2 / sum_r (nbits_r
 * / nbits)^2), Hoeffding's inequality for rotations in place of bits, which
 * says nothing where there is but one. That deviations are no larger than those
 * of independent bits is measured, not proven. Bits of bilinear projections are
 * correlated (BilinearShiftInvariantHash::covariance_of_pair).
 *
 * Theorem 2.6 of the source is about all points of a compact set at once:
 * max(C L_K d diam / delta^2, 2 / delta^2 log(2 / epsilon)) bits, d the set's
 * Assouad dimension, diam its diameter and L_K
 * ShiftInvariantKernel::lipschitz_constant, where that is finite. There is no
 * function for it, since the source does not say what the constant C is.
 *
 * Throws if the number is above that of the longest codes, 2^31 - 8 bits.
 *
 * @param n        number of vectors, at least 1
 * @param delta    deviation of a normalised distance, between 0 and 1
 * @param epsilon  probability of failure, between 0 and 1
 */
int64_t bits_for(int64_t n, double delta, double epsilon);

} // namespace faiss_ext
