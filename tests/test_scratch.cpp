// SPDX-License-Identifier: MIT
// Temporary arrays and aligned memory: allocation, release and reuse.

#include "core/scratch.h"

#include <deque>
#include <new>
#include <thread>

#include <faiss_ext/core/AlignedVector.h>

#include "testing.h"

namespace {

std::atomic<int64_t> allocations{0}, arrays_alive{0};

} // namespace

// Counts all aligned memory of this program.
void* operator new(size_t size, std::align_val_t alignment) {
    const size_t a = size_t(alignment);
    void* p = std::aligned_alloc(a, (size + a - 1) / a * a + (size == 0) * a);
    if (!p) {
        throw std::bad_alloc();
    }
    allocations++;
    arrays_alive++;
    return p;
}

void operator delete(void* p, std::align_val_t) noexcept {
    arrays_alive -= p != nullptr;
    std::free(p);
}

void operator delete(void* p, size_t, std::align_val_t alignment) noexcept {
    operator delete(p, alignment);
}

using namespace faiss_ext;

namespace {

constexpr size_t most = 1 << 21; ///< floats that a thread may keep

bool aligned(const void* p) {
    return reinterpret_cast<uintptr_t>(p) % 64 == 0;
}

/// Takes `count` arrays at once and returns them.
void take(size_t count, size_t size) {
    std::deque<Scratch> nested;
    for (size_t i = 0; i < count; i++) {
        nested.emplace_back(size);
    }
}

} // namespace

TEST(Scratch, BeginsOnACacheLine) {
    for (size_t n : {0, 1, 3, 16, 17, 1000, 100000}) {
        const Scratch a(n), b(n);
        EXPECT_TRUE(aligned(a.get()) && aligned(b.get())) << n;
        AlignedVector<float> v(n, 1.5f);
        v.push_back(2);
        const AlignedVector<float> copy = v;
        EXPECT_EQ(copy, v);
        EXPECT_TRUE(aligned(v.data()) && aligned(copy.data())) << n;
        EXPECT_TRUE(aligned(AlignedVector<char>(n + 1).data())) << n;
    }
    AlignedAllocator<float> allocator;
    EXPECT_THROW(allocator.allocate(SIZE_MAX / 2), std::bad_array_new_length);
}

// An array in use is not given out again. A new thread keeps nothing yet.
TEST(Scratch, NestedArraysAreApart) {
    std::thread([] {
        for (int round = 0; round < 3; round++) {
            std::deque<Scratch> nested;
            for (size_t i = 0; i < 40; i++) {
                nested.emplace_back(100 + i);
                std::fill_n(nested[i].get(), 100 + i, float(i));
            }
            for (size_t i = 0; i < 40; i++) {
                const float* a = nested[i].get();
                EXPECT_EQ(std::count(a, a + 100 + i, float(i)), 100 + i);
            }
        }
    }).join();
}

TEST(Scratch, IsUsedAgain) {
    std::thread([] {
        const float *large, *small;
        {
            const Scratch a(5000), b(1000);
            large = a.get();
            small = b.get();
        }
        const int64_t before = allocations;
        for (int round = 0; round < 3; round++) {
            {
                // the smallest one that is large enough
                const Scratch a(1000), b(500);
                EXPECT_EQ(a.get(), small);
                EXPECT_EQ(b.get(), large);
            }
            const Scratch a(1001), b(0);
            EXPECT_EQ(a.get(), large);
            EXPECT_EQ(b.get(), small);
        }
        EXPECT_EQ(allocations, before);
        const Scratch a(5001);
        EXPECT_EQ(allocations, before + 1);
    }).join();
}

// At most 8 MB and 16 arrays are kept.
TEST(Scratch, LittleIsKept) {
    std::thread([] {
        const int64_t before = arrays_alive;
        take(1, most + 1);
        EXPECT_EQ(arrays_alive, before);
        take(1, most);
        EXPECT_EQ(arrays_alive, before + 1);
        take(7, most / 3);
        EXPECT_EQ(arrays_alive, before + 3);
        take(50, 10);
        EXPECT_LE(arrays_alive, before + 16);
        EXPECT_GE(arrays_alive, before + 15);
    }).join();
}

// Each thread has its own arrays and releases them when it ends.
TEST(Scratch, Threads) {
    const Scratch mine(100);
    const int64_t before = arrays_alive;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([t, &mine] {
            for (int round = 0; round < 200; round++) {
                const Scratch a(100);
                EXPECT_NE(a.get(), mine.get());
                std::fill_n(a.get(), 100, float(t));
                EXPECT_EQ(std::count(a.get(), a.get() + 100, float(t)), 100);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(arrays_alive, before);
}
