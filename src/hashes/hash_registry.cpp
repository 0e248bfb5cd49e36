#include <faiss_ext/hashes/hash_registry.h>

#include <algorithm>
#include <cctype>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/KernelizedHash.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/SignCauchyHash.h>

#include "core/class_table.h"

namespace faiss_ext {

namespace {

// One line for each class of this library.

ClassTable<HashEntry>& hashes() {
    static ClassTable<HashEntry> table{
            {hash_entry<AdditiveKernelHash>("AHK"),
             hash_entry<BilinearShiftInvariantHash>("BSIK"),
             hash_entry<HyperplaneHash>("RHBE"),
             hash_entry<KernelizedHash>("KLSH"),
             hash_entry<SignCauchyHash>("SCR"),
             hash_entry<ShiftInvariantHash>("SIK")}};
    return table;
}

void check_name(const std::string& name) {
    // before a number these mean something else in factory strings
    for (const char* taken :
         {"HKM",  "PCA",       "PCAR",  "PCAW", "PCAWR", "OPQ",
          "RR",   "ITQ",       "Pad",   "IVF",  "IMI",   "HNSW",
          "NSG",  "PQ",        "SQ",    "RQ",   "LSQ",   "PRQ",
          "PLSQ", "ZnLattice", "IDMap", "BIVF", "BHash", "BHNSW"}) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                name != taken,
                "'%s' cannot be the name of a hash: it has another meaning in factory strings",
                taken);
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            !name.empty() &&
                    std::all_of(
                            name.begin(),
                            name.end(),
                            [](unsigned char c) { return std::isalpha(c); }),
            "'%s' cannot be the name of a hash: expected letters",
            name.c_str());
}

} // namespace

void register_hash_entry(HashEntry entry) {
    check_name(entry.name);
    hashes().add(std::move(entry));
}

std::vector<std::string> hash_names() {
    return hashes().names();
}

HashEntry find_hash(const KernelHash& hash) {
    return hashes().find(typeid(hash));
}

std::unique_ptr<HashEntry> find_hash(const std::string& name) {
    return hashes().find(name);
}

} // namespace faiss_ext
