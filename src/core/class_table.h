// Tables of classes by name and by type, which registries are made of.

#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>
#include <vector>

#include "core/errors.h"

namespace faiss_ext {

/// Thread-safe.
template <class Entry>
struct ClassTable {
    std::vector<Entry> entries;
    std::mutex mutex = {};

    void add(Entry entry) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const Entry& e : entries) {
            FAISS_EXT_THROW_IF_NOT_FMT(
                    e.name != entry.name && e.type != entry.type,
                    "%s, or its class, is already registered (as %s)",
                    entry.name.c_str(),
                    e.name.c_str());
        }
        entries.push_back(std::move(entry));
    }

    std::unique_ptr<Entry> find(const std::string& name) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const Entry& e : entries) {
            if (e.name == name) {
                return std::make_unique<Entry>(e);
            }
        }
        return nullptr;
    }

    Entry find(const std::type_info& type) {
        std::lock_guard<std::mutex> lock(mutex);
        for (const Entry& e : entries) {
            if (e.type == type) {
                return e;
            }
        }
        FAISS_EXT_THROW_FMT(
                "class %s is not registered with faiss_ext", type.name());
    }

    std::vector<std::string> names() {
        std::lock_guard<std::mutex> lock(mutex);
        std::vector<std::string> names;
        for (const Entry& e : entries) {
            names.push_back(e.name);
        }
        std::sort(names.begin(), names.end());
        return names;
    }
};

} // namespace faiss_ext
