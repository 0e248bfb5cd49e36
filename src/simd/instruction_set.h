// SPDX-License-Identifier: MIT
// The limit that the environment sets to the instruction sets in use. Every
// file of inner loops includes this, so that the limit holds before they run.

#pragma once

namespace faiss_ext::simd {

/** Reads the environment variable FAISS_EXT_SIMD: the name of the best
 * instruction set to use, as target_name gives it: AVX2, say. Says on standard
 * error what there is, if the name is unknown or the processor lacks it.
 *
 * @return whether there is a limit
 */
bool limit_instruction_set();

inline const bool instruction_set_is_limited = limit_instruction_set();

} // namespace faiss_ext::simd
