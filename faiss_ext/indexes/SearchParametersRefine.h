// SPDX-License-Identifier: MIT
#pragma once

#include <faiss/Index.h>

namespace faiss_ext {

/** Search parameters of an IndexRefineKernel, with every version of FAISS.
 *
 * faiss::IndexRefineSearchParameters has the same effect, with FAISS 1.8.0 or
 * newer. The inherited `sel` selects the results, as in plain search
 * parameters; base_params must then be null.
 */
struct SearchParametersRefine : faiss::SearchParameters {
    float k_factor = 1; ///< candidates per result, in place of the index's

    /// Parameters of the index in front; null for its own settings. Not owned.
    faiss::SearchParameters* base_params = nullptr;
};

} // namespace faiss_ext
