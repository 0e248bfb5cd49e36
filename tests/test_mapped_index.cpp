// SPDX-License-Identifier: MIT
// Mapped indexes (IO_FLAG_MMAP): they find the same as in memory and change
// nothing.

#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexShards.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/index_io.h>

#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using namespace std::string_literals;

namespace {

using faiss::Index;
using faiss::IndexBinary;

constexpr int d = 16, n = 300;
const std::string sik = "SIK64(gaussian)";
const std::string refusal = "mapped from a file";

// Common names for the two kinds of indexes.

void write(const Index& index, const std::string& name) {
    faiss_ext::write_index(&index, name.c_str());
}
void write(const IndexBinary& index, const std::string& name) {
    faiss_ext::write_index_binary(&index, name.c_str());
}

template <class T>
std::unique_ptr<T> read(const std::string& name, int flags = 0) {
    if constexpr (std::is_same_v<T, Index>) {
        return faiss_ext::read_index(name.c_str(), flags);
    } else {
        return faiss_ext::read_index_binary(name.c_str(), flags);
    }
}

template <class T>
std::unique_ptr<T> mapped(const std::string& name) {
    return read<T>(name, faiss::IO_FLAG_MMAP);
}

std::unique_ptr<Index> clone(const Index& index) {
    return faiss_ext::clone_index(&index);
}
std::unique_ptr<IndexBinary> clone(const IndexBinary& index) {
    return faiss_ext::clone_binary_index(&index);
}

template <class T>
auto data_for(idx_t count, uint64_t seed) {
    if constexpr (std::is_same_v<T, Index>) {
        return uniform_vectors(count, d, seed);
    } else {
        return random_bytes(count * 8, seed);
    }
}

bool has_ids(const Index& index) {
    return dynamic_cast<const faiss::IndexIDMap*>(&index);
}
bool has_ids(const IndexBinary& index) {
    return dynamic_cast<const faiss::IndexBinaryIDMap*>(&index);
}

template <class T>
void add(T& index, idx_t count, uint64_t seed) {
    const auto x = data_for<T>(count, seed);
    if (has_ids(index)) {
        std::vector<idx_t> ids(count);
        std::iota(ids.begin(), ids.end(), 1000 * seed);
        index.add_with_ids(count, x.data(), ids.data());
    } else {
        index.add(count, x.data());
    }
}

template <class T>
std::unique_ptr<T> make(const std::string& string, idx_t count = n) {
    std::unique_ptr<T> index;
    if constexpr (std::is_same_v<T, Index>) {
        index = index_factory(d, string);
        index->train(n, data_for<T>(n, 1).data());
    } else {
        const bool has_hash = string.find("SIK") != std::string::npos;
        index = index_binary_factory(has_hash ? d : 64, string);
        auto* map = dynamic_cast<faiss::IndexBinaryIDMap*>(index.get());
        IndexBinary* inside = map ? map->index : index.get();
        if (auto* hash = dynamic_cast<IndexBinaryKernelHash*>(inside)) {
            hash->train(n, uniform_vectors(n, d, 1).data());
            index->is_trained = true;
        } else {
            index->train(n, data_for<T>(n, 1).data());
        }
    }
    add(*index, count, 1);
    return index;
}

template <class T>
auto reconstructed(const T& index) {
    decltype(data_for<T>(1, 1)) out(index.d);
    index.reconstruct(has_ids(index) ? 1007 : 7, out.data());
    return out;
}

/// Runs all searches that the first of two indexes supports.
template <class T>
void expect_finds_the_same(const T& a, const T& b) {
    EXPECT_EQ(a.ntotal, b.ntotal);
    const auto q = data_for<T>(20, 2);
    for (int threads : {1, 4}) {
        const Threads guard(threads);
        expect_same(search(a, q, 7), search(b, q, 7));
        const auto one = data_for<T>(1, 3);
        expect_same(search(a, one, 400), search(b, one, 400));
        for (int radius : {1, 25}) {
            Ranges in_a;
            if (error_of([&] { in_a = range_search(a, q, radius); }).empty()) {
                EXPECT_EQ(in_a, range_search(b, q, radius));
            }
        }
        faiss::IDSelectorRange range(30, 140);
        faiss::SearchParameters params;
        params.sel = &range;
        if (error_of([&] { search(a, q, 7, &params); }).empty()) {
            expect_same(search(a, q, 7, &params), search(b, q, 7, &params));
        }
    }
    if (error_of([&] { reconstructed(a); }).empty()) {
        EXPECT_EQ(reconstructed(a), reconstructed(b));
    }
}

/// Counts how often a file is mapped into this process.
int mappings_of(const std::string& name) {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) {
        count += line.find(name) != std::string::npos;
    }
    return count;
}

/// Calls that would change the index throw, and it still finds the same.
template <class T>
void expect_refuses(T& index, const T& other) {
    EXPECT_TRUE(throws([&] { add(index, 5, 5); }, refusal, "IO_FLAG_MMAP"));
    EXPECT_TRUE(
            throws([&] { index.remove_ids(faiss::IDSelectorRange(0, 1005)); },
                   // not all classes support it
                   ""));
    const auto source = clone(other);
    EXPECT_TRUE(throws([&] { index.merge_from(*source); }, ""));
    EXPECT_EQ(source->ntotal, other.ntotal);
    expect_finds_the_same(other, index);
}

template <class T>
void check(const std::string& string) {
    SCOPED_TRACE(string);
    TemporaryFolder folder;
    const std::string name = folder / "index", again = folder / "again";
    const auto index = make<T>(string);
    write(*index, name);
    const Bytes bytes = file_bytes(name);
    {
        const auto copy = mapped<T>(name);
        EXPECT_GT(mappings_of(name), 0);
        expect_finds_the_same(*index, *copy);
        expect_refuses(*copy, *index);
        if (string.find("BIVF") == std::string::npos) {
            // also over its own file
            for (const std::string& to : {again, name}) {
                write(*copy, to);
                EXPECT_EQ(file_bytes(to), bytes);
            }
            expect_finds_the_same(*index, *copy);
            const auto cloned = clone(*copy);
            add(*cloned, 10, 4);
            EXPECT_EQ(cloned->ntotal, n + 10);
        }
        std::filesystem::remove(name);
        expect_finds_the_same(*index, *copy);
        EXPECT_GT(mappings_of(name), 0);
    }
    EXPECT_EQ(mappings_of(name), 0);
}

TEST(Mapped, FindTheSame) {
    for (const std::string& string :
         {sik + ",BFlat",
          sik + ",AFlat",
          sik + ",BIVF4",
          "RHBE48,AFlat"s,
          "KFlat(gaussian)"s,
          "KFlat(linear,store=f16)"s,
          "KFlat(chi2,store=u8)"s,
          "KFlat(linear,store=i8)"s,
          "KFlat(chi2,store=sparse)"s,
          "IDMap2,KFlat(jaccard,store=sparse)"s,
          "CWS64,BFlat,Refine(KFlat(jaccard,store=sparse))"s,
          "KIVF4(M=8,nprobe=2)"s,
          "KIVF4(M=4,residual=0)"s,
          "HKM1(chi2),PCAR8,KIVF4,Refine(KFlat(chi2))"s,
          "HKM1(chi2),PCAR8,KIVF4,RFlat"s,
          "HNSW8,KFlat(laplacian)"s,
          "L2norm,KFlat(gaussian)"s,
          "PCA8," + sik + ",BFlat",
          sik + ",BFlat,Refine(KFlat(gaussian))",
          "IDMap," + sik + ",BFlat",
          "IDMap2," + sik + ",AFlat",
          "IDMap2,KFlat(chi2)"s,
          "IDMap2," + sik + ",BFlat,Refine(KFlat(gaussian))"}) {
        check<Index>(string);
    }
}

TEST(Mapped, BinaryIndexesFindTheSame) {
    for (const std::string& string :
         {"BFlat"s,
          "IDMap,BFlat"s,
          "IDMap2,BFlat"s,
          "BIVF4"s,
          "BKFlat(jaccard)"s,
          "IDMap2,BKFlat(dice)"s,
          sik + ",BFlat",
          "IDMap2," + sik + ",BFlat"}) {
        check<IndexBinary>(string);
    }
}

TEST(Mapped, SeveralInShards) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    faiss::IndexShards shards(d, true, true);
    std::vector<std::unique_ptr<Index>> parts;
    for (const char* string : {"KFlat(gaussian)", "KFlat(gaussian)"}) {
        parts.push_back(make<Index>(string, 0));
        shards.addIndex(parts.back().get());
    }
    add<Index>(shards, n, 1);
    write(shards, name);
    const auto copy = mapped<Index>(name);
    EXPECT_GT(mappings_of(name), 0);
    expect_finds_the_same<Index>(shards, *copy);
}

/// Damage is found before anything is used.
TEST(Mapped, Damage) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    for (const std::string& string :
         {sik + ",BFlat",
          sik + ",AFlat",
          "KIVF4(M=8)"s,
          "KFlat(chi2,store=sparse)"s}) {
        write(*make<Index>(string), name);
        const Bytes good = file_bytes(name);
        for (size_t i = 0; i < good.size(); i += 53) {
            Bytes bad = good;
            bad[i] ^= 1;
            write_file(name, bad);
            EXPECT_TRUE(throws([&] { mapped<Index>(name); })) << i;
            bad.resize(i);
            write_file(name, bad);
            EXPECT_TRUE(throws([&] { mapped<Index>(name); })) << i;
        }
    }
    // FAISS's format has sizes, but no checksums
    write(*make<IndexBinary>("BFlat"), name);
    const Bytes good = file_bytes(name);
    for (size_t i = 0; i < good.size(); i += i < 100 ? 1 : 97) {
        write_file(name, Bytes(good.begin(), good.begin() + i));
        EXPECT_TRUE(throws([&] { mapped<IndexBinary>(name); })) << i;
    }
    for (size_t i : {4, 8, 12, 24, 32}) {
        Bytes bad = good;
        bad[i] ^= 64;
        write_file(name, bad);
        EXPECT_TRUE(throws([&] { mapped<IndexBinary>(name); })) << i;
    }
}

/// Arrays beyond the end of the frame, and padding that is not zero.
TEST(Mapped, HostileFiles) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    write(*make<Index>("KFlat(linear)"), name);
    const Bytes content = content_of(file_bytes(name));
    const size_t size = n * d * sizeof(float);
    const size_t at = content.size() - size; // begin of the vectors
    ASSERT_EQ(at % 64, 0u);
    size_t zeros = 1;
    while (content[at - zeros] == 0) {
        zeros++;
    }
    ASSERT_EQ(content[at - zeros], zeros - 1);
    const auto refused = [&](const Bytes& bad, const std::string& message) {
        write_file(name, sealed(bad));
        for (int flags : {0, int(faiss::IO_FLAG_MMAP)}) {
            EXPECT_TRUE(throws([&] { read<Index>(name, flags); }, message));
        }
    };
    Bytes bad = content;
    bad[at - 1] = 1;
    refused(bad, "zero");
    bad = content;
    bad[at - zeros] = 64;
    refused(bad, "expected 0 to 63");
    refused(Bytes(content.begin(), content.end() - 1), "truncated");
    bad = content;
    bad.push_back(0);
    refused(bad, "");
}

/// Parts that cannot be mapped are read and can be changed.
TEST(Mapped, StreamsAreRead) {
    for (const std::string& string :
         {sik + ",BFlat", "KIVF4(M=8)"s, "KFlat(chi2)"s}) {
        const auto index = make<Index>(string);
        faiss::VectorIOReader reader;
        reader.data = bytes_of(*index);
        faiss::BufferedIOReader buffered(&reader, 1000);
        const auto copy = faiss_ext::read_index(&buffered, faiss::IO_FLAG_MMAP);
        expect_finds_the_same(*index, *copy);
        add(*copy, 10, 4);
    }
}

/// In concatenated files only aligned arrays are mapped.
TEST(Mapped, ObjectsBehindEachOther) {
    TemporaryFolder folder;
    const std::string name = folder / "indexes";
    const auto a = make<Index>("KFlat(gaussian)"),
               b = make<Index>(sik + ",AFlat");
    {
        faiss::FileIOWriter writer(name.c_str());
        for (const auto* index : {b.get(), a.get(), b.get()}) {
            faiss_ext::write_index(index, &writer);
        }
    }
    faiss::FileIOReader reader(name.c_str());
    for (const auto* index : {b.get(), a.get(), b.get()}) {
        const auto copy = faiss_ext::read_index(&reader, faiss::IO_FLAG_MMAP);
        expect_finds_the_same(*index, *copy);
    }
}

/// A mapped index can be merged into another one, which then holds its vectors.
TEST(Mapped, MergedIntoOthers) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto merge = [&]<class T>(const T& index, T& to, T& expected) {
        write(index, name);
        const auto source = mapped<T>(name), copy = clone(index);
        EXPECT_GT(mappings_of(name), 0);
        to.merge_from(*source, to.ntotal);
        expected.merge_from(*copy, expected.ntotal);
        expect_finds_the_same(expected, to);
        EXPECT_EQ(source->ntotal, 0);
        EXPECT_EQ(mappings_of(name), 0);
        add(*source, 5, 5); // it is an independent index again
        EXPECT_EQ(source->ntotal, 5);
    };
    for (const std::string& string :
         {sik + ",BFlat",
          sik + ",AFlat",
          "KFlat(chi2,store=u8)"s,
          "KFlat(linear,store=i8)"s,
          "KFlat(chi2,store=sparse)"s,
          "KIVF4(M=8)"s}) {
        SCOPED_TRACE(string);
        const auto index = make<Index>(string);
        merge(*index, *clone(*index), *clone(*index));
    }
    const auto index = make<IndexBinary>("BFlat");
    merge(*index, *clone(*index), *clone(*index));
}

// FAISS finds out in a parallel loop, which ends the process.
TEST(Mapped, ListsOfFaissInsideClassesOfThisLibrary) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto x = data_for<Index>(n, 1);
    const faiss::IDSelectorRange some(0, 3);
    for (const char* string :
         {"Concurrent,IVF4,Flat",
          "HKM1(chi2),IVF4,Flat",
          "HKM1(chi2),IVF4,PQ4np",
          "IVF4,Flat,Refine(KFlat(chi2))"}) {
        SCOPED_TRACE(string);
        const auto index = make<Index>(string);
        write(*index, name);
        const auto copy = mapped<Index>(name);
        const idx_t id = 3, unused = 5000;
        expect_throws(
                {{[&] { copy->add(2, x.data()); }, refusal},
                 {[&] { copy->add_with_ids(1, x.data(), &unused); }, refusal},
                 {[&] { copy->remove_ids(some); }, refusal},
                 {[&] { update_vectors(*copy, 1, &id, x.data()); }, refusal},
                 {[&] { upsert(*copy, 1, x.data(), &id); }, refusal},
                 {[&] { copy->merge_from(*clone(*index)); }, refusal},
                 {[&] { copy->reset(); }, refusal}});
        expect_finds_the_same(*index, *copy);
    }
}

TEST(Mapped, WhatChangesThrows) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto x = data_for<Index>(n, 1);
    const faiss::IDSelectorRange all(0, n);
    for (const std::string& string :
         {sik + ",AFlat",
          "KFlat(chi2)"s,
          "KFlat(chi2,store=sparse)"s,
          "KIVF4(M=8)"s}) {
        SCOPED_TRACE(string);
        const auto index = make<Index>(string);
        write(*index, name);
        const auto copy = mapped<Index>(name);
        expect_throws(
                {{[&] { copy->train(n, x.data()); }, refusal},
                 {[&] { copy->add(n, x.data()); }, refusal},
                 {[&] { copy->remove_ids(all); }, refusal},
                 {[&] { copy->merge_from(*index, n); }, refusal}});
        EXPECT_EQ(index->ntotal, n);
        expect_finds_the_same(*index, *copy);
        copy->reset();
        EXPECT_EQ(mappings_of(name), 0);
        add(*copy, n, 1);
        expect_finds_the_same(*index, *copy);
    }
    write(*make<Index>("KFlat(chi2)"), name);
    const auto flat = mapped<Index>(name);
    auto& kernel = dynamic_cast<IndexFlatKernel&>(*flat);
    expect_throws(
            {{[&] { kernel.add_sa_codes(0, nullptr, nullptr); }, refusal},
             {[&] { kernel.permute_entries(nullptr); }, refusal}});
    write(*make<Index>("KFlat(chi2,store=sparse)"), name);
    const auto sparse = mapped<Index>(name);
    EXPECT_TRUE(throws(
            [&] {
                dynamic_cast<IndexFlatKernel&>(*sparse).permute_entries(
                        nullptr);
            },
            refusal));

    const auto index = make<IndexBinary>("BFlat");
    write(*index, name);
    const auto copy = mapped<IndexBinary>(name);
    const auto codes = data_for<IndexBinary>(n, 1);
    expect_throws(
            {{[&] { copy->train(n, codes.data()); }, refusal},
             {[&] { copy->add(n, codes.data()); }, refusal},
             {[&] { copy->remove_ids(all); }, refusal},
             {[&] { copy->merge_from(*index, n); }, refusal}});
    expect_finds_the_same(*index, *copy);
    copy->reset();
    add(*copy, n, 1);
    expect_finds_the_same(*index, *copy);
}

/// An index without vectors is not mapped and can be filled.
TEST(Mapped, EmptyIndexes) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    for (const std::string& string :
         {sik + ",BFlat",
          sik + ",AFlat",
          "KIVF4(M=8)"s,
          "KFlat(chi2,store=sparse)"s}) {
        write(*make<Index>(string, 0), name);
        const auto copy = mapped<Index>(name);
        EXPECT_EQ(mappings_of(name), 0);
        add(*copy, n, 1);
        expect_finds_the_same(*make<Index>(string), *copy);
    }
}

} // namespace
