// SPDX-License-Identifier: MIT
// Limits the instruction sets in use by an environment variable. Every file of
// inner loops includes this, so that the limit is set before they run.

#pragma once

namespace faiss_ext::simd {

/** Reads the environment variable FAISS_EXT_SIMD, the name of the best
 * instruction set to use. Names are as in target_name, for example AVX2. If the
 * name is unknown or the processor lacks the instruction set, prints the
 * available ones on standard error.
 *
 * @return whether there is a limit
 */
bool limit_instruction_set();

inline const bool instruction_set_is_limited = limit_instruction_set();

} // namespace faiss_ext::simd
