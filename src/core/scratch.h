// SPDX-License-Identifier: MIT
// Temporary arrays that are kept for reuse.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <faiss_ext/core/AlignedVector.h>

namespace faiss_ext {

/** An uninitialised array of floats that starts on a cache line and lives as
 * long as this object.
 *
 * Each thread keeps the arrays that it used last, up to 8 MB together.
 * Otherwise the system would provide arrays of some 100 KB page by page at
 * every call, which takes longer than filling them.
 */
struct Scratch {
    explicit Scratch(size_t size) : array(take(size)) {}
    ~Scratch() {
        give_back(std::move(array));
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    float* get() const {
        return array.data.get();
    }
    float& operator[](size_t i) const {
        return array.data[i];
    }

   private:
    struct Free {
        void operator()(float* p) const {
            AlignedAllocator<float>().deallocate(p, 0);
        }
    };
    struct Array {
        std::unique_ptr<float[], Free> data;
        size_t size = 0;
    };
    Array array;

    static constexpr size_t most_kept = 1 << 21, most_arrays = 16;

    static std::vector<Array>& kept() {
        thread_local std::vector<Array> arrays = [] {
            std::vector<Array> none;
            none.reserve(most_arrays); // destructors must not throw
            return none;
        }();
        return arrays;
    }

    /// Returns the smallest kept array that is large enough, or a new one.
    static Array take(size_t size) {
        std::vector<Array>& arrays = kept();
        size_t best = arrays.size();
        for (size_t i = 0; i < arrays.size(); i++) {
            if (arrays[i].size >= size &&
                (best == arrays.size() || arrays[i].size < arrays[best].size)) {
                best = i;
            }
        }
        if (best < arrays.size()) {
            Array found = std::move(arrays[best]);
            arrays.erase(arrays.begin() + best);
            return found;
        }
        return {std::unique_ptr<float[], Free>(
                        AlignedAllocator<float>().allocate(size)),
                size};
    }

    static void give_back(Array array) {
        if (array.size > most_kept) {
            return;
        }
        std::vector<Array>& arrays = kept();
        size_t total = array.size;
        for (const Array& other : arrays) {
            total += other.size;
        }
        while (!arrays.empty() &&
               (total > most_kept || arrays.size() == most_arrays)) {
            total -= arrays.front().size;
            arrays.erase(arrays.begin());
        }
        arrays.push_back(std::move(array));
    }
};

} // namespace faiss_ext
