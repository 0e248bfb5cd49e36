// SPDX-License-Identifier: MIT
// What an object says about itself: each parameter with its name, range and
// meaning, and what it has drawn or learned. Factory strings, files, checks,
// descriptions and the documentation are all visitors of this.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/class_table.h>

namespace faiss_ext {

struct FieldVisitor;

/** A class whose parameters can be given in factory strings and whose objects
 * can be written to files.
 *
 * The default of a parameter is its value in a default-constructed object, and
 * is written nowhere else.
 */
struct HasFields {
    virtual ~HasFields() = default;

    /** Shows all fields to a visitor: first the parameters, then what was drawn
     * or learned.
     *
     * The order must be the same each time. Later fields may depend on earlier
     * ones (a range, say, or whether there is such a field at all).
     */
    virtual void fields(FieldVisitor& v) = 0;

    /// Called when the parameters have been set, by a constructor or by a
    /// string: computes what follows from them. Throws a FieldError where they
    /// do not go together.
    virtual void init() {}

    /// Called when all fields have been read from a file: computes what files
    /// do not hold. Throws where the parts do not fit each other.
    virtual void restore() {}
};

/// An error in the value of one parameter.
struct FieldError : faiss::FaissException {
    std::string key;

    /// `message` says what is wrong, and names the parameter.
    FieldError(const std::string& key, const std::string& message)
            : FaissException(message), key(key) {}
};

/// Throws a FieldError if a parameter is out of its range.
void check_fields(const HasFields& object);

/// The parameters as in factory strings, without those that are as in `fresh`,
/// a default-constructed object of the same class: `nu=2.5,gamma=0.02`, say.
std::string fields_to_string(const HasFields& object, const HasFields& fresh);

/// A parameter, in words.
struct FieldInfo {
    std::string key;           ///< name in strings
    std::string values;        ///< what it can be
    std::string default_value; ///< empty if it must be given
    std::string meaning;
};

/// All parameters of a default-constructed object.
std::vector<FieldInfo> list_fields(HasFields& object);

/// An object that is held by another one, whatever its class.
struct PartSlot {
    virtual ~PartSlot() = default;
    virtual HasFields* get() const = 0;   ///< null if there is none
    virtual bool* is_trained() const = 0; ///< null if it has no such field
    virtual std::string name() const = 0; ///< of its class
    virtual std::string noun() const = 0; ///< "kernel", say
    virtual std::vector<std::string> names() const = 0;    ///< that fit
    virtual bool knows(const std::string& name) const = 0; ///< fit or not
    virtual bool make(const std::string& name) = 0; ///< false: unknown or unfit
    virtual void clear() = 0;
    virtual std::string to_string() const = 0; ///< as in factory strings
    virtual std::unique_ptr<HasFields> copy() const = 0;
    virtual void set(std::unique_ptr<HasFields> object) = 0;
};

/// An array, whatever its type.
struct ArraySlot {
    virtual ~ArraySlot() = default;
    virtual size_t size() const = 0;
    virtual size_t item_size() const = 0;
    virtual bool is_float() const = 0;
    virtual void resize(size_t n) = 0;
    virtual void* data() = 0; ///< written to after a resize only
    virtual const void* in_order() const = 0; ///< to read from end to end

    /// Whether it can be used where it lies in a file, as a MappableVector can.
    virtual bool is_mappable() const {
        return false;
    }
    virtual void map(const FileRange&) {}
};

/// A field as visitors see it: its name in strings, or for messages, and its
/// meaning. What follows adds the value and what it may be.
struct Field {
    const char* key;
    const char* meaning;
};

/// yes or no
struct FlagField : Field {
    bool& value;
};

/// A number from low to high. Where `automatic` is given, the word `auto` sets
/// it, and the value is 0 until it has been chosen.
template <class T> // int64_t or double
struct NumberField : Field {
    T& value;
    T low, high;
    bool* automatic;

    bool is_automatic() const {
        return automatic && *automatic && value == 0;
    }
    bool is_valid() const {
        return is_automatic() || (value >= low && value <= high);
    }
};

/// words[value] of several words
struct WordField : Field {
    int& value;
    const std::vector<std::string>& words;
};

/// `28x56` of a product of `components`, or `auto`, which is 0 x 0
struct ShapeField : Field {
    int &rows, &columns;
    int64_t components;

    bool is_valid() const {
        return rows == 0 || columns == 0
                ? rows == columns
                : rows > 0 && int64_t(rows) * columns == components;
    }
};

/// An object with parameters of its own; `none`, if given, is the word for its
/// absence.
struct PartField : Field {
    PartSlot& part;
    const char* none;
};

/** A visitor of fields. The named functions are what HasFields::fields calls;
 * the overloads of `on` are what a visitor does.
 */
struct FieldVisitor {
    static constexpr size_t any_size = std::numeric_limits<size_t>::max();

    virtual ~FieldVisitor() = default;

    /// Whether parameters are to be shown that have no effect at present.
    virtual bool wants_all() const {
        return false;
    }

    // Parameters.

    void flag(const char* key, bool& value, const char* meaning) {
        on(FlagField{{key, meaning}, value});
    }

    template <class T>
    void integer(
            const char* key,
            T& value,
            int64_t low,
            int64_t high,
            const char* meaning,
            bool* automatic = nullptr) {
        int64_t v = int64_t(value);
        on(NumberField<int64_t>{{key, meaning}, v, low, high, automatic});
        set_if_changed(value, T(v));
    }
    void number(
            const char* key,
            double& value,
            double low,
            double high,
            const char* meaning,
            bool* automatic = nullptr) {
        on(NumberField<double>{{key, meaning}, value, low, high, automatic});
    }

    template <class E>
    void word(
            const char* key,
            E& value,
            const std::vector<std::string>& words,
            const char* meaning) {
        int v = int(value);
        on(WordField{{key, meaning}, v, words});
        set_if_changed(value, E(v));
    }

    void shape(
            const char* key,
            int& rows,
            int& columns,
            int64_t components,
            const char* meaning) {
        on(ShapeField{{key, meaning}, rows, columns, components});
    }

    template <class T>
    void part(
            const char* key,
            ClonePtr<T>& part,
            const char* meaning,
            const char* none = nullptr);

    // What was drawn or learned, for files: with the size it must have.

    template <class Vector>
    void array(const char* name, Vector& values, size_t size = any_size);
    void learned(const char* name, double& value) {
        on_learned(name, value);
    }
    template <class T>
    void learned_part(const char* name, ClonePtr<T>& part);

   protected:
    virtual void on(const FlagField& f) = 0;
    virtual void on(const NumberField<int64_t>& f) = 0;
    virtual void on(const NumberField<double>& f) = 0;
    virtual void on(const WordField& f) = 0;
    virtual void on(const ShapeField& f) = 0;
    virtual void on(const PartField& f) = 0;
    virtual void on_array(const char*, ArraySlot&, size_t) {}
    virtual void on_learned(const char*, double&) {}
    virtual void on_learned_part(const char*, PartSlot&) {}

   private:
    /// Writes nothing where a visitor only reads: an object may be visited by
    /// several threads at once.
    template <class T>
    static void set_if_changed(T& value, T visited) {
        if (value != visited) {
            value = visited;
        }
    }
};

// The rest makes slots of pointers and vectors.

template <class T>
struct PartSlotOf : PartSlot {
    using Base = typename T::Registered; ///< whose class table knows T
    ClonePtr<T>& part;

    explicit PartSlotOf(ClonePtr<T>& part) : part(part) {}

    HasFields* get() const override {
        return part.get();
    }
    bool* is_trained() const override {
        if constexpr (requires { part->is_trained; }) {
            return part ? &part->is_trained : nullptr;
        } else {
            return nullptr;
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
        part = nullptr;
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
            part = std::unique_ptr<T>(fitting);
        }
        return fitting;
    }
};

template <class Vector>
struct ArraySlotOf : ArraySlot {
    using T = std::remove_reference_t<decltype(*std::declval<Vector>().data())>;
    static constexpr bool mappable = requires(Vector & v, FileRange range) {
        v.map(range);
    };
    Vector& values;

    explicit ArraySlotOf(Vector& values) : values(values) {}

    size_t size() const override {
        return values.size();
    }
    size_t item_size() const override {
        return sizeof(T);
    }
    bool is_float() const override {
        return std::is_same_v<std::remove_const_t<T>, float>;
    }
    void resize(size_t n) override {
        if constexpr (mappable) {
            values.own().resize(n);
        } else {
            values.resize(n);
        }
    }
    void* data() override {
        return const_cast<std::remove_const_t<T>*>(values.data());
    }
    const void* in_order() const override {
        if constexpr (mappable) {
            return values.in_order();
        } else {
            return values.data();
        }
    }
    bool is_mappable() const override {
        return mappable;
    }
    void map(const FileRange& range) override {
        if constexpr (mappable) {
            values.map(range);
        }
    }
};

template <class T>
void FieldVisitor::part(
        const char* key,
        ClonePtr<T>& part,
        const char* meaning,
        const char* none) {
    PartSlotOf<T> slot(part);
    on(PartField{{key, meaning}, slot, none});
}

template <class Vector>
void FieldVisitor::array(const char* name, Vector& values, size_t size) {
    ArraySlotOf<Vector> slot(values);
    on_array(name, slot, size);
}

template <class T>
void FieldVisitor::learned_part(const char* name, ClonePtr<T>& part) {
    PartSlotOf<T> slot(part);
    on_learned_part(name, slot);
}

} // namespace faiss_ext
