// SPDX-License-Identifier: MIT
// Implementation of ClassTable, included by the files that define a table.

#pragma once

#include <algorithm>
#include <mutex>

#include <faiss_ext/core/class_table.h>

#include "core/errors.h"

namespace faiss_ext {

/// Throws if a name is invalid in strings or is taken already.
void reserve_name(
        const std::string& name,
        Names names,
        const std::string& noun);

/// The class under which an object is registered.
template <class Base>
const std::type_info& class_of(const Base& object) {
    return typeid(object);
}

template <class Base>
struct ClassTable<Base>::State {
    std::string noun;
    Names names;
    std::vector<ClassEntry<Base>> entries;
    mutable std::mutex mutex;

    template <class Predicate>
    const ClassEntry<Base>* find(Predicate&& predicate) const {
        const auto found =
                std::find_if(entries.begin(), entries.end(), predicate);
        return found == entries.end() ? nullptr : &*found;
    }
};

template <class Base>
ClassTable<Base>::ClassTable(
        const std::string& noun,
        Names names,
        const std::vector<ClassEntry<Base>>& entries)
        : state(std::make_unique<State>()) {
    state->noun = noun;
    state->names = names;
    for (const ClassEntry<Base>& entry : entries) {
        add(entry);
    }
}

template <class Base>
ClassTable<Base>::~ClassTable() = default;

template <class Base>
void ClassTable<Base>::add(const ClassEntry<Base>& entry) {
    std::lock_guard<std::mutex> lock(state->mutex);
    const auto* known = state->find([&](const ClassEntry<Base>& e) {
        return e.name == entry.name || e.type == entry.type;
    });
    FAISS_EXT_THROW_IF_NOT_FMT(
            !known,
            "'%s' cannot be registered: this name or its class is already registered, as '%s'",
            entry.name.c_str(),
            known->name.c_str());
    if (entry.variant.of.empty()) {
        reserve_name(entry.name, state->names, state->noun);
    }
    state->entries.push_back(entry);
}

template <class Base>
std::unique_ptr<ClassEntry<Base>> ClassTable<Base>::find(
        const std::string& name) const {
    std::lock_guard<std::mutex> lock(state->mutex);
    const auto* found = state->find(
            [&](const ClassEntry<Base>& e) { return e.name == name; });
    return found ? std::make_unique<ClassEntry<Base>>(*found) : nullptr;
}

template <class Base>
std::unique_ptr<ClassEntry<Base>> ClassTable<Base>::find_in_string(
        const std::string& name,
        const std::function<bool(const std::string&, const std::string&)>&
                is_given) const {
    {
        std::lock_guard<std::mutex> lock(state->mutex);
        const auto* found = state->find([&](const ClassEntry<Base>& e) {
            return e.variant.of == name &&
                    std::any_of(
                            e.variant.values.begin(),
                            e.variant.values.end(),
                            [&](const std::string& value) {
                                return is_given(e.variant.key, value);
                            });
        });
        if (found) {
            return std::make_unique<ClassEntry<Base>>(*found);
        }
    }
    return find(name);
}

template <class Base>
ClassEntry<Base> ClassTable<Base>::find(const Base& object) const {
    std::lock_guard<std::mutex> lock(state->mutex);
    const auto* found = state->find([&](const ClassEntry<Base>& e) {
        return e.type == class_of(object);
    });
    FAISS_EXT_THROW_IF_NOT_FMT(
            found,
            "class %s is not registered, so it has no factory string and cannot be written; register it first",
            type_name(class_of(object)).c_str());
    return *found;
}

template <class Base>
bool ClassTable<Base>::knows(const Base& object) const {
    std::lock_guard<std::mutex> lock(state->mutex);
    return state->find([&](const ClassEntry<Base>& e) {
        return e.type == class_of(object);
    });
}

template <class Base>
std::vector<std::string> ClassTable<Base>::names() const {
    std::lock_guard<std::mutex> lock(state->mutex);
    std::vector<std::string> names;
    for (const ClassEntry<Base>& e : state->entries) {
        if (e.variant.of.empty()) {
            names.push_back(e.name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

template <class Base>
const std::string& ClassTable<Base>::noun() const {
    return state->noun;
}

} // namespace faiss_ext
