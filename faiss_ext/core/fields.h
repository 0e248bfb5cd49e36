// SPDX-License-Identifier: MIT
// How an object describes itself: each parameter with its name, range and
// meaning, and the data that it has drawn or learnt. Factory strings, files,
// checks, descriptions and the documentation are visitors of these fields.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/class_table.h>

namespace faiss_ext {

struct FieldVisitor;

/** A class whose parameters can be given in factory strings, and whose objects
 * can be written to files.
 *
 * The default of a parameter is its value in a default-constructed object; it
 * is written nowhere else.
 */
struct HasFields {
    virtual ~HasFields() = default;

    /** Shows all fields to a visitor: first the parameters, then the data that
     * was drawn or learnt. The function itself changes nothing; a FieldSetter
     * sets the fields that it is shown.
     *
     * The order must be the same each time. Later fields may depend on earlier
     * ones, for example their range, or whether they exist at all.
     */
    virtual void fields(FieldVisitor& v) const = 0;

    /// Called when a constructor or a string has set the parameters. Computes
    /// derived values. Throws a FieldError if the parameters contradict each
    /// other.
    virtual void init() {}

    /// Called when all fields have been read from a file. Computes the data
    /// that files do not store. Throws if the fields do not match.
    virtual void restore() {}

    /// Throws if restore() would fail after the fields are written and read.
    /// Called before they are written.
    virtual void check_restorable() const {}
};

/// An error in the value of one parameter.
struct FieldError : faiss::FaissException {
    std::string key;

    /// `message` describes the error, and names the parameter.
    FieldError(const std::string& key, const std::string& message)
            : FaissException(message), key(key) {}
};

/// Throws a FieldError if a parameter is out of its range.
void check_fields(const HasFields& object);

/// The parameters as in factory strings, such as `nu=2.5,gamma=0.02`.
/// Parameters with the same value as in `fresh`, a default-constructed object
/// of the same class, are left out.
std::string fields_to_string(const HasFields& object, const HasFields& fresh);

/// The description of a parameter.
struct FieldInfo {
    std::string key;           ///< name in strings
    std::string values;        ///< possible values
    std::string default_value; ///< empty if it must be given
    std::string meaning;
};

/// All parameters of a default-constructed object.
std::vector<FieldInfo> list_fields(const HasFields& object);

/// The same member, not const. Only a FieldSetter, whose objects are not const,
/// may use it.
template <class T>
T& settable(const T& member) {
    return const_cast<T&>(member);
}

/// An object of any class, held by another object. The functions that are not
/// const belong to a FieldSetter.
struct ObjectRef {
    virtual ~ObjectRef() = default;
    virtual const HasFields* get() const = 0; ///< null if there is none
    virtual HasFields* get_settable() = 0;
    /// Empty if the object has no such field.
    virtual std::optional<bool> is_trained() const = 0;
    virtual void set_trained(bool is_trained) = 0;
    virtual std::string name() const = 0; ///< name of its class
    virtual std::string noun() const = 0; ///< its kind, for example "kernel"
    /// names of all classes that fit
    virtual std::vector<std::string> names() const = 0;
    /// whether a class has this name, even if it does not fit
    virtual bool knows(const std::string& name) const = 0;
    /// returns false if the class is unknown or does not fit
    virtual bool make(const std::string& name) = 0;
    virtual void clear() = 0;
    virtual std::string to_string() const = 0; ///< as in factory strings
    virtual std::unique_ptr<HasFields> copy() const = 0;
    virtual void set(std::unique_ptr<HasFields> object) = 0;
};

/// An array of any type.
struct ArrayRef {
    virtual ~ArrayRef() = default;
    virtual size_t size() const = 0;
    virtual size_t item_size() const = 0;
    virtual bool is_float() const = 0;
    virtual const void* sequential() const = 0; ///< for sequential access

    // The functions below belong to a FieldSetter.
    virtual void* resize(size_t n) = 0; ///< returns the items, to be written

    /// Whether its data can stay in a mapped file, as for a MappableVector.
    virtual bool is_mappable() const {
        return false;
    }
    virtual void map(const FileRange&) {}
};

/// A field as visitors see it: its name in strings or messages, and its
/// meaning. Derived classes add the value and its range.
struct Field {
    const char* key;
    const char* meaning;
};

/// A parameter that is yes or no.
struct FlagField : Field {
    const bool& value;
};

/// A number from low to high. If `automatic` is given, the word `auto` sets it,
/// and the value is 0 until it has been chosen.
template <class T> // int64_t or double
struct NumberField : Field {
    const T& value;
    T low, high;
    const bool* automatic;

    bool is_automatic() const {
        return automatic && *automatic && value == 0;
    }
    bool is_valid() const {
        return is_automatic() || (value >= low && value <= high);
    }
};

/// One of several words: words[value].
struct WordField : Field {
    const int& value;
    const std::vector<std::string>& words;
};

/// A shape such as `28x56`, whose product is `components`, or `auto`, which is
/// 0 x 0.
struct ShapeField : Field {
    const int &rows, &columns;
    int64_t components;

    bool is_valid() const {
        return rows == 0 || columns == 0
                ? rows == columns
                : rows > 0 && int64_t(rows) * columns == components;
    }
};

/// An object with its own parameters. If `none` is given, it is the word for
/// its absence.
struct PartField : Field {
    ObjectRef& part;
    const char* none;
};

/** A visitor of fields. HasFields::fields calls the named functions; visitors
 * implement the overloads of `on`.
 *
 * A visitor only reads, so several threads may visit an object at once, unless
 * it is a FieldSetter.
 */
struct FieldVisitor {
    static constexpr size_t any_size = std::numeric_limits<size_t>::max();

    virtual ~FieldVisitor() = default;

    /// Whether parameters that currently have no effect are shown too.
    virtual bool wants_all() const {
        return false;
    }

    /// Whether it is a FieldSetter.
    virtual bool sets() const {
        return false;
    }

    /// Sets a member that follows from the fields before it. Only a FieldSetter
    /// does so.
    template <class T>
    void assign(const T& member, T value) {
        if (sets()) {
            settable(member) = std::move(value);
        }
    }

    // Parameters.

    void flag(const char* key, const bool& value, const char* meaning) {
        on(FlagField{{key, meaning}, value});
    }

    template <class T>
    void integer(
            const char* key,
            const T& value,
            int64_t low,
            int64_t high,
            const char* meaning,
            const bool* automatic = nullptr) {
        int64_t v = int64_t(value);
        on(NumberField<int64_t>{{key, meaning}, v, low, high, automatic});
        assign(value, T(v));
    }
    void number(
            const char* key,
            const double& value,
            double low,
            double high,
            const char* meaning,
            const bool* automatic = nullptr) {
        on(NumberField<double>{{key, meaning}, value, low, high, automatic});
    }

    template <class E>
    void word(
            const char* key,
            const E& value,
            const std::vector<std::string>& words,
            const char* meaning) {
        int v = int(value);
        on(WordField{{key, meaning}, v, words});
        assign(value, E(v));
    }

    void shape(
            const char* key,
            const int& rows,
            const int& columns,
            int64_t components,
            const char* meaning) {
        on(ShapeField{{key, meaning}, rows, columns, components});
    }

    template <class T>
    void part(
            const char* key,
            const ClonePtr<T>& part,
            const char* meaning,
            const char* none = nullptr);

    // Data that was drawn or learnt, for files, with its required size.

    template <class Vector>
    void array(const char* name, const Vector& values, size_t size = any_size);
    /// Bytes of an index, or the range of a file in their place.
    template <class Vector>
    void bytes(
            const char* name,
            const Vector& items,
            const FileRange& range,
            size_t size);
    void learned(const char* name, const double& value) {
        on_learned(name, value);
    }
    template <class T>
    void learned_part(const char* name, const ClonePtr<T>& part);
    /// Calls show(item) for `count` items, each of which has its own fields.
    /// Missing items are shown as empty ones.
    template <class Item, class F>
    void items(const std::vector<Item>& items, size_t count, F&& show);

   protected:
    virtual void on(const FlagField& f) = 0;
    virtual void on(const NumberField<int64_t>& f) = 0;
    virtual void on(const NumberField<double>& f) = 0;
    virtual void on(const WordField& f) = 0;
    virtual void on(const ShapeField& f) = 0;
    virtual void on(const PartField& f) = 0;
    virtual void on_array(const char*, ArrayRef&, size_t) {}
    virtual void on_learned(const char*, const double&) {}
    virtual void on_learned_part(const char*, ObjectRef&) {}
};

/// A visitor that sets the fields of an object that is not const, by
/// settable().
struct FieldSetter : FieldVisitor {
    bool sets() const final {
        return true;
    }
};

// The rest makes ObjectRef and ArrayRef of pointers and vectors.

template <class T>
struct ObjectRefOf : ObjectRef {
    using Base = typename T::Registered; ///< its class table knows T
    const ClonePtr<T>& part;

    explicit ObjectRefOf(const ClonePtr<T>& part) : part(part) {}

    const HasFields* get() const override {
        return part.get();
    }
    HasFields* get_settable() override {
        return part.get();
    }
    std::optional<bool> is_trained() const override {
        if constexpr (requires { part->is_trained; }) {
            if (part) {
                return part->is_trained;
            }
        }
        return std::nullopt;
    }
    void set_trained(bool is_trained) override {
        if constexpr (requires { part->is_trained; }) {
            part->is_trained = is_trained;
        }
    }
    std::string name() const override {
        return class_table<Base>().find(*part).name;
    }
    std::string noun() const override {
        return class_table<Base>().noun();
    }
    std::vector<std::string> names() const override {
        std::vector<std::string> fitting;
        for (const std::string& name : class_table<Base>().names()) {
            const auto made = class_table<Base>().find(name)->make();
            if (dynamic_cast<const T*>(made.get())) {
                fitting.push_back(name);
            }
        }
        return fitting;
    }
    bool knows(const std::string& name) const override {
        return bool(class_table<Base>().find(name));
    }
    bool make(const std::string& name) override {
        const auto entry = class_table<Base>().find(name);
        return entry && take(entry->make());
    }
    void clear() override {
        settable(part) = nullptr;
    }
    std::string to_string() const override {
        if constexpr (requires { part->description(); }) {
            return part->description();
        } else {
            return name();
        }
    }
    std::unique_ptr<HasFields> copy() const override {
        return part->clone();
    }
    void set(std::unique_ptr<HasFields> object) override {
        take(std::move(object));
    }

   private:
    template <class Object>
    bool take(std::unique_ptr<Object> object) {
        auto* fitting = dynamic_cast<T*>(object.get());
        if (fitting) {
            static_cast<void>(object.release());
            settable(part) = std::unique_ptr<T>(fitting);
        }
        return fitting;
    }
};

template <class Vector>
struct ArrayRefOf : ArrayRef {
    using T = std::remove_reference_t<decltype(*std::declval<Vector>().data())>;
    static constexpr bool mappable = requires(Vector & v, FileRange range) {
        v.map(range);
    };
    const Vector& values;

    explicit ArrayRefOf(const Vector& values) : values(values) {}

    size_t size() const override {
        return values.size();
    }
    size_t item_size() const override {
        return sizeof(T);
    }
    bool is_float() const override {
        return std::is_same_v<std::remove_const_t<T>, float>;
    }
    void* resize(size_t n) override {
        if constexpr (mappable) {
            auto& own = settable(values).make_owned();
            own.resize(n);
            return own.data();
        } else {
            settable(values).resize(n);
            return settable(values).data();
        }
    }
    const void* sequential() const override {
        if constexpr (mappable) {
            return values.sequential();
        } else {
            return values.data();
        }
    }
    bool is_mappable() const override {
        return mappable;
    }
    void map(const FileRange& range) override {
        if constexpr (mappable) {
            settable(values).map(range);
        }
    }
};

template <class T>
void FieldVisitor::part(
        const char* key,
        const ClonePtr<T>& part,
        const char* meaning,
        const char* none) {
    ObjectRefOf<T> slot(part);
    on(PartField{{key, meaning}, slot, none});
}

template <class Vector>
void FieldVisitor::array(const char* name, const Vector& values, size_t size) {
    ArrayRefOf<Vector> slot(values);
    on_array(name, slot, size);
}

template <class Vector>
void FieldVisitor::bytes(
        const char* name,
        const Vector& items,
        const FileRange& range,
        size_t size) {
    const MappableBytes both{settable(items), settable(range)};
    array(name, both, size);
}

template <class Item, class F>
void FieldVisitor::items(
        const std::vector<Item>& items,
        size_t count,
        F&& show) {
    if (sets()) {
        settable(items).resize(std::min(items.size(), count));
    }
    const Item missing{};
    for (size_t i = 0; i < count; i++) {
        if (sets() && i == items.size()) {
            settable(items)
                    .emplace_back(); // one by one: `count` may be damaged
        }
        show(i < items.size() ? items[i] : missing);
    }
}

template <class T>
void FieldVisitor::learned_part(const char* name, const ClonePtr<T>& part) {
    ObjectRefOf<T> slot(part);
    on_learned_part(name, slot);
}

} // namespace faiss_ext
