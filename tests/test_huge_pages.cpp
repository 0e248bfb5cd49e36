// SPDX-License-Identifier: MIT
// Huge pages: which memory the system is asked to keep in them.

#include "core/huge_pages.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <faiss/IndexHNSW.h>
#include <faiss/impl/io.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr size_t mega = size_t(1) << 20;

// arrays of this size get new memory from the system, which no other test used
const int fixed_threshold = mallopt(M_MMAP_THRESHOLD, mega);

/// A part of the memory with the same properties; see proc(5), smaps.
struct Mapping {
    uintptr_t begin = 0, end = 0;
    bool is_advised = false; ///< to keep its pages in huge pages
    size_t huge_bytes = 0;   ///< that are in huge pages
};

std::vector<Mapping> all_mappings() {
    std::ifstream maps("/proc/self/smaps");
    std::vector<Mapping> all;
    for (std::string line; std::getline(maps, line);) {
        Mapping m;
        size_t kilobytes;
        if (sscanf(line.c_str(),
                   "%" SCNxPTR "-%" SCNxPTR " ",
                   &m.begin,
                   &m.end) == 2) {
            all.push_back(m);
        } else if (sscanf(line.c_str(), "AnonHugePages: %zu", &kilobytes)) {
            all.back().huge_bytes = kilobytes * 1024;
        } else if (line.starts_with("VmFlags:")) {
            all.back().is_advised = line.find(" hg") != std::string::npos;
        }
    }
    return all;
}

/// The one with this address, or an empty one.
Mapping mapping_of(const void* address, const std::vector<Mapping>& all) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const auto found = std::ranges::find_if(
            all, [&](const Mapping& m) { return m.begin <= at && at < m.end; });
    return found == all.end() ? Mapping() : *found;
}

/// Memory from the system, which begins on a block of this size.
class Memory {
   public:
    Memory(size_t size, size_t block)
            : size(size + block),
              all(
                      mmap(nullptr,
                           size + block,
                           PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS,
                           -1,
                           0)) {
        EXPECT_NE(all, MAP_FAILED);
        begin = static_cast<char*>(all);
        begin += -reinterpret_cast<uintptr_t>(begin) % block;
    }
    ~Memory() {
        munmap(all, size);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    char* begin;

   private:
    const size_t size;
    void* const all;
};

/// The size of a huge page; 0 if there are none, or if the system is an
/// emulator or older than Linux 6.1.
size_t size_of_huge_page() {
    std::string modes;
    std::getline(
            std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
            modes);
    size_t size = 0;
    std::ifstream("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") >> size;
    if (modes.find("[never]") != std::string::npos || size == 0 ||
        size > 4 * mega) {
        return 0;
    }
    const Memory memory(size, size);
    memory.begin[0] = 1;
    constexpr int collapse = 25;
    const bool can_collapse = madvise(memory.begin, size, MADV_HUGEPAGE) == 0 &&
            madvise(memory.begin, size, collapse) == 0;
    const Mapping found = mapping_of(memory.begin, all_mappings());
    return can_collapse && found.is_advised && found.huge_bytes >= size ? size
                                                                        : 0;
}

#define NEEDS_HUGE_PAGES()               \
    if (size_of_huge_page() == 0) {      \
        GTEST_SKIP() << "no huge pages"; \
    }

/// The share of places in this memory that are advised, of 64 places.
double advised_share(const void* data, size_t bytes) {
    const auto all = all_mappings();
    int count = 0;
    for (size_t i = 0; i < 64; i++) {
        const char* at = static_cast<const char*>(data) + bytes * i / 64;
        count += mapping_of(at, all).is_advised;
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
    const size_t page = size_of_huge_page();
    constexpr size_t num_blocks = 6;
    const Memory memory(num_blocks * page, page);
    char* const begin = memory.begin;
    // small pages, also if the system gives huge ones to all programs
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    std::iota(begin, begin + num_blocks * page, 1);
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    for (size_t i = 0; i < num_blocks; i++) { // each in a mapping of its own
        char* const block = begin + i * page;
        madvise(block, page, i % 2 ? MADV_SEQUENTIAL : MADV_NORMAL);
    }
    const auto huge_blocks = [&] {
        std::vector<bool> found;
        const auto all = all_mappings();
        for (size_t i = 0; i < num_blocks; i++) {
            found.push_back(mapping_of(begin + i * page, all).huge_bytes > 0);
        }
        return found;
    };
    EXPECT_EQ(huge_blocks(), std::vector<bool>(num_blocks));
    std::vector<Piece> pieces = {
            // the second half of block 3, block 4 and a little more
            {begin + 3 * page + page / 2, page + page / 2 + 100},
            // half of block 0, and a quarter that is not adjacent
            {begin, page / 2},
            {begin + page / 4 * 3, page / 4},
            // block 1: a byte too few
            {begin + page, page / 4 * 3 - 1},
            // another quarter of block 3
            {begin + 3 * page, page / 4},
            {begin + 2 * page, 0}};
    prefer_huge_pages(pieces);
    EXPECT_EQ(
            huge_blocks(),
            std::vector<bool>({true, false, false, true, true, false}));
    char value = 1;
    for (size_t i = 0; i < num_blocks * page; i++) {
        ASSERT_EQ(begin[i], value++) << i;
    }
}

TEST(HugePages, BlocksOfWhichNothingIsInUse) {
    NEEDS_HUGE_PAGES();
    const size_t page = size_of_huge_page();
    const Memory memory(4 * page, page);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (const int block : {0, 2, 3}) {
        memory.begin[block * page] = 1;
    }
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    const auto huge_bytes = [&] {
        return mapping_of(memory.begin, all_mappings()).huge_bytes;
    };
    const size_t before = huge_bytes();
    Piece pieces[] = {
            {memory.begin, 2 * page}, {memory.begin + 2 * page, 2 * page}};
    prefer_huge_pages(pieces);
    EXPECT_EQ(huge_bytes() - before, 3 * page);
}

TEST(HugePages, VectorsThatMove) {
    NEEDS_HUGE_PAGES();
    std::vector<char> v(40 * mega);
    const double before = advised_share(v);
    {
        const StaysInHugePages huge(v);
        v.back() = 1;
    }
    EXPECT_EQ(advised_share(v), before);
    {
        const StaysInHugePages huge(v);
        v.resize(41 * mega);
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
        const auto all = all_mappings();
        std::map<uintptr_t, size_t> huge; // by mapping
        size_t total = 0;
        for (const IndexIVFPQ4::List& list : ivf->lists) {
            const Mapping m = mapping_of(list.codes.data(), all);
            huge[m.begin] = m.huge_bytes;
            total += list.codes.size();
        }
        size_t sum = 0;
        for (const auto& [_, bytes] : huge) {
            sum += bytes;
        }
        EXPECT_GT(double(sum) / double(total), 0.5);
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
        auto* graph = dynamic_cast<IndexHNSWKernel*>(index.get());
        if (graph) {
            graph->hnsw.efConstruction = 1;
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
        if (graph) {
            graph->compact();
            expect_huge_pages(*graph);
        }
    }
}

} // namespace
