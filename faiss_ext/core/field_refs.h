// SPDX-License-Identifier: MIT
// References to members of any type. FieldVisitor's templates pass them to
// visitors in place of pointers and vectors. Classes with fields need nothing
// from this file.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/core/FileRange.h>
#include <faiss_ext/core/class_table.h>

namespace faiss_ext {

struct HasFields;

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

/// Objects of any classes, held by another object.
struct ObjectsRef {
    virtual ~ObjectsRef() = default;
    virtual size_t size() const = 0;
    virtual std::unique_ptr<ObjectRef> at(size_t i) const = 0;
    /// names of all classes that fit
    virtual std::vector<std::string> names() const = 0;
    /// Appends an empty object, for a FieldSetter.
    virtual std::unique_ptr<ObjectRef> add() = 0;
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

template <class T>
struct ObjectsRefOf : ObjectsRef {
    const std::vector<ClonePtr<T>>& parts;

    explicit ObjectsRefOf(const std::vector<ClonePtr<T>>& parts)
            : parts(parts) {}

    size_t size() const override {
        return parts.size();
    }
    std::unique_ptr<ObjectRef> at(size_t i) const override {
        return std::make_unique<ObjectRefOf<T>>(parts.at(i));
    }
    std::vector<std::string> names() const override {
        const ClonePtr<T> none;
        return ObjectRefOf<T>(none).names();
    }
    std::unique_ptr<ObjectRef> add() override {
        settable(parts).emplace_back();
        return at(parts.size() - 1);
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

} // namespace faiss_ext
