// SPDX-License-Identifier: MIT
#include <faiss_ext/io/describe.h>

#include <algorithm>

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/index_registry.h>
#include <faiss_ext/kernels/BitKernel.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "core/errors.h"
#include "core/field_strings.h"
#include "core/name_hint.h"
#include "indexes/graph_settings.h"
#include "simd/pairwise.h"

namespace faiss_ext {

namespace {

bool is_graph(const std::string& name) {
    return std::find(graph_names.begin(), graph_names.end(), name) !=
            graph_names.end();
}

/// Calls f(table) for each table of classes that can be named in strings.
template <class F>
void for_each_table(F&& f) {
    f(class_table<BitKernel>());
    f(class_table<Kernel>());
    f(class_table<FeatureMap>());
    f(class_table<KernelHash>());
    f(class_table<faiss::Index>());
    f(class_table<faiss::IndexBinary>());
}

} // namespace

std::vector<FieldInfo> describe(const std::string& name) {
    if (is_graph(name)) {
        return list_fields(GraphSettings());
    }
    std::vector<FieldInfo> infos;
    bool is_known = false;
    for_each_table([&](const auto& table) {
        if (const auto entry = table.find(name)) {
            const auto object = entry->make();
            infos = list_fields(dynamic_cast<HasFields&>(*object));
            is_known = true;
        }
    });
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_known,
            "unknown name '%s', expected %s%s",
            printable(name).c_str(),
            join(described_names()).c_str(),
            described_name_hint(name).c_str());
    return infos;
}

std::vector<std::string> described_names() {
    std::vector<std::string> names;
    for_each_table([&](const auto& table) {
        for (const std::string& name : table.names()) {
            if (std::find(names.begin(), names.end(), name) == names.end()) {
                names.push_back(name); // some kernels are of bits, too
            }
        }
    });
    names.insert(names.end(), graph_names.begin(), graph_names.end());
    return names;
}

std::string described_name_hint(const std::string& name) {
    const std::string hint = name_hint(name, described_names());
    return hint.empty() ? "" : "; " + hint;
}

std::string instruction_set() {
    return simd::target_name();
}

} // namespace faiss_ext
