// Temporary arrays and aligned memory: what is allocated, given back and kept.

#include "core/scratch.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <faiss_ext/core/AlignedVector.h>

namespace {

std::atomic<int64_t> allocations{0}, arrays_alive{0};

} // namespace

// All aligned memory of this program is counted.
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

constexpr size_t line = 64;
constexpr size_t most = 1 << 21; ///< floats that a thread keeps

bool aligned(const void* p) {
    return reinterpret_cast<uintptr_t>(p) % line == 0;
}

/// Runs f in a thread that keeps nothing yet.
template <class F>
void in_thread(F&& f) {
    std::thread(f).join();
}

} // namespace

TEST(AlignedVector, BeginsOnACacheLine) {
    for (size_t n = 1; n < 200; n++) {
        AlignedVector<float> v(n, 1.5f);
        EXPECT_TRUE(aligned(v.data())) << n;
        v.push_back(2);
        EXPECT_TRUE(aligned(v.data())) << n;
        const AlignedVector<float> copy = v;
        EXPECT_TRUE(aligned(copy.data())) << n;
        EXPECT_EQ(copy, v);
        EXPECT_TRUE(aligned(AlignedVector<char>(n).data())) << n;
    }
    EXPECT_THROW(
            AlignedAllocator<float>().allocate(
                    std::numeric_limits<size_t>::max() / 2),
            std::bad_array_new_length);
}

TEST(Scratch, BeginsOnACacheLine) {
    for (size_t n : {0, 1, 3, 16, 17, 1000, 100000}) {
        const Scratch a(n), b(n);
        EXPECT_TRUE(aligned(a.get())) << n;
        EXPECT_TRUE(aligned(b.get())) << n;
    }
}

// What is in use is not given out again.
TEST(Scratch, NestedArraysAreApart) {
    in_thread([] {
        for (int round = 0; round < 3; round++) {
            std::deque<Scratch> nested;
            for (size_t i = 0; i < 40; i++) {
                nested.emplace_back(100 + i);
                for (size_t k = 0; k < 100 + i; k++) {
                    nested[i][k] = float(1000 * i + k);
                }
            }
            for (size_t i = 0; i < 40; i++) {
                for (size_t k = 0; k < 100 + i; k++) {
                    ASSERT_EQ(nested[i][k], float(1000 * i + k));
                    ASSERT_EQ(nested[i].get() + k, &nested[i][k]);
                }
            }
        }
    });
}

TEST(Scratch, IsUsedAgain) {
    in_thread([] {
        const float *large, *small;
        {
            const Scratch a(5000), b(1000);
            large = a.get();
            small = b.get();
        }
        const int64_t before = allocations;
        for (int round = 0; round < 10; round++) {
            {
                // the smallest that is large enough
                const Scratch a(1000), b(500);
                EXPECT_EQ(a.get(), small);
                EXPECT_EQ(b.get(), large);
            }
            {
                const Scratch a(1001);
                EXPECT_EQ(a.get(), large);
                const Scratch b(1);
                EXPECT_EQ(b.get(), small);
            }
            const Scratch a(0);
            EXPECT_EQ(a.get(), small);
        }
        EXPECT_EQ(allocations, before);
        const Scratch a(5001);
        EXPECT_EQ(allocations, before + 1);
    });
}

// At most 8 MB and 16 arrays are kept.
TEST(Scratch, LittleIsKept) {
    in_thread([] {
        const int64_t before = arrays_alive;
        {
            const Scratch huge(most + 1);
            huge[most] = 1;
            EXPECT_EQ(arrays_alive, before + 1);
        }
        EXPECT_EQ(arrays_alive, before);
        { const Scratch largest(most); }
        EXPECT_EQ(arrays_alive, before + 1);
        {
            std::deque<Scratch> nested;
            for (int i = 0; i < 7; i++) {
                nested.emplace_back(most / 3);
            }
            EXPECT_EQ(arrays_alive, before + 7); // one of them the largest
        }
        EXPECT_LE(arrays_alive, before + 3);
        EXPECT_GT(arrays_alive, before);
        {
            std::deque<Scratch> nested;
            for (int i = 0; i < 50; i++) {
                nested.emplace_back(10);
            }
        }
        EXPECT_LE(arrays_alive, before + 16);
        EXPECT_GE(arrays_alive, before + 15);
    });
}

// Each thread has its own, and gives them back when it ends.
TEST(Scratch, Threads) {
    const int64_t before = arrays_alive;
    const Scratch mine(100);
    const int64_t with_mine = arrays_alive;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([t, &mine] {
            for (int round = 0; round < 200; round++) {
                const Scratch a(100), b(300);
                EXPECT_NE(a.get(), mine.get());
                for (int k = 0; k < 100; k++) {
                    a[k] = float(t);
                    b[k] = float(-t);
                }
                for (int k = 0; k < 100; k++) {
                    ASSERT_EQ(a[k], float(t));
                    ASSERT_EQ(b[k], float(-t));
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(arrays_alive, with_mine);
    EXPECT_LE(with_mine, before + 1);
}
