// SPDX-License-Identifier: MIT
// Huge pages: which memory the system is asked to keep in them.

#include "core/huge_pages.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/impl/io.h>
#include <sys/mman.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr size_t mega = size_t(1) << 20;

/// Whether the system was asked to keep the page of this address in huge pages.
bool is_advised(const void* address) {
    std::ifstream maps("/proc/self/smaps");
    const auto at = reinterpret_cast<uintptr_t>(address);
    bool is_inside = false;
    for (std::string line; std::getline(maps, line);) {
        uintptr_t begin, end;
        if (sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) ==
            2) {
            is_inside = begin <= at && at < end;
        } else if (is_inside && line.starts_with("VmFlags:")) {
            return line.find(" hg") != std::string::npos;
        }
    }
    return false;
}

/// The size of a huge page; 0 if there are none, or advice cannot be seen, as
/// in emulators.
size_t visible_page() {
    std::string modes;
    std::getline(
            std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
            modes);
    size_t size = 0;
    std::ifstream("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") >> size;
    if (modes.find("[never]") != std::string::npos || size > 4 * mega) {
        return 0;
    }
    void* p =
            mmap(nullptr,
                 4 * mega,
                 PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS,
                 -1,
                 0);
    const bool is_seen =
            madvise(p, 4 * mega, MADV_HUGEPAGE) == 0 && is_advised(p);
    munmap(p, 4 * mega);
    return is_seen ? size : 0;
}

#define NEEDS_HUGE_PAGES()                          \
    if (visible_page() == 0) {                      \
        GTEST_SKIP() << "no advice for huge pages"; \
    }

/// The share of places in this memory that are advised, of 64 places.
double advised_share(const void* data, size_t bytes) {
    int count = 0;
    for (size_t i = 0; i < 64; i++) {
        count += is_advised(static_cast<const char*>(data) + bytes * i / 64);
    }
    return count / 64.0;
}

template <class Vector>
double advised_share(const Vector& v) {
    return advised_share(v.data(), v.size() * sizeof(*v.data()));
}

// More than three quarters of a large array lie in whole blocks, if a block is
// at most an eighth of it.
constexpr double most = 0.75;

TEST(HugePages, BlocksThatPiecesCover) {
    NEEDS_HUGE_PAGES();
    const size_t page = visible_page();
    constexpr size_t num_blocks = 6;
    void* const all =
            mmap(nullptr,
                 (num_blocks + 1) * page,
                 PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS,
                 -1,
                 0);
    ASSERT_NE(all, MAP_FAILED);
    auto* begin = static_cast<char*>(all);
    begin += -reinterpret_cast<uintptr_t>(begin) % page;
    std::iota(begin, begin + num_blocks * page, 1);
    std::vector<Piece> pieces = {
            // the end of block 3, block 4 and a little more
            {begin + 3 * page + page / 2, page + page / 2 + 100},
            // four eighths of block 0, and a quarter that is not adjacent
            {begin, page / 2},
            {begin + page * 3 / 4, page / 4},
            // block 1: a byte too few
            {begin + page, page / 4 * 3 - 1},
            // the other quarter of block 3
            {begin + 3 * page, page / 4},
            {begin + 2 * page, 0}};
    prefer_huge_pages(pieces);
    const std::vector<bool> expected = {true, false, false, true, true, false};
    for (size_t i = 0; i < num_blocks; i++) {
        EXPECT_EQ(is_advised(begin + i * page + page / 2), expected[i]) << i;
    }
    char value = 1;
    for (size_t i = 0; i < num_blocks * page; i++) {
        ASSERT_EQ(begin[i], value++) << i;
    }
    munmap(all, (num_blocks + 1) * page);
}

TEST(HugePages, VectorsThatMove) {
    NEEDS_HUGE_PAGES();
    std::vector<char> v(16 * mega);
    {
        const StaysInHugePages huge(v);
        v.back() = 1;
    }
    EXPECT_EQ(advised_share(v), 0);
    {
        const StaysInHugePages huge(v);
        v.resize(17 * mega);
    }
    EXPECT_GT(advised_share(v), most);
    // and the room for growth
    EXPECT_GT(advised_share(v.data(), v.capacity()), most);
}

TEST(HugePages, SmallOrEmptyMemory) {
    prefer_huge_pages(std::span<Piece>());
    prefer_huge_pages(Piece{nullptr, 0});
    int i = 5;
    prefer_huge_pages(Piece{&i, sizeof(i)});
    EXPECT_EQ(i, 5);
}

/// Checks the rows of a KFlat, the links of a graph or the lists of a KIVF.
void expect_huge_pages(const faiss::Index& index) {
    if (auto* flat = dynamic_cast<const IndexFlatKernel*>(&index)) {
        EXPECT_GT(advised_share(flat->codes), most);
    } else if (auto* graph = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        EXPECT_GT(advised_share(graph->hnsw.neighbors), most);
        expect_huge_pages(*graph->storage);
    } else if (auto* ivf = dynamic_cast<const IndexIVFPQ4*>(&index)) {
        double advised = 0, total = 0;
        for (const IndexIVFPQ4::List& list : ivf->lists) {
            advised += list.codes.size() * is_advised(list.codes.data());
            total += list.codes.size();
        }
        // a list can begin in another block than most of it
        EXPECT_GT(advised / total, 0.5);
    } else {
        FAIL() << "no such index";
    }
}

TEST(HugePages, Indexes) {
    NEEDS_HUGE_PAGES();
    const int d = 64;
    const idx_t n = 80000;
    const Floats x = uniform_vectors(n, d, 1);
    for (const char* string :
         {"KFlat(linear)", "HNSW32,KFlat(linear)", "KIVF64(M=64)"}) {
        SCOPED_TRACE(string);
        const auto index = index_factory(d, string);
        const bool is_graph = dynamic_cast<faiss::IndexHNSW*>(index.get());
        if (is_graph) {
            dynamic_cast<faiss::IndexHNSW&>(*index).hnsw.efConstruction = 1;
        }
        index->train(10000, x.data());
        const bool has_lists = dynamic_cast<IndexIVFPQ4*>(index.get());
        for (int i = 0; i < (has_lists ? 4 : 1); i++) { // lists take little
            index->add(n / 2, x.data());
            index->add(n - n / 2, &x[n / 2 * d]);
        }
        expect_huge_pages(*index);
        // a copy is written and read
        const auto copy = clone_index(index.get());
        expect_huge_pages(*copy);
        const Floats queries(x.begin(), x.begin() + 10 * d);
        expect_same(search(*copy, queries, 5), search(*index, queries, 5));
    }
}

} // namespace
