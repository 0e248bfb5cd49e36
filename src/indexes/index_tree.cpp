// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/index_tree.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cinttypes>
#include <cmath>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <typeindex>
#include <unordered_map>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexRefine.h>

#include <faiss_ext/core/Transform.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/hashes/FrequencyHash.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_registry.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/maps/FrequencyMap.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/field_strings.h"
#include "core/field_visitor.h"
#include "core/number_format.h"
#include "indexes/batch_calls.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/index_steps.h"
#include "indexes/ivf_fields.h"

namespace faiss_ext {

namespace {

// The table of classes.

struct Entry {
    std::type_index type;
    std::function<bool(const AnyIndex&)> matches;
    IndexFacts facts;
};

/// A class that was asked for.
struct KnownClass {
    IndexFacts facts;
    /// Bytes from an index to its HasIds, if it has one. A cast from a base to
    /// another one takes longer than the rest of id_table_of.
    std::optional<ptrdiff_t> has_ids_at;
};

struct Table {
    std::shared_mutex mutex;
    std::vector<Entry> entries;
    /// Addresses are hashed faster than names. A class that several libraries
    /// contain may have several addresses.
    std::unordered_map<const std::type_info*, const KnownClass*> found;
    /// never deleted, since callers have references
    std::vector<std::unique_ptr<KnownClass>> complete;
};

Table& table() {
    static Table* const table = new Table;
    return *table;
}

/// Takes the facts from `from` that `to` does not have.
void take_all(IndexFacts& to, const IndexFacts& from) {
    const auto take = [](auto& own, const auto& other) {
        if (!own) {
            own = other;
        }
    };
    const auto call = [&](auto&... own) {
        std::apply(
                [&](auto&... other) { (take(own, other), ...); },
                internal::all_facts(from));
    };
    std::apply(call, internal::all_facts(to));
}

template <class IndexT>
bool is_registered(const IndexT& index) {
    return class_table<IndexT>().knows(index);
}

/// The facts about classes that fields describe.
IndexFacts registered_facts() {
    IndexFacts facts;
    facts.string = [](const AnyIndex& any) {
        std::string text = any.visit([](const auto& index) {
            using Base = std::remove_cvref_t<decltype(index)>;
            const auto entry = class_table<Base>().find(index);
            const std::string fields = fields_to_string(
                    dynamic_cast<const HasFields&>(index),
                    dynamic_cast<const HasFields&>(*entry.make()));
            return entry.name + (fields.empty() ? "" : "(" + fields + ")");
        });
        if (takes_parts(any)) {
            const auto parts = parts_of(any);
            text = parts.size() == 1 ? string_behind(text, parts[0].index) : "";
        }
        return text;
    };
    facts.is_foreign_to_faiss = true;
    return facts;
}

IndexFacts collect_facts(
        const std::vector<Entry>& entries,
        const AnyIndex& index) {
    IndexFacts facts;
    for (const Entry& entry : entries) {
        if (entry.type == std::type_index(index.type())) {
            take_all(facts, entry.facts);
        }
    }
    const bool has_fields =
            index.visit([](const auto& i) { return is_registered(i); });
    if (has_fields) {
        take_all(facts, registered_facts());
    }
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        if (entry->matches(index)) {
            take_all(facts, entry->facts);
        }
    }
    if (has_fields && !facts.checks_calls) {
        facts.checks_calls = !facts.take_parts;
    }
    return facts;
}

/// The index as one that can have a table of ids, or null.
template <class IndexT>
const HasIds<IndexT>* with_ids(const IndexT& index) {
    return dynamic_cast<const HasIds<IndexT>*>(&index);
}

template <class IndexT>
std::optional<ptrdiff_t> place_of_ids(const IndexT& index) {
    const auto* own = with_ids(index);
    return own ? std::optional(
                         reinterpret_cast<const char*>(own) -
                         reinterpret_cast<const char*>(&index))
               : std::nullopt;
}

/// Describes the known classes before any other one.
void register_known_classes_once() {
    static std::atomic<bool> is_done{false};
    static std::recursive_mutex mutex;
    static bool is_registering = false; // they come here themselves
    if (is_done) {
        return;
    }
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (is_done || is_registering) {
        return;
    }
    is_registering = true;
    try {
        register_known_index_classes();
    } catch (...) { // out of memory: the next call begins again
        table().entries.clear();
        is_registering = false;
        throw;
    }
    is_registering = false;
    is_done = true;
}

} // namespace

void internal::register_index_class(
        const std::type_info& type,
        const std::function<bool(const AnyIndex&)>& matches,
        const IndexFacts& facts) {
    register_known_classes_once();
    Table& t = table();
    std::unique_lock<std::shared_mutex> lock(t.mutex);
    for (const Entry& entry : t.entries) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                entry.type != std::type_index(type),
                "class %s is described already",
                type_name(type).c_str());
    }
    t.entries.push_back({type, matches, facts});
    t.found.clear();
}

void internal::forget_facts() {
    Table& t = table();
    std::unique_lock<std::shared_mutex> lock(t.mutex);
    t.found.clear();
}

namespace {

const KnownClass& class_of(const AnyIndex& index) {
    FAISS_EXT_THROW_IF_NOT_MSG(index, "there is no index");
    register_known_classes_once();
    Table& t = table();
    const std::type_info* type =
            index.visit([](const auto& i) { return &typeid(i); });
    {
        std::shared_lock<std::shared_mutex> lock(t.mutex);
        if (const auto at = t.found.find(type); at != t.found.end()) {
            return *at->second;
        }
    }
    std::unique_lock<std::shared_mutex> lock(t.mutex);
    t.complete.push_back(std::make_unique<KnownClass>(KnownClass{
            collect_facts(t.entries, index),
            index.visit([](const auto& i) { return place_of_ids(i); })}));
    return *(t.found[type] = t.complete.back().get());
}

} // namespace

const IndexFacts& facts_of(const AnyIndex& index) {
    return class_of(index).facts;
}

// One index.

AnyIndex id_table_of(const AnyIndex& index) {
    const auto at = index ? class_of(index).has_ids_at : std::nullopt;
    if (!at) {
        return {};
    }
    return index.visit([&](const auto& i) -> AnyIndex {
        using Own = HasIds<std::remove_cvref_t<decltype(i)>>;
        const auto* bytes = reinterpret_cast<const char*>(&i);
        return reinterpret_cast<const Own*>(bytes + *at)->id_table();
    });
}

const std::type_info& AnyIndex::type() const {
    return visit([](const auto& index) -> const std::type_info& {
        const auto* own = with_ids(index);
        return own ? own->index_class() : typeid(index);
    });
}

std::string AnyIndex::class_name() const {
    std::string name = type_name(type());
    const auto remove = [&](const std::string& word) {
        for (size_t at; (at = name.find(word)) != std::string::npos;) {
            name.erase(at, word.size());
        }
    };
    remove("faiss_ext::");
    remove("faiss::");
    const bool is_binary = name.ends_with("Template<IndexBinary>");
    if (is_binary || name.ends_with("Template<Index>")) {
        name.resize(name.find("Template<"));
        name.insert(std::string("Index").size(), is_binary ? "Binary" : "");
    }
    return name;
}

idx_t AnyIndex::ntotal() const {
    return visit([](const auto& index) -> idx_t { return index.ntotal; });
}

std::vector<IndexPart> parts_of(const AnyIndex& index) {
    const auto& parts = facts_of(index).parts;
    return parts ? parts(index) : std::vector<IndexPart>();
}

std::vector<IndexPart> shown_parts(const AnyIndex& index) {
    std::vector<IndexPart> parts = parts_of(index);
    std::erase_if(parts, [](const IndexPart& part) {
        return part.is_quantizer &&
                (!part.index || part.index.as<faiss::IndexFlat>() ||
                 part.index.as<faiss::IndexBinaryFlat>());
    });
    return parts;
}

std::vector<const faiss::VectorTransform*> transforms_of(
        const AnyIndex& index) {
    const auto& transforms = facts_of(index).transforms;
    return transforms ? transforms(index)
                      : std::vector<const faiss::VectorTransform*>();
}

std::vector<float> transformed(const AnyIndex& index, idx_t n, const float* x) {
    const idx_t d = index.visit([](const auto& i) { return i.d; });
    if (const auto& transformed = facts_of(index).transformed) {
        return transformed(index, {n, x, d});
    }
    return {x, x + n * d};
}

std::vector<float> transformed(
        const faiss::Index& index,
        const SparseVectors& x) {
    check_takes_sparse(index, "transformed");
    const auto& transformed = facts_of(index).transformed;
    FAISS_EXT_THROW_IF_NOT_FMT(
            transformed,
            "%s does not transform its vectors",
            AnyIndex(index).class_name().c_str());
    return transformed(index, x);
}

const Kernel* kernel_of(const AnyIndex& index) {
    const auto& kernel = facts_of(index).kernel;
    return kernel ? kernel(index) : nullptr;
}

DistanceKind distance_kind(const AnyIndex& index) {
    return facts_of(index).distance_kind.value_or(DistanceKind::other);
}

bool merges_slowly(const AnyIndex& index) {
    if (const auto known = facts_of(index).merges_slowly) {
        return *known;
    }
    const std::vector<IndexPart> parts = parts_of(index);
    return std::any_of(parts.begin(), parts.end(), [](const IndexPart& part) {
        return part.is_searched && part.index && merges_slowly(part.index);
    });
}

idx_t least_training(const AnyIndex& index) {
    if (index.visit([](const auto& i) { return i.is_trained; })) {
        return 0;
    }
    if (const auto& least = facts_of(index).least_training) {
        return least(index);
    }
    idx_t most = 0;
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && part.index) {
            most = std::max(most, least_training(part.index));
        }
    }
    return most;
}

bool takes_parts(const AnyIndex& index) {
    return bool(facts_of(index).take_parts);
}

template <class IndexT>
void give_parts(IndexT& index, std::vector<std::unique_ptr<IndexT>> parts) {
    const int expected = int(parts_of(index).size());
    FAISS_EXT_THROW_IF_NOT_FMT(
            expected == 0 || int(parts.size()) == expected,
            "%s has %d parts, expected %d",
            AnyIndex(index).class_name().c_str(),
            int(parts.size()),
            expected);
    std::vector<const IndexT*> given, taken;
    for (const auto& part : parts) {
        given.push_back(part.get());
    }
    facts_of(index).take_parts(index, std::move(parts));
    for (const IndexPart& part : parts_of(index)) {
        taken.push_back(part.index.as<IndexT>());
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            taken == given,
            "%s: parts must list the parts that take_parts received, in their order",
            AnyIndex(index).class_name().c_str());
}

template void give_parts(
        faiss::Index& index,
        std::vector<std::unique_ptr<faiss::Index>> parts);
template void give_parts(
        faiss::IndexBinary& index,
        std::vector<std::unique_ptr<faiss::IndexBinary>> parts);

// Texts.

namespace {

std::string transform_text(const faiss::VectorTransform* vt) {
    if (const auto* ours = dynamic_cast<const Transform*>(vt)) {
        return ours->description();
    }
    std::string name = vt ? type_name(typeid(*vt)) : "None";
    name = name.substr(name.rfind(':') + 1);
    return vt ? format_message("%s(%d, %d)", name.c_str(), vt->d_in, vt->d_out)
              : name;
}

/// The first and last texts if there are many.
std::vector<std::string> few(std::vector<std::string> texts) {
    constexpr size_t most = 16;
    if (texts.size() > most) {
        const size_t left_out = texts.size() - most;
        const auto begin = texts.begin() + most / 2;
        *begin = "... " + std::to_string(left_out) + " more ...";
        texts.erase(begin + 1, begin + left_out);
    }
    return texts;
}

/// The transformations and the kernel, which stand before the parts.
std::vector<std::string> texts_in_front(const AnyIndex& index) {
    std::vector<std::string> texts;
    for (const faiss::VectorTransform* vt : transforms_of(index)) {
        texts.push_back(transform_text(vt));
    }
    texts = few(texts);
    if (const Kernel* kernel = kernel_of(index)) {
        texts.push_back(kernel->description());
    }
    return texts;
}

/// The settings, which stand behind the parts.
std::vector<std::string> texts_behind(const AnyIndex& index) {
    const auto& settings = facts_of(index).settings;
    return settings ? settings(index) : std::vector<std::string>();
}

void append(
        std::vector<std::string>& texts,
        const std::vector<std::string>& more) {
    texts.insert(texts.end(), more.begin(), more.end());
}

std::string text_of(
        const AnyIndex& index,
        const std::vector<std::string>& more = {}) {
    if (!index) {
        return "None";
    }
    std::vector<std::string> inside = texts_in_front(index);
    std::vector<std::string> parts;
    for (const IndexPart& part : shown_parts(index)) {
        parts.push_back(text_of(part.index));
    }
    append(inside, few(parts));
    append(inside, texts_behind(index));
    append(inside, more);
    std::string text = index.class_name();
    for (size_t i = 0; i < inside.size(); i++) {
        text += (i == 0 ? "(" : ", ") + inside[i];
    }
    return inside.empty() ? text : text + ")";
}

} // namespace

std::string metric_text(const AnyIndex& index) {
    return index.floats ? short_metric_name(index.floats->metric_type) : "";
}

std::vector<std::string> settings_of(const AnyIndex& index) {
    const ReadingStep step(index);
    std::vector<std::string> texts = texts_in_front(index);
    append(texts, texts_behind(index));
    return texts;
}

std::string structure_text(const AnyIndex& index) {
    const ReadingStep step(index);
    return text_of(index);
}

std::string index_text(const AnyIndex& index) {
    if (!index) {
        return text_of(index);
    }
    const ReadingStep step(index);
    std::vector<std::string> more;
    index.visit([&](const auto& i) {
        more.push_back("d=" + std::to_string(i.d));
        const std::string metric = metric_text(index);
        if (!metric.empty() && metric != "l2") {
            more.push_back("metric=" + metric);
        }
        more.push_back(
                i.is_trained ? "ntotal=" + std::to_string(i.ntotal)
                             : "not trained");
    });
    return text_of(index, more);
}

namespace {

/// Looks among objects and their parts for one without a factory string.
struct StringlessFinder : FieldVisitor {
    const char* found = nullptr; ///< the reason why it has none

    void look_at(const HasFields& object) {
        const auto* exact = dynamic_cast<const IndexFlatKernel*>(&object);
        const bool is_given =
                (exact &&
                 dynamic_cast<const CallbackKernel*>(exact->kernel.get())) ||
                dynamic_cast<const FrequencyHash*>(&object) ||
                dynamic_cast<const FrequencyMap*>(&object);
        if (is_given && are_strings_before_training()) {
            return;
        }
        if (dynamic_cast<const CallbackKernel*>(&object)) {
            found = "a CallbackKernel has no factory string: it is a function";
        } else if (is_given && !exact) {
            found = "a FrequencyMap or FrequencyHash has no factory string: it holds given frequencies";
        }
        object.fields(*this);
    }

   private:
    void on(const FlagField&) override {}
    void on(const NumberField<int64_t>&) override {}
    void on(const NumberField<double>&) override {}
    void on(const WordField&) override {}
    void on(const ShapeField&) override {}
    void on(const PartField& field) override {
        look_at_part(field.part);
    }
    void on(const PartsField& field) override {
        for (size_t i = 0; i < field.parts.size(); i++) {
            look_at_part(*field.parts.at(i));
        }
    }
    void look_at_part(const ObjectRef& object) {
        if (const HasFields* part = object.get()) {
            look_at(*part);
        }
    }
};

/// The reason why an index, without the indexes inside, has no string; null if
/// it has one.
const char* reason_for_no_string(const AnyIndex& index) {
    StringlessFinder finder;
    index.visit([&](const auto& i) {
        if (const auto* object = dynamic_cast<const HasFields*>(&i)) {
            finder.look_at(*object);
        }
    });
    for (const faiss::VectorTransform* vt : transforms_of(index)) {
        if (const auto* object = dynamic_cast<const HasFields*>(vt)) {
            finder.look_at(*object);
        }
    }
    return finder.found;
}

/// Whether FAISS's lists could have a string with another quantizer.
bool is_lists_of_known_class(const AnyIndex& index) {
    const std::string name = index.class_name();
    return name == "IndexIVFFlat" || name == "IndexBinaryIVF" ||
            name == "IndexBinaryIVFSIMD";
}

} // namespace

std::string index_string(const AnyIndex& index) {
    FAISS_EXT_THROW_IF_NOT_MSG(index, "a part of the index is missing");
    const ReadingStep step(index);
    const auto& string = facts_of(index).string;
    std::string found = string ? string(index) : "";
    FAISS_EXT_THROW_IF_NOT_FMT(
            !found.empty(),
            "index_string cannot make a factory string for %s%s",
            index.class_name().c_str(),
            is_lists_of_known_class(index) ? " because of its quantizer" : "");
    if (const char* reason = reason_for_no_string(index)) {
        FAISS_EXT_THROW_MSG(reason);
    }
    return found;
}

bool comes_first(const AnyIndex& index) {
    return index.as<faiss::IndexIDMap>() ||
            index.as<faiss::IndexBinaryIDMap>() ||
            index.as<IndexConcurrent>() || index.as<IndexBinaryConcurrent>();
}

std::string string_inside(const AnyIndex& index) {
    const bool is_outer = comes_first(index) || index.as<faiss::IndexRefine>();
    return is_outer ? "" : index_string(index);
}

std::string string_behind(const std::string& front, const AnyIndex& index) {
    const std::string text = string_inside(index);
    return text.empty() ? "" : front + "," + text;
}

// Search parameters.

double SearchParameter::get() const {
    return members[0].get();
}

void SearchParameter::set(double value) const {
    for (const Member& member : members) {
        member.set(value);
    }
}

namespace {

/// Shows 1e9 with all its digits.
std::string number_text(double value) {
    const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
    return is_whole ? format_message("%.0f", value) : shortest(value);
}

} // namespace

std::string SearchParameter::expected() const {
    return std::string(is_integer ? "an integer" : "a number") + " from " +
            number_text(least) + " to " + number_text(most);
}

namespace {

SearchParameter* find_parameter(
        std::vector<SearchParameter>& all,
        const std::string& name) {
    const auto found =
            std::find_if(all.begin(), all.end(), [&](const SearchParameter& p) {
                return p.name == name;
            });
    return found == all.end() ? nullptr : &*found;
}

/// Makes one parameter of two parts.
void join_parameters(SearchParameter& one, const SearchParameter& other) {
    one.least = std::max(one.least, other.least);
    one.most = std::min(one.most, other.most);
    std::vector<double> values;
    std::set_intersection(
            one.values.begin(),
            one.values.end(),
            other.values.begin(),
            other.values.end(),
            std::back_inserter(values));
    one.values = values;
    one.members.insert(
            one.members.end(), other.members.begin(), other.members.end());
}

/// Makes parameters read and set in steps of an IndexConcurrent.
void share_parameters(
        const AnyIndex& index,
        std::vector<SearchParameter>& parameters) {
    for (SearchParameter& parameter : parameters) {
        for (SearchParameter::Member& member : parameter.members) {
            member = {
                    [index, get = member.get] {
                        const ReadingStep step(index);
                        return get();
                    },
                    [index, set = member.set](double value) {
                        const ChangingStep step(index);
                        set(value);
                    }};
        }
    }
}

std::vector<SearchParameter> parameters_of(const AnyIndex& index) {
    std::vector<SearchParameter> all;
    if (!index) {
        return all;
    }
    const ReadingStep step(index);
    std::vector<SearchParameter> of_quantizer;
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_quantizer) {
            of_quantizer = parameters_of(part.index);
        } else if (part.is_searched) {
            for (const SearchParameter& parameter : parameters_of(part.index)) {
                if (auto* same = find_parameter(all, parameter.name)) {
                    join_parameters(*same, parameter);
                } else {
                    all.push_back(parameter);
                }
            }
        }
    }
    if (const auto& own = facts_of(index).parameters) {
        for (SearchParameter parameter : own(index)) {
            while (find_parameter(all, parameter.name)) {
                parameter.name += "_rf"; // as FAISS calls that of IndexRefine
            }
            all.push_back(parameter);
        }
    }
    for (SearchParameter parameter : of_quantizer) {
        parameter.name = "quantizer_" + parameter.name;
        // shards that share a quantizer ask it alone
        if (auto* same = find_parameter(all, parameter.name)) {
            *same = parameter;
        } else {
            all.push_back(parameter);
        }
    }
    if (index.as<IndexConcurrent>() || index.as<IndexBinaryConcurrent>()) {
        share_parameters(index, all);
    }
    return all;
}

/// Throws if an index has no such parameter, or if it cannot have this value.
SearchParameter checked_parameter(
        const AnyIndex& index,
        const std::string& name,
        double value) {
    std::vector<SearchParameter> all = parameters_of(index);
    const SearchParameter* found = find_parameter(all, name);
    if (!found) {
        std::string names;
        for (const SearchParameter& parameter : all) {
            names += (names.empty() ? "" : ", ") + parameter.name;
        }
        FAISS_EXT_THROW_FMT(
                "%s has no search parameter '%s'; it has %s",
                index.class_name().c_str(),
                name.c_str(),
                names.empty() ? "none" : names.c_str());
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            value >= found->least && value <= found->most &&
                    (!found->is_integer || value == std::floor(value)),
            "%s must be %s, got %s",
            name.c_str(),
            found->expected().c_str(),
            number_text(value).c_str());
    return *found;
}

} // namespace

std::vector<SearchParameter> search_parameters(faiss::Index& index) {
    return parameters_of(index);
}

std::vector<SearchParameter> search_parameters(faiss::IndexBinary& index) {
    return parameters_of(index);
}

void check_search_parameter(
        const AnyIndex& index,
        const std::string& name,
        double value) {
    checked_parameter(index, name, value);
}

void set_search_parameter(
        faiss::Index& index,
        const std::string& name,
        double value) {
    checked_parameter(index, name, value).set(value);
}

void set_search_parameter(
        faiss::IndexBinary& index,
        const std::string& name,
        double value) {
    checked_parameter(index, name, value).set(value);
}

SavedSearchParameters::SavedSearchParameters(faiss::Index& index) {
    save(search_parameters(index));
}

SavedSearchParameters::SavedSearchParameters(faiss::IndexBinary& index) {
    save(search_parameters(index));
}

void SavedSearchParameters::save(
        const std::vector<SearchParameter>& parameters) {
    for (const SearchParameter& parameter : parameters) {
        for (const SearchParameter::Member& member : parameter.members) {
            values.emplace_back(member, member.get());
        }
    }
}

void SavedSearchParameters::apply() const {
    for (const auto& [member, value] : values) {
        member.set(value);
    }
}

// What is stored.

namespace {

/// The only part of an index, if it is searched; or none.
AnyIndex only_part(const AnyIndex& index) {
    const std::vector<IndexPart> parts = parts_of(index);
    return parts.size() == 1 && parts[0].is_searched ? parts[0].index
                                                     : AnyIndex();
}

} // namespace

double extra_memory(const AnyIndex& index, idx_t n) {
    const ReadingStep step(index);
    if (const auto& memory = facts_of(index).extra_memory) {
        return memory(index, n);
    }
    const std::vector<IndexPart> parts = parts_of(index);
    if (divides_vectors(index) && !parts.empty()) {
        n /= idx_t(parts.size());
    }
    double sum = 0;
    for (const IndexPart& part : parts) {
        if (part.is_searched && part.index) {
            sum += extra_memory(part.index, n);
        }
    }
    return sum;
}

idx_t unused_places(const AnyIndex& index) {
    const ReadingStep step(index);
    const auto& places = facts_of(index).unused_places;
    const AnyIndex part = only_part(index);
    return places ? places(index) : part ? unused_places(part) : 0;
}

namespace {

void compact_all(const AnyIndex& index) {
    const ChangingStep step(index);
    if (const auto& compact = facts_of(index).compact) {
        compact(index);
    }
    for (const IndexPart& part : parts_of(index)) {
        if (part.index) {
            compact_all(part.index);
        }
    }
}

} // namespace

void compact(faiss::Index& index) {
    compact_all(index);
}

void compact(faiss::IndexBinary& index) {
    compact_all(index);
}

namespace {

/// The part that is searched with the lists of an index, or the index itself.
AnyIndex part_with_lists(const AnyIndex& index) {
    if (!facts_of(index).list_sizes && !divides_vectors(index)) {
        for (const IndexPart& part : parts_of(index)) {
            if (part.is_searched && part.index) {
                return part_with_lists(part.index);
            }
        }
    }
    return index;
}

} // namespace

std::vector<idx_t> list_sizes(const AnyIndex& index) {
    const ReadingStep step(index);
    check_all_counts(index);
    const AnyIndex part = part_with_lists(index);
    const auto& sizes = facts_of(part).list_sizes;
    if (!sizes) {
        throw UnsupportedError(
                "list_sizes: " + part.class_name() +
                " has no inverted lists; " +
                (divides_vectors(part)
                         ? "call it for each of its parts"
                         : "a string with IVF, BIVF or KIVF makes them"));
    }
    return sizes(part);
}

AnyIndex part_that_stores(const AnyIndex& index) {
    const AnyIndex part = only_part(index);
    return part ? part_that_stores(part) : index;
}

// Ids.

bool keeps_ids(const AnyIndex& index) {
    const ReadingStep step(index);
    return id_table_of(index) || lists_keep_ids(index);
}

bool lists_keep_ids(const AnyIndex& index) {
    if (const auto keeps = facts_of(index).keeps_ids) {
        return *keeps;
    }
    const auto parts = parts_of(index);
    return std::any_of(parts.begin(), parts.end(), [](const IndexPart& part) {
        return part.is_searched && part.index && keeps_ids(part.index);
    });
}

AnyIndex part_in_front(const AnyIndex& index) {
    if (transforms_of(index).empty()) {
        for (const IndexPart& part : parts_of(index)) {
            if (part.is_searched && part.index && !part.is_of_other_kind) {
                return part_in_front(part.index);
            }
        }
    }
    return index;
}

bool divides_vectors(const AnyIndex& index) {
    return facts_of(index).divides_vectors.value_or(false);
}

std::optional<std::vector<idx_t>> ids_of(const AnyIndex& index) {
    if (const AnyIndex table = id_table_of(index)) {
        return ids_of(table);
    }
    if (const auto& ids = facts_of(index).ids) {
        return ids(index);
    }
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && !divides_vectors(index)) {
            return part.index ? ids_of(part.index) : std::nullopt;
        }
    }
    return std::nullopt;
}

std::vector<idx_t> index_ids(const AnyIndex& index) {
    const ReadingStep step(index);
    check_all_counts(index);
    if (auto ids = ids_of(index)) {
        return std::move(*ids);
    }
    std::vector<idx_t> ids;
    if (lists_keep_ids(index)) {
        for_lists(index, [&](const auto& lists) {
            for (size_t l = 0; l < lists.nlist; l++) {
                faiss::InvertedLists::ScopedIds own(invlists_of(lists), l);
                const size_t size = invlists_of(lists)->list_size(l);
                ids.insert(ids.end(), own.get(), own.get() + size);
            }
        });
    }
    if (idx_t(ids.size()) == index.ntotal()) {
        return ids;
    }
    if (lists_keep_ids(index) || divides_vectors(index)) {
        throw UnsupportedError(
                "index_ids: the ids in an index of class " +
                index.class_name() + " are not known");
    }
    ids.resize(index.ntotal());
    std::iota(ids.begin(), ids.end(), idx_t(0));
    return ids;
}

std::vector<bool> holds_ids(
        const AnyIndex& index,
        const std::vector<idx_t>& ids) {
    std::vector<bool> found(ids.size());
    if (auto own = ids_of(index)) {
        std::sort(own->begin(), own->end());
        for (size_t i = 0; i < ids.size(); i++) {
            found[i] = std::binary_search(own->begin(), own->end(), ids[i]);
        }
    } else {
        for (size_t i = 0; i < ids.size(); i++) {
            found[i] = ids[i] >= 0 && ids[i] < index.ntotal();
        }
    }
    return found;
}

bool selects(const AnyIndex& index) {
    if (const auto known = facts_of(index).selects) {
        return *known;
    }
    bool any = false;
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched) {
            if (!part.index || !selects(part.index)) {
                return false;
            }
            any = true;
        }
    }
    return any;
}

std::unique_ptr<faiss::SearchParameters> params_for_selected(
        const AnyIndex& index,
        double selected) {
    if (const auto& make = facts_of(index).params_for_selected) {
        return make(index, selected);
    }
    for (const IndexPart& part : parts_of(index)) {
        const bool gets_params = part.is_searched && !part.by_position;
        if (gets_params && part.index && !divides_vectors(index)) {
            return params_for_selected(part.index, selected);
        }
    }
    return std::make_unique<faiss::SearchParameters>();
}

AnyIndex part_that_keeps_places(const AnyIndex& index) {
    for (const IndexPart& part : parts_of(index)) {
        const bool is_moved = part.index && facts_of(index).prepare_moves &&
                !part.is_quantizer;
        const PlaceMoves none(part.index ? part.index.ntotal() : 0, {});
        if (is_moved && !prepare_moves(part.index, none)) {
            return part_that_keeps_places(part.index);
        }
    }
    return index;
}

std::function<void()> prepare_moves(
        const AnyIndex& index,
        const PlaceMoves& moves) {
    const auto& prepare = facts_of(index).prepare_moves;
    return prepare ? prepare(index, moves) : nullptr;
}

// Distances.

AnyIndex part_that_compares(const AnyIndex& index) {
    std::vector<AnyIndex> parts;
    for (const IndexPart& part : parts_of(index)) {
        if (part.compares && part.index) {
            parts.push_back(part.index);
        }
    }
    if (parts.empty()) {
        return index;
    }
    const auto string_of = [](const AnyIndex& part) -> std::string {
        const auto& string = facts_of(part).string;
        return string ? string(part) : "";
    };
    for (const AnyIndex& part : parts) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                parts.size() == 1 ||
                        (string_of(part) == string_of(parts[0]) &&
                         metric_text(part) == metric_text(parts[0])),
                "the parts of %s differ: %s, %s",
                index.class_name().c_str(),
                string_of(parts[0]).c_str(),
                string_of(part).c_str());
    }
    return part_that_compares(parts[0]);
}

namespace {

/// The vectors as the parts of an index see them, in `room` if it transforms
/// them.
VectorBatch for_parts(
        const faiss::Index& index,
        const VectorBatch& x,
        std::vector<float>& room) {
    const auto& transformed = facts_of(index).transformed;
    if (!transformed) {
        return x;
    }
    room = transformed(index, x);
    return {x.n, room.data(), x.n > 0 ? idx_t(room.size()) / x.n : x.d};
}

void compute_values(
        const faiss::Index& index,
        const VectorBatch& given,
        idx_t k,
        const std::vector<idx_t>& ids,
        float* values) {
    if (const auto* flat = dynamic_cast<const IndexFlatKernel*>(&index)) {
        compute_kernel_subset(*flat, given, k, values, ids.data());
        return;
    }
    check_counts(index);
    std::vector<idx_t> own_ids = ids;
    if (const AnyIndex table = id_table_of(index)) {
        table.as<IndexIDTable>()->to_positions(
                idx_t(ids.size()), ids.data(), own_ids.data());
    }
    const IndexFacts& facts = facts_of(index);
    std::vector<float> room;
    const VectorBatch x = for_parts(index, given, room);
    std::vector<int> owners(ids.size());
    const std::vector<IndexPart> parts = parts_of(index);
    for (size_t p = 0; p < parts.size(); p++) {
        const faiss::Index* part = parts[p].index.floats;
        if (!parts[p].compares || !part) {
            continue;
        }
        const std::vector<idx_t> inside = facts.ids_in_part
                ? facts.ids_in_part(index, p, own_ids)
                : own_ids;
        // the queries with an id in this part
        std::vector<idx_t> rows, own;
        for (idx_t i = 0; i < x.n; i++) {
            const auto begin = inside.begin() + i * k;
            if (std::any_of(
                        begin, begin + k, [](idx_t id) { return id != -1; })) {
                rows.push_back(i);
                own.insert(own.end(), begin, begin + k);
            }
        }
        std::vector<float> found(own.size());
        const GatheredVectors queries(x, rows);
        compute_values(*part, queries.get(), k, own, found.data());
        for (size_t r = 0; r < rows.size(); r++) {
            for (idx_t j = 0; j < k; j++) {
                if (own[r * k + j] != -1) {
                    values[rows[r] * k + j] = found[r * k + j];
                    owners[rows[r] * k + j]++;
                }
            }
        }
    }
    for (size_t i = 0; i < ids.size(); i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                ids[i] == -1 || owners[i] == 1,
                "%s has %d vectors with id %" PRId64 ", expected one",
                AnyIndex(index).class_name().c_str(),
                owners[i],
                int64_t(ids[i]));
    }
}

void compute_wanted_values(
        const faiss::Index& index,
        const VectorBatch& x,
        idx_t k,
        const idx_t* ids,
        float* values) {
    const ReadingStep step(index);
    check_all_counts(index);
    const std::vector<idx_t> wanted(ids, ids + x.n * k);
    compute_values(index, x, k, wanted, values);
    for (size_t i = 0; i < wanted.size(); i++) {
        values[i] = wanted[i] == -1 ? 0 : values[i];
    }
}

} // namespace

void compute_kernel_values(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        idx_t k,
        const idx_t* ids,
        float* values) {
    compute_wanted_values(index, {n, x, index.d}, k, ids, values);
}

void compute_kernel_values(
        const faiss::Index& index,
        const SparseVectors& x,
        idx_t k,
        const idx_t* ids,
        float* values) {
    check_takes_sparse(index, "compute_kernel_values");
    compute_wanted_values(index, x, k, ids, values);
}

} // namespace faiss_ext
