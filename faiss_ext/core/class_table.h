// SPDX-License-Identifier: MIT
// Classes by name and by type: what strings, files and copies know a class by.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

namespace faiss_ext {

/// A class derived from Base.
template <class Base>
struct ClassEntry {
    std::string name; ///< in strings and files
    /// the parameter whose value may stand behind the name: `order` in `HKM2`
    std::string number_key;
    std::type_index type;
    std::function<std::unique_ptr<Base>()> make; ///< by default
    std::function<std::unique_ptr<Base>(const Base&)> copy;
    std::function<void(Base& to, const Base& from)> assign;
};

/// The entry of class C, which has a default constructor; what cannot be copied
/// has no copy and no assign.
template <class Base, class C>
ClassEntry<Base> class_entry(
        const std::string& name,
        const std::string& number_key = "") {
    ClassEntry<Base> entry{
            name,
            number_key,
            typeid(C),
            [] { return std::make_unique<C>(); },
            nullptr,
            nullptr};
    if constexpr (std::is_copy_constructible_v<C>) {
        entry.copy = [](const Base& from) {
            return std::make_unique<C>(dynamic_cast<const C&>(from));
        };
    }
    if constexpr (std::is_copy_assignable_v<C>) {
        entry.assign = [](Base& to, const Base& from) {
            dynamic_cast<C&>(to) = dynamic_cast<const C&>(from);
        };
    }
    return entry;
}

/// Where the names of a table's classes stand in strings.
enum class Names {
    inside, ///< in parentheses: letters, digits and `_`
    prefix  ///< at the beginning of a part, before numbers: letters, not
            ///< those that FAISS has a meaning for
};

/// The classes derived from Base that are known. Thread-safe.
template <class Base>
struct ClassTable {
    /// @param noun  what Base is called in messages
    ClassTable(
            const std::string& noun,
            Names names,
            const std::vector<ClassEntry<Base>>& entries);
    ~ClassTable();

    /// Throws if the name is malformed, or if it or the class is known already.
    void add(const ClassEntry<Base>& entry);

    /// The entry of a name, or null.
    std::unique_ptr<ClassEntry<Base>> find(const std::string& name) const;

    /// The entry of an object's class; throws if it is not known.
    ClassEntry<Base> find(const Base& object) const;

    bool knows(const Base& object) const;

    std::vector<std::string> names() const; ///< sorted

    const std::string& noun() const;

   private:
    struct State;
    std::unique_ptr<State> state;
};

/// The table of Base: one each for Kernel, Projection, KernelHash, and, of
/// FAISS, VectorTransform (explicit feature maps), Index and IndexBinary.
template <class Base>
ClassTable<Base>& class_table();

} // namespace faiss_ext
