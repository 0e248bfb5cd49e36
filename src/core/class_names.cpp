// SPDX-License-Identifier: MIT
#include "core/class_table_impl.h"

#include <cctype>
#include <map>

namespace faiss_ext {

namespace {

/// Names at the beginning of a token and their meanings. FAISS's names have
/// their meaning only alone or before a number.
struct NamesInFront {
    std::mutex mutex;
    std::map<std::string, std::string> taken;

    NamesInFront() {
        for (const char* name :
             {"PCA",  "PCAR",  "PCAW",  "PCAWR",     "OPQ",      "RR",
              "ITQ",  "Pad",   "IVF",   "IMI",       "HNSW",     "NSG",
              "PQ",   "SQ",    "RQ",    "LSQ",       "PRQ",      "PLSQ",
              "LSH",  "Flat",  "RFlat", "Refine",    "IDMap",    "BFlat",
              "BIVF", "BHash", "BHNSW", "NNDescent", "ZnLattice"}) {
            taken[name] = "FAISS";
        }
        // names of higher layers, as lower ones may register names first
        taken["KFlat"] = "index";
        taken["BPerm"] = "binary index";
    }
};

} // namespace

void reserve_name(
        const std::string& name,
        Names names,
        const std::string& noun) {
    const bool prefix = names == Names::prefix;
    const bool good = !name.empty() &&
            std::isalpha(static_cast<unsigned char>(name[0])) &&
            std::all_of(name.begin(), name.end(), [&](unsigned char c) {
                return std::isalpha(c) ||
                        (!prefix && (std::isdigit(c) || c == '_'));
            });
    FAISS_EXT_THROW_IF_NOT_FMT(
            good,
            "'%s' cannot be the name of a class (%s): expected %s",
            name.c_str(),
            noun.c_str(),
            prefix ? "letters" : "a letter, then letters, digits and '_'");
    if (!prefix) {
        return;
    }
    static NamesInFront all;
    std::lock_guard<std::mutex> lock(all.mutex);
    FAISS_EXT_THROW_IF_NOT_FMT(
            all.taken.emplace(name, noun).first->second == noun,
            "'%s' cannot be the name of a class (%s): it has another meaning in factory strings",
            name.c_str(),
            noun.c_str());
}

} // namespace faiss_ext
