// SPDX-License-Identifier: MIT
// How an object describes itself. It lists each parameter with its name, range
// and meaning, and the data that it has drawn or learnt. Factory strings,
// files, checks, descriptions and the documentation are made by visitors of
// these fields.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/MappableVector.h>
#include <faiss_ext/core/field_refs.h>

namespace faiss_ext {

struct FieldVisitor;

/** A class whose parameters can be given in factory strings, and whose objects
 * can be written to files.
 *
 * The default of a parameter is its value in a default-constructed object. It
 * is defined nowhere else.
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

/// The description of a parameter.
struct FieldInfo {
    std::string key;           ///< name in strings
    std::string values;        ///< possible values
    std::string default_value; ///< empty if it must be given
    std::string meaning;
    std::vector<std::string> words; ///< if it must be one of several words
};

/// All parameters of a default-constructed object.
std::vector<FieldInfo> list_fields(const HasFields& object);

// what visitors are shown
struct FlagField;
template <class T>
struct NumberField;
struct WordField;
struct ShapeField;
struct PartField;
struct PartsField;

/** A visitor of fields. HasFields::fields calls the named functions; the
 * library's visitors (src/core/field_visitor.h) implement the overloads of
 * `on`.
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

    void flag(const char* key, const bool& value, const char* meaning);

    template <class T>
    void integer(
            const char* key,
            const T& value,
            int64_t low,
            int64_t high,
            const char* meaning,
            const bool* automatic = nullptr) {
        int64_t v = int64_t(value);
        on_integer(key, v, low, high, meaning, automatic);
        assign(value, T(v));
    }
    void number(
            const char* key,
            const double& value,
            double low,
            double high,
            const char* meaning,
            const bool* automatic = nullptr);

    template <class E>
    void word(
            const char* key,
            const E& value,
            const std::vector<std::string>& words,
            const char* meaning) {
        int v = int(value);
        on_word(key, v, words, meaning);
        assign(value, E(v));
    }

    void shape(
            const char* key,
            const int& rows,
            const int& columns,
            int64_t components,
            const char* meaning);

    template <class T>
    void part(
            const char* key,
            const ClonePtr<T>& part,
            const char* meaning,
            const char* none = nullptr);

    /// At least one object. If there are weights, strings may write one in
    /// front of each object, as in `0.3*chi2`; otherwise it is 1.
    template <class T>
    void parts(
            const char* key,
            const std::vector<ClonePtr<T>>& parts,
            const std::vector<double>* weights,
            double low,
            double high,
            const char* meaning);

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
    /// Visitors of files see the objects as learned ones instead.
    virtual void on(const PartsField&) {}
    virtual void on_array(const char*, ArrayRef&, size_t) {}
    virtual void on_learned(const char*, const double&) {}
    virtual void on_learned_part(const char*, ObjectRef&) {}

   private:
    void on_integer(
            const char* key,
            int64_t& value,
            int64_t low,
            int64_t high,
            const char* meaning,
            const bool* automatic);
    void on_word(
            const char* key,
            int& value,
            const std::vector<std::string>& words,
            const char* meaning);
    void on_part(
            const char* key,
            ObjectRef& part,
            const char* meaning,
            const char* none);
    void on_parts(
            const char* key,
            ObjectsRef& parts,
            const std::vector<double>* weights,
            double low,
            double high,
            const char* meaning);
};

template <class T>
void FieldVisitor::part(
        const char* key,
        const ClonePtr<T>& part,
        const char* meaning,
        const char* none) {
    ObjectRefOf<T> slot(part);
    on_part(key, slot, meaning, none);
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
void FieldVisitor::parts(
        const char* key,
        const std::vector<ClonePtr<T>>& parts,
        const std::vector<double>* weights,
        double low,
        double high,
        const char* meaning) {
    ObjectsRefOf<T> slot(parts);
    on_parts(key, slot, weights, low, high, meaning);
    double count = double(parts.size());
    learned(key, count);
    const auto size = size_t(std::clamp(count, 0.0, 1e9));
    if (weights) {
        array("weights", *weights, size);
    }
    items(parts, size, [&](const auto& part) { learned_part(key, part); });
}

template <class T>
void FieldVisitor::learned_part(const char* name, const ClonePtr<T>& part) {
    ObjectRefOf<T> slot(part);
    on_learned_part(name, slot);
}

} // namespace faiss_ext
