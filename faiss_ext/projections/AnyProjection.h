#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/// A projection of any class as a value: copies are deep. It may be empty.
struct AnyProjection {
    AnyProjection() = default;
    template <class P>
    requires std::is_base_of_v<Projection, P> AnyProjection(P projection)
            : pointer(std::make_unique<P>(std::move(projection))) {}
    AnyProjection(std::unique_ptr<Projection> projection)
            : pointer(std::move(projection)) {}
    AnyProjection(const AnyProjection& other)
            : pointer(other ? other->clone() : nullptr) {}
    AnyProjection(AnyProjection&&) = default;
    AnyProjection& operator=(AnyProjection other) {
        pointer = std::move(other.pointer);
        return *this;
    }

    explicit operator bool() const {
        return pointer != nullptr;
    }
    Projection* get() const {
        return pointer.get();
    }
    Projection* operator->() const {
        return pointer.get();
    }
    Projection& operator*() const {
        return *pointer;
    }

    /// with the class
    void write(faiss::IOWriter* f) const;
    void read(faiss::IOReader* f);

   private:
    std::unique_ptr<Projection> pointer;
};

} // namespace faiss_ext
