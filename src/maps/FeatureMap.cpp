// SPDX-License-Identifier: MIT
#include <faiss_ext/maps/FeatureMap.h>

#include <algorithm>

#include <faiss_ext/maps/FrequencyMap.h>
#include <faiss_ext/maps/HomogeneousKernelMap.h>
#include <faiss_ext/maps/KernelPCA.h>
#include <faiss_ext/maps/RandomFourierMap.h>

#include "core/cache_sizes.h"
#include "core/class_table_impl.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "maps/map_strings.h"

namespace faiss_ext {

template struct ClassTable<FeatureMap>;

namespace {

/// FrequencyMap has a name in files, but none in strings.
ClassEntry<FeatureMap> frequencies_entry() {
    auto entry = class_entry<FeatureMap, FrequencyMap>("RFF.frequencies");
    entry.variant.of = "RFF";
    return entry;
}

} // namespace

template <>
ClassTable<FeatureMap>& class_table<FeatureMap>() {
    static ClassTable<FeatureMap> table(
            "map",
            Names::prefix,
            {
                    frequencies_entry(),
                    class_entry<FeatureMap, HomogeneousKernelMap>(
                            "HKM", "order"),
                    class_entry<FeatureMap, KernelPCA>("KPCA", "rank"),
                    class_entry<FeatureMap, RandomFourierMap>("RFF", "dims"),
            });
    return table;
}

std::string FeatureMap::description() const {
    return class_table<FeatureMap>().knows(*this) ? object_to_string(*this)
                                                  : type_name(typeid(*this));
}

std::unique_ptr<FeatureMap> FeatureMap::clone() const {
    return class_table<FeatureMap>().find(*this).copy(*this);
}

void FeatureMap::assign(const FeatureMap& other) {
    class_table<FeatureMap>().find(*this).assign(*this, other);
}

std::unique_ptr<Transform> FeatureMap::copy_transform() const {
    return clone();
}

void FeatureMap::assign_transform(const Transform& other) {
    assign(dynamic_cast<const FeatureMap&>(other));
}

idx_t FeatureMap::rows_per_block(idx_t) const {
    return std::max<idx_t>(1, cache::mapped / std::max(d_out, 1));
}

std::vector<std::string> map_names() {
    return class_table<FeatureMap>().names();
}

std::vector<std::string> map_forms() {
    std::vector<std::string> forms;
    for (const std::string& name : map_names()) {
        const auto entry = class_table<FeatureMap>().find(name);
        forms.push_back(
                name +
                (entry->number_key.empty() ? ""
                                           : "<" + entry->number_key + ">") +
                "(...)");
    }
    return forms;
}

bool is_map(const Token& part) {
    const TokenHead head(part);
    return head.ends_well() && class_table<FeatureMap>().find(head.letters);
}

std::unique_ptr<FeatureMap> make_map(int d, const Token& part) {
    const TokenHead head(part);
    const auto entry = class_table<FeatureMap>().find(head.letters);
    if (!entry) {
        part.fail("unknown map '" + part.str() + "'", map_forms());
    }
    if (!head.ends_well()) {
        part.after(head.letters.size() + head.digits.size())
                .fail("unexpected text", {"'('", "','", "the end"});
    }
    auto map = entry->make();
    map->set_dimensions(d, 0);
    Spec spec = arguments_of(part, *entry);
    read_string(*map, spec);
    return map;
}

std::unique_ptr<FeatureMap> map_factory(int d, const std::string& description) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
    return make_map(d, whole(without_spaces(description)));
}

} // namespace faiss_ext
