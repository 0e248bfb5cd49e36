// SPDX-License-Identifier: MIT
// Search parameters whose selectors select ids, for an index that knows
// positions.

#pragma once

#include <memory>
#include <typeinfo>
#include <vector>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/IDSelector.h>

#include "core/errors.h"
#include "indexes/index_compat.h"
#include "indexes/supported_calls.h"

namespace faiss_ext {

/// Returns a copy of parameters that are of one of the classes, else null.
template <class... Params>
std::unique_ptr<faiss::SearchParameters> copy_of(
        const faiss::SearchParameters& params) {
    std::unique_ptr<faiss::SearchParameters> copy;
    const auto try_class = [&]<class P>(const P*) {
        if constexpr (requires { sizeof(P); }) {
            if (typeid(params) == typeid(P)) {
                copy = std::make_unique<P>(dynamic_cast<const P&>(params));
            }
        }
    };
    (try_class((const Params*)nullptr), ...);
    return copy;
}

/// A copy of search parameters whose selectors select positions. The caller's
/// parameters may be in use by other threads.
class TranslatedParams {
   public:
    template <class Table>
    TranslatedParams(const Table& table, const faiss::SearchParameters* params)
            : result(translated(table, params)) {
        if (auto own = params_of_its_class(*table.index, result)) {
            copies.push_back(std::move(own));
            result = copies.back().get();
        }
    }

    const faiss::SearchParameters* get() const {
        return result;
    }

   private:
    std::vector<std::unique_ptr<faiss::IDSelector>> selectors;
    std::vector<std::unique_ptr<faiss::SearchParameters>> copies;
    const faiss::SearchParameters* result;

    template <class Table>
    const faiss::SearchParameters* translated(
            const Table& table,
            const faiss::SearchParameters* params) {
        if (!has_selector(params)) {
            return params;
        }
        const faiss::SearchParameters* inside =
                translated(table, params_inside(params));
        copies.push_back(
                copy_of<faiss::SearchParameters,
                        faiss::SearchParametersHNSW,
                        faiss::SearchParametersIVF,
                        faiss::IVFPQSearchParameters,
                        faiss::SearchParametersPreTransform,
                        SearchParametersRefine,
                        faiss::IndexRefineSearchParameters>(*params));
        faiss::SearchParameters* copy = copies.back().get();
        FAISS_EXT_THROW_IF_NOT_FMT(
                copy,
                "IndexIDTable: search parameters of the unknown class %s; use faiss.SearchParameters or those of HNSW, IVF, PreTransform or Refine",
                type_name(typeid(*params)).c_str());
        if (copy->sel) {
            selectors.push_back(table.translated(*copy->sel));
            copy->sel = selectors.back().get();
        }
        set_params_inside(*copy, inside);
        return copy;
    }

    static bool has_selector(const faiss::SearchParameters* params) {
        return params && (params->sel || has_selector(params_inside(params)));
    }
};

} // namespace faiss_ext
