// SPDX-License-Identifier: MIT
#include <faiss_ext/hashes/hash_registry.h>

#include <faiss_ext/hashes/AdditiveKernelHash.h>
#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/hashes/ConsistentSamplingHash.h>
#include <faiss_ext/hashes/FrequencyHash.h>
#include <faiss_ext/hashes/HyperplaneHash.h>
#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/SignCauchyHash.h>
#include <faiss_ext/hashes/SpectralHash.h>

#include "core/class_table_impl.h"

namespace faiss_ext {

template struct ClassTable<KernelHash>;

namespace {

/// FrequencyHash has a name in files, but none in strings.
ClassEntry<KernelHash> frequencies_entry() {
    auto entry = class_entry<KernelHash, FrequencyHash>("SIK.frequencies");
    entry.variant.of = "SIK";
    return entry;
}

} // namespace

template <>
ClassTable<KernelHash>& class_table<KernelHash>() {
    static ClassTable<KernelHash> table(
            "hash",
            Names::prefix,
            {
                    class_entry<KernelHash, AdditiveKernelHash>("AHK"),
                    class_entry<KernelHash, BilinearShiftInvariantHash>("BSIK"),
                    class_entry<KernelHash, ConsistentSamplingHash>("CWS"),
                    frequencies_entry(),
                    class_entry<KernelHash, HyperplaneHash>("RHBE"),
                    class_entry<KernelHash, KernelizedLSH>("KLSH"),
                    class_entry<KernelHash, SignCauchyHash>("SCR"),
                    class_entry<KernelHash, SpectralHash>("SH"),
                    class_entry<KernelHash, ShiftInvariantHash>("SIK"),
            });
    return table;
}

std::vector<std::string> hash_names() {
    return class_table<KernelHash>().names();
}

} // namespace faiss_ext
