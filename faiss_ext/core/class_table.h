// SPDX-License-Identifier: MIT
// Tables of classes by name and by type. Strings, files and copies find a class
// here.

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
    std::string name; ///< name in strings and files
    /// The parameter whose value may follow the name: `order` in `HKM2`.
    std::string number_key;
    std::type_index type;
    std::function<std::unique_ptr<Base>()> make; ///< makes a default object
    std::function<std::unique_ptr<Base>(const Base&)> copy;
    std::function<void(Base& to, const Base& from)> assign;

    /// Set for a class that has no name of its own in strings: there it has the
    /// name `of` and an argument with one of some values, as IndexSparseKernel
    /// is `KFlat(store=sparse)`. Its own name is that in files, with characters
    /// that strings do not have.
    struct Variant {
        std::string of, key;
        std::vector<std::string> values;
    } variant = {};
};

/// Makes the entry of class C, which must have a default constructor. If C
/// cannot be copied or assigned, copy or assign is empty.
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
            nullptr,
            {}};
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

/// The place of a table's class names in strings.
enum class Names {
    inside, ///< in parentheses: letters, digits and `_`
    /// at the beginning of a part, before numbers: letters, except names that
    /// have a meaning in FAISS
    prefix
};

/// The registered classes derived from Base. Thread-safe.
template <class Base>
struct ClassTable {
    /// @param noun  the word for Base in messages
    ClassTable(
            const std::string& noun,
            Names names,
            const std::vector<ClassEntry<Base>>& entries);
    ~ClassTable();

    /// Throws if the name is malformed, or if the name or the class is
    /// registered already.
    void add(const ClassEntry<Base>& entry);

    /// Returns the entry of a name, or null.
    std::unique_ptr<ClassEntry<Base>> find(const std::string& name) const;

    /// Returns the entry for a name in a string: a variant, if is_given(key,
    /// value) is true of its argument, or that of the name. Null if the name is
    /// unknown.
    std::unique_ptr<ClassEntry<Base>> find_in_string(
            const std::string& name,
            const std::function<
                    bool(const std::string& key, const std::string& value)>&
                    is_given) const;

    /// Returns the entry of an object's class. Throws if it is not registered.
    ClassEntry<Base> find(const Base& object) const;

    bool knows(const Base& object) const;

    std::vector<std::string> names() const; ///< in strings, sorted

    const std::string& noun() const;

   private:
    struct State;
    std::unique_ptr<State> state;
};

/// The table of Base. There is one for Kernel, Projection and KernelHash, and
/// for FAISS's VectorTransform (explicit feature maps), Index and IndexBinary.
template <class Base>
ClassTable<Base>& class_table();

} // namespace faiss_ext
