// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace faiss_ext {

/// Copies an object and keeps its static type T, which derives from the class
/// that declares clone().
template <class T>
std::unique_ptr<T> copy_as(const T& object) {
    auto copy = object.clone();
    return std::unique_ptr<T>(dynamic_cast<T*>(copy.release()));
}

/** An object of a class hierarchy as a value: copies are deep. It may be empty.
 *
 * If an object of the same class is assigned, the present object is kept and
 * changed, so that pointers to it stay valid. T must have the functions clone()
 * and assign().
 */
template <class T>
struct ClonePtr {
    ClonePtr() = default;
    ClonePtr(std::nullptr_t) {}
    template <class U>
    requires std::is_convertible_v<U*, T*> ClonePtr(std::unique_ptr<U> pointer)
            : pointer(std::move(pointer)) {}
    /// Holds an object of a class derived from T, as a value.
    template <class U>
    requires std::is_base_of_v<T, U> ClonePtr(U object)
            : pointer(std::make_unique<U>(std::move(object))) {}
    ClonePtr(const ClonePtr& other) : pointer(copy(other)) {}
    ClonePtr(ClonePtr&&) noexcept = default;

    ClonePtr& operator=(ClonePtr&& other) noexcept {
        pointer = std::move(other.pointer);
        return *this;
    }
    ClonePtr& operator=(const ClonePtr& other) {
        if (this == &other) {
            return *this;
        }
        if (pointer && other && typeid(*pointer) == typeid(*other)) {
            pointer->assign(*other);
        } else {
            pointer = copy(other);
        }
        return *this;
    }

    explicit operator bool() const {
        return pointer != nullptr;
    }
    bool operator==(std::nullptr_t) const {
        return pointer == nullptr;
    }
    T* get() const {
        return pointer.get();
    }
    T* operator->() const {
        return pointer.get();
    }
    T& operator*() const {
        return *pointer;
    }

   private:
    std::unique_ptr<T> pointer;

    static std::unique_ptr<T> copy(const ClonePtr& other) {
        return other ? copy_as<T>(*other) : nullptr;
    }
};

} // namespace faiss_ext
