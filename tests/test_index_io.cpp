// SPDX-License-Identifier: MIT
// Files, buffers and copies of indexes. The contract tests each class; this
// file tests the rest.

#include <cerrno>
#include <csignal>
#include <functional>
#include <new>
#include <set>
#include <sstream>
#include <thread>
#include <typeinfo>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>

#include <faiss_ext/hashes/BilinearShiftInvariantHash.h>
#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/hashes/ShiftInvariantHash.h>
#include <faiss_ext/hashes/SignCauchyHash.h>
#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIVFPQ4.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "core/field_files.h"
#include "indexes/index_compat.h"
#include "indexes/index_parts.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using namespace std::string_literals;

namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<uint8_t>;
using Names = std::vector<std::string>;
using faiss::Index;
using faiss::IndexBinary;
using faiss::VectorTransform;

// Common names for the three kinds of objects.

template <class T, class To>
void write(const T* object, To to) {
    if constexpr (std::is_same_v<T, Index>) {
        faiss_ext::write_index(object, to);
    } else if constexpr (std::is_same_v<T, IndexBinary>) {
        faiss_ext::write_index_binary(object, to);
    } else {
        faiss_ext::write_VectorTransform(object, to);
    }
}

template <class T, class From>
std::unique_ptr<T> read(From from) {
    if constexpr (std::is_same_v<T, Index>) {
        return faiss_ext::read_index(from);
    } else if constexpr (std::is_same_v<T, IndexBinary>) {
        return faiss_ext::read_index_binary(from);
    } else {
        return faiss_ext::read_VectorTransform(from);
    }
}

// Objects to write.

constexpr int d = 6;
constexpr idx_t n = 60;

const std::string sik = "SIK64(gaussian,gamma=1)";

/// Returns vectors for an index of either kind.
template <class T>
auto data_for(idx_t count, uint64_t seed) {
    if constexpr (std::is_same_v<T, Index>) {
        return uniform_vectors(count, d, seed);
    } else {
        const ShiftInvariantHash hash(d, 64, GaussianKernel(1));
        return codes_of(hash, uniform_vectors(count, d, seed));
    }
}

/// Makes an empty index. "Shards X", "Replicas X", "ThreadedShards X" and so on
/// are groups of two X.
template <class T = Index>
std::unique_ptr<T> make_empty(
        const std::string& string,
        faiss::MetricType metric = faiss::METRIC_L2) {
    constexpr bool is_float = std::is_same_v<T, Index>;
    const size_t space = string.find(' ');
    if (space == std::string::npos) {
        if constexpr (is_float) {
            return faiss_ext::index_factory(d, string, metric);
        } else {
            return faiss_ext::index_binary_factory(d, string);
        }
    }
    const std::string inner = string.substr(space + 1);
    const auto group_of = [&](auto group) -> std::unique_ptr<T> {
        own_group(*group);
        group->addIndex(make_empty<T>(inner, metric).release());
        group->addIndex(make_empty<T>(inner, metric).release());
        return group;
    };
    const int dim = is_float ? d : 64;
    const bool threaded = string.starts_with("Threaded");
    if (string.substr(0, space).ends_with("Shards")) {
        const bool successive_ids = !inner.starts_with("IDMap");
        return group_of(std::make_unique<faiss::IndexShardsTemplate<T>>(
                dim, threaded, successive_ids));
    }
    return group_of(
            std::make_unique<faiss::IndexReplicasTemplate<T>>(dim, threaded));
}

/// Trains the index, if necessary, and adds vectors, with ids if it accepts
/// some.
template <class T>
void fill(T& index, idx_t count = n, uint64_t seed = 1, idx_t first_id = 1000) {
    const auto x = data_for<T>(count, seed);
    if (!index.is_trained) {
        index.train(count, x.data());
    }
    std::vector<idx_t> ids(count);
    for (idx_t i = 0; i < count; i++) {
        ids[i] = first_id - 3 * i;
    }
    auto* shards = dynamic_cast<faiss::IndexShardsTemplate<T>*>(&index);
    if (shards && shards->successive_ids) {
        index.reset(); // it accepts only one batch
    }
    if (dynamic_cast<faiss::IndexIDMapTemplate<T>*>(&index) ||
        (shards && !shards->successive_ids)) {
        index.add_with_ids(count, x.data(), ids.data());
    } else {
        index.add(count, x.data());
    }
}

template <class T = Index>
std::unique_ptr<T> make(
        const std::string& string,
        faiss::MetricType metric = faiss::METRIC_L2) {
    auto index = make_empty<T>(string, metric);
    fill(*index);
    return index;
}

// Comparison.

/// Calls f with the object if it is a To.
template <class To, class From, class F>
void if_is(From& object, F&& f) {
    if (auto* to = dynamic_cast<To*>(&object)) {
        f(*to);
    }
}

/// Calls f with an index and its parts, outer ones first.
template <class T, class F>
void for_each_part(T& index, F&& f) {
    f(index);
    for (auto* part : parts_alike<std::remove_const_t<T>>(index)) {
        for_each_part(static_cast<T&>(*part), f);
    }
}

template <class Group>
bool is_threaded(const Group& group) {
    struct Access : Group {
        static bool get(const Group& g) {
            return g.*(&Access::isThreaded_);
        }
    };
    return Access::get(group);
}

/// Describes classes, settings and ownership of an index and its parts, so that
/// anything lost by both writing and reading is noticed.
template <class T>
std::string text_of(T& index) {
    std::ostringstream out;
    const auto show = [&](const auto&... values) {
        ((out << ' ' << values), ...);
    };
    for_each_part(index, [&]<class Part>(Part& part) {
        // FAISS reads an IndexFlat as an IndexFlatL2 or IndexFlatIP
        const bool is_flat = dynamic_cast<faiss::IndexFlat*>(&part);
        out << '\n' << (is_flat ? "Flat" : typeid(part).name());
        show(part.d, part.ntotal, part.is_trained, part.metric_type);
        const auto show_owner = [&](auto& i) { show(i.own_fields); };
        if_is<IndexKernelHash>(part, show_owner);
        if_is<IndexBinaryKernelHash>(part, show_owner);
        if_is<faiss::IndexPreTransform>(part, show_owner);
        if_is<faiss::IndexHNSW>(part, show_owner);
        if_is<faiss::IndexRefine>(part, show_owner);
        if_is<faiss::IndexIDMapTemplate<Part>>(part, show_owner);
        if_is<faiss::IndexIDMap2Template<Part>>(
                part, [](auto& i) { i.check_consistency(); });
        if_is<faiss::IndexRefine>(
                part, [&](auto& i) { show(i.own_refine_index, i.k_factor); });
        if_is<faiss::IndexHNSW>(part, [&](auto& i) {
            show(i.hnsw.efSearch, i.hnsw.efConstruction);
        });
        if_is<faiss::ThreadedIndex<Part>>(part, [&](auto& i) {
            show(is_threaded(i));
            if constexpr (requires { i.own_indices; }) {
                show(i.own_indices);
            } else {
                show(i.own_fields);
            }
        });
        if_is<faiss::IndexShardsTemplate<Part>>(
                part, [&](auto& i) { show(i.successive_ids); });
    });
    return out.str();
}

/// Copies through a file, through a buffer and by cloning.
template <class T>
std::vector<std::unique_ptr<T>> copies_of(const T& object) {
    TemporaryFolder folder;
    const std::string name = folder / "object";
    write<T>(&object, name.c_str());
    EXPECT_EQ(folder.names(), Names{"object"});
    EXPECT_EQ(file_bytes(name), bytes_of(object));
    std::vector<std::unique_ptr<T>> copies;
    copies.push_back(read<T>(name.c_str()));
    copies.push_back(from_bytes<T>(bytes_of(object)));
    if constexpr (std::is_same_v<T, Index>) {
        copies.push_back(faiss_ext::clone_index(&object));
    } else {
        copies.push_back(faiss_ext::clone_binary_index(&object));
    }
    return copies;
}

/// Copies of an index are equal to it and can be used in the same way.
template <class T>
void check_copies(const std::string& string, T& index) {
    SCOPED_TRACE(string);
    // the generator of new vectors' levels is not stored in files
    const bool draws_levels = string.find("HNSW") != std::string::npos;
    const auto q = data_for<T>(15, 2), more = data_for<T>(20, 3);
    // values that differ from the defaults
    for_each_part(index, [](auto& part) {
        if_is<faiss::IndexRefine>(part, [](auto& i) { i.k_factor = 2.5; });
        if_is<faiss::IndexHNSW>(part, [](auto& i) { i.hnsw.efSearch = 33; });
    });
    EXPECT_TRUE(holds_faiss_ext(&index));
    const auto copies = copies_of(index);
    for (const auto& copy : copies) {
        EXPECT_EQ(text_of(*copy), text_of(index));
        EXPECT_EQ(bytes_of(*copy), bytes_of(index));
        if (index.is_trained) {
            expect_same(search(*copy, q, 7), search(index, q, 7));
        } else if (!draws_levels) { // FAISS can search an empty graph
            EXPECT_TRUE(throws([&] { search(*copy, q, 7); }));
        }
    }
    fill(index, 20, 3, 5000);
    for (const auto& copy : copies) {
        fill(*copy, 20, 3, 5000);
        EXPECT_EQ(copy->ntotal, index.ntotal);
        if (draws_levels) {
            EXPECT_EQ(
                    search(*copy, more, 1).distances,
                    search(index, more, 1).distances);
        } else {
            expect_same(search(*copy, q, 7), search(index, q, 7));
        }
    }
}

TEST(Io, CopiesAreTheSame) {
    const auto check_both = [](const std::string& string, auto metric) {
        check_copies(string, *make_empty(string, metric));
        check_copies(string, *make(string, metric));
    };
    // the contract tests files of more strings, trained and filled
    for (const std::string& string :
         {"SIK64(gaussian,seed=5),BIVF2"s,
          sik + ",BFlat,Refine(KFlat(gaussian,gamma=1))",
          sik + ",BFlat,RFlat",
          "Shards " + sik + ",BFlat",
          "ThreadedShards KFlat(linear)"s,
          "Shards IDMap2," + sik + ",BFlat",
          "ThreadedReplicas KFlat(linear)"s,
          "IDMap2,PCA4," + sik + ",BFlat,Refine(L2norm,KFlat(gaussian))",
          "Shards Replicas KFlat(linear)"s}) {
        check_both(string, faiss::METRIC_L2);
    }
    check_both("KFlat(matern,nu=2.5)", faiss::METRIC_INNER_PRODUCT);
    check_both("HNSW4,KFlat(gaussian)", faiss::METRIC_INNER_PRODUCT);
    for (const char* before :
         {"", "IDMap,", "IDMap2,", "ThreadedShards ", "Replicas "}) {
        const std::string string = before + sik + ",BFlat";
        check_copies(string, *make_empty<IndexBinary>(string));
        check_copies(string, *make<IndexBinary>(string));
    }
}

TEST(Io, SeveralObjectsInOneBufferedStream) {
    TemporaryFolder folder;
    const std::string name = folder / "objects";
    const auto a = make("PCA4," + sik + ",BFlat,Refine(KFlat(gaussian))");
    const auto b = make("IVF2,Flat");
    const auto c = make<IndexBinary>(sik + ",BFlat");
    const auto hash = kernel_hash_factory(d, sik);
    {
        faiss::FileIOWriter file(name.c_str());
        faiss::BufferedIOWriter writer(&file, 37);
        faiss_ext::write_index(a.get(), &writer);
        faiss_ext::write_VectorTransform(hash.get(), &writer);
        faiss_ext::write_index(b.get(), &writer);
        faiss_ext::write_index_binary(c.get(), &writer);
    }
    faiss::FileIOReader file(name.c_str());
    faiss::BufferedIOReader buffered(&file, 37);
    faiss::VectorIOReader memory;
    memory.data = file_bytes(name);
    for (auto* f : std::vector<faiss::IOReader*>{&buffered, &memory}) {
        EXPECT_EQ(bytes_of(*faiss_ext::read_index(f)), bytes_of(*a));
        hash->check_identical(*faiss_ext::read_VectorTransform(f));
        EXPECT_EQ(bytes_of(*faiss_ext::read_index(f)), bytes_of(*b));
        EXPECT_EQ(bytes_of(*faiss_ext::read_index_binary(f)), bytes_of(*c));
    }
    EXPECT_EQ(memory.rp, memory.data.size());
}

// FAISS's objects.

/// Both libraries write the same file, and read and clone the same index.
template <class T, class FaissWrite, class FaissRead>
void check_faiss_index(
        const T& index,
        FaissWrite&& faiss_write,
        FaissRead&& faiss_read) {
    TemporaryFolder folder;
    const std::string theirs = folder / "theirs";
    EXPECT_FALSE(holds_faiss_ext(&index));
    faiss_write(&index, theirs.c_str());
    EXPECT_EQ(bytes_of(index), file_bytes(theirs));
    const std::unique_ptr<T> expected(faiss_read(theirs.c_str()));
    const auto q = data_for<T>(9, 5);
    for (const auto& copy : copies_of(index)) {
        // flat binary indexes become ours
        if constexpr (std::is_same_v<T, Index>) {
            EXPECT_EQ(typeid(*copy), typeid(*expected));
        }
        expect_same(search(*copy, q, 5), search(*expected, q, 5));
    }
}

TEST(Io, FaissObjectsAreFaissFiles) {
    using Name = const char*;
    for (Name string :
         {"Flat", "PCA4,L2norm,Flat", "HNSW8,Flat", "IDMap2,IVF2,SQ8", "LSH"}) {
        SCOPED_TRACE(string);
        check_faiss_index<Index>(
                *make(string),
                [](auto* index, Name name) { faiss::write_index(index, name); },
                [](Name name) { return faiss::read_index(name); });
    }
    for (Name string : {"BFlat", "BHash4x8", "BIVF2", "BHNSW8"}) {
        SCOPED_TRACE(string);
        const std::unique_ptr<IndexBinary> index(
                faiss::index_binary_factory(64, string));
        fill(*index);
        check_faiss_index<IndexBinary>(
                *index,
                [](auto* i, Name name) { faiss::write_index_binary(i, name); },
                [](Name name) { return faiss::read_index_binary(name); });
    }
    TemporaryFolder folder;
    const std::string theirs = folder / "theirs";
    faiss::PCAMatrix pca(d, 3);
    pca.train(n, data_for<Index>(n, 1).data());
    EXPECT_FALSE(holds_faiss_ext(&pca));
    faiss::write_VectorTransform(&pca, theirs.c_str());
    EXPECT_EQ(bytes_of<VectorTransform>(pca), file_bytes(theirs));
    const auto copy = faiss_ext::read_VectorTransform(theirs.c_str());
    EXPECT_EQ(dynamic_cast<faiss::PCAMatrix&>(*copy).A, pca.A);
}

TEST(Io, FaissIndexesInMemoryMaps) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto q = uniform_vectors(9, d, 6);
    const auto check = [&](const Index& index, int flags) {
        faiss_ext::write_index(&index, name.c_str());
        const auto copy = faiss_ext::read_index(name.c_str(), flags);
        expect_same(search(*copy, q, 5), search(index, q, 5));
    };
    check(*make("IVF2,Flat"), faiss::IO_FLAG_MMAP);
    // inside a file of ours FAISS's index is copied, or an exception says that
    // it cannot be mapped
    const auto inside = make("RFF8(gaussian),IVF2,Flat");
    if (!error_of([&] { check(*inside, faiss::IO_FLAG_MMAP); }).empty()) {
        check(*inside, 0);
    }
}

TEST(Io, ShardsOfFaissMayHoldOurs) {
    faiss::IndexFlat flat(d);
    IndexFlatKernel ours(d, LinearKernel());
    faiss::IndexShards shards(d, false, false);
    EXPECT_FALSE(holds_faiss_ext(&shards));
    shards.addIndex(&flat);
    EXPECT_FALSE(holds_faiss_ext(&shards));
    shards.addIndex(&ours);
    EXPECT_TRUE(holds_faiss_ext(&shards));
}

template <class T>
void check_null(const T& object) {
    TemporaryFolder folder;
    const std::string name = folder / "nothing";
    const T* nothing = nullptr;
    const char* no_name = nullptr;
    faiss::VectorIOWriter memory;
    faiss::IOWriter *writer = &memory, *no_writer = nullptr;
    faiss::IOReader* no_reader = nullptr;
    EXPECT_FALSE(holds_faiss_ext(nothing));
    expect_throws(
            {{[&] { write<T>(nothing, writer); }, "null"},
             {[&] { write<T>(nothing, name.c_str()); }, "null"},
             {[&] { write<T>(&object, no_writer); }, "null"},
             {[&] { write<T>(&object, no_name); }, "null"},
             {[&] { read<T>(no_reader); }, "null"},
             {[&] { read<T>(no_name); }, "null"},
             {[] { faiss_ext::clone_index(nullptr); }, "null"},
             {[] { faiss_ext::clone_binary_index(nullptr); }, "null"}});
    EXPECT_EQ(folder.names(), Names());
}

TEST(Io, Nothing) {
    check_null(*make("KFlat(linear)"));
    check_null(*make<IndexBinary>(sik + ",BFlat"));
    check_null<VectorTransform>(*kernel_hash_factory(d, sik));
}

// Damage.

/// Reads a damaged object and destroys it; reading may fail.
template <class T>
bool survives(const Bytes& bytes) {
    try {
        from_bytes<T>(bytes);
        return true;
    } catch (const faiss::FaissException&) {
    } catch (const std::bad_alloc&) {
    }
    return false;
}

/// Accepts a limited number of bytes.
struct FullWriter : faiss::IOWriter {
    size_t room;

    explicit FullWriter(size_t room) : room(room) {}
    size_t operator()(const void*, size_t size, size_t nitems) override {
        const size_t items = size == 0 ? 0 : std::min(nitems, room / size);
        room -= items * size;
        return items;
    }
};

/// Every prefix of a file, every changed byte and every appended byte is
/// refused, and every incomplete write is noticed. With matching checksums, no
/// changed byte does harm.
template <class T>
void check_damage(const std::string& string) {
    SCOPED_TRACE(string);
    const auto index = make_empty<T>(string);
    fill(*index, 6);
    const Bytes good = bytes_of(*index);
    EXPECT_TRUE(survives<T>(good));
    const auto changed = [](Bytes bytes, size_t i) {
        const uint8_t changes[] = {uint8_t(1 << i % 8), 0xff, bytes[i]};
        bytes[i] ^= changes[i % 3] ? changes[i % 3] : 1;
        return bytes;
    };
    const size_t step = is_sanitized ? 3 : 1;
    for (size_t i = 0; i < good.size(); i += step) {
        const Bytes part(good.begin(), good.begin() + i);
        ASSERT_TRUE(throws([&] { from_bytes<T>(part); })) << i << " bytes";
        FullWriter writer(i);
        ASSERT_TRUE(throws([&] {
            write(index.get(), static_cast<faiss::IOWriter*>(&writer));
        })) << i
            << " bytes";
        ASSERT_TRUE(throws([&] { from_bytes<T>(changed(good, i)); }))
                << "byte " << i;
    }
    const std::string magic(good.begin(), good.begin() + 4);
    const Bytes content = content_of(good);
    ASSERT_EQ(sealed(content, magic.c_str()), good);
    idx_t objects = 0, errors = 0;
    for (size_t i = 0; i < content.size(); i += step) {
        EXPECT_NO_THROW(
                (survives<T>(sealed(changed(content, i), magic)) ? objects
                                                                 : errors)++)
                << "byte " << i << " of the content";
        const Bytes part(content.begin(), content.begin() + i);
        ASSERT_FALSE(survives<T>(sealed(part, magic)));
    }
    EXPECT_GT(objects, 0); // if only a value changed, for example
    EXPECT_GT(errors, 20);
    EXPECT_TRUE(
            throws([&] { from_bytes<T>(sealed(joined(content, {0}), magic)); },
                   "1 bytes follow"));
    FullWriter writer(good.size());
    write(index.get(), static_cast<faiss::IOWriter*>(&writer));
    EXPECT_EQ(writer.room, 0u);
}

TEST(Io, DamageAtEveryByte) {
    for (const char* string :
         {"IDMap,KFlat(gaussian)",
          "IDMap2,SIK64(gaussian),BPerm(M=5,B=3)",
          "KFlat(linear),Refine(KFlat(gaussian))",
          "HNSW2,KFlat(linear)",
          "ThreadedShards KFlat(linear)",
          "Replicas KFlat(linear)",
          "L2norm,KFlat(linear)"}) {
        check_damage<Index>(string);
    }
    check_damage<IndexBinary>("IDMap2," + sik + ",BPerm(M=5,B=3)");
}

TEST(Io, ForeignFiles) {
    TemporaryFolder folder;
    const std::string name = folder / "file";
    /// returns which of the three functions can read the bytes
    const auto readers_of = [&](const Bytes& bytes) {
        write_file(name, bytes);
        const char* file = name.c_str();
        return std::vector<bool>{
                !throws([&] { read<Index>(file); }),
                !throws([&] { read<IndexBinary>(file); }),
                !throws([&] { read<VectorTransform>(file); })};
    };
    using Readers = std::vector<bool>;
    for (const std::string& text :
         {""s,
          "x"s,
          "FxIx"s,
          "FxIB"s,
          "FxVT"s,
          "Dear reader,\nthis is a letter and not an index.\n"s,
          "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0"s,
          std::string(1000, '\0'),
          std::string(1000, '\xff')}) {
        const Bytes bytes(text.begin(), text.end());
        EXPECT_EQ(readers_of(bytes), (Readers{0, 0, 0})) << text;
    }
    // a reader refuses other kinds of objects
    const Bytes index = bytes_of(*make(sik + ",BFlat"));
    EXPECT_EQ(readers_of(index), (Readers{1, 0, 0}));
    EXPECT_EQ(
            readers_of(bytes_of(*make<IndexBinary>(sik + ",BFlat"))),
            (Readers{0, 1, 0}));
    EXPECT_EQ(
            readers_of(bytes_of<VectorTransform>(*kernel_hash_factory(d, sik))),
            (Readers{0, 0, 1}));
    // the message names the file
    for (size_t size : {0, 3, 6, 100}) {
        write_file(name, rows(index, 1, 0, size));
        EXPECT_TRUE(throws([&] { read<Index>(name.c_str()); }, name));
    }
}

/// Replaces the first `from` in `bytes` by another text.
Bytes replaced(
        const Bytes& bytes,
        const std::string& from,
        const std::string& to) {
    Bytes other = bytes;
    const auto at =
            std::search(other.begin(), other.end(), from.begin(), from.end());
    EXPECT_NE(at, other.end()) << from;
    if (at != other.end()) {
        std::copy(to.begin(), to.end(), at);
    }
    return other;
}

/// Finds where an object begins inside the content of another one, by its class
/// and header. The zeros before its arrays may differ there.
size_t begin_of(const Bytes& content, const Bytes& part) {
    const auto at = std::search(
            content.begin(), content.end(), part.begin(), part.begin() + 30);
    EXPECT_NE(at, content.end());
    return at - content.begin();
}

TEST(Io, VersionsAndClassesThatAreNotKnown) {
    const Bytes index = bytes_of(*make("IDMap," + sik + ",BHash2x8"));
    for (char version : {0, 1, 10, 12, 127}) {
        const Bytes other =
                replaced(index, "FxIx\13", "FxIx"s + std::string(1, version));
        EXPECT_TRUE(
                throws([&] { from_bytes<Index>(other); },
                       "version " + std::to_string(version)));
    }
    const Bytes content = content_of(index);
    for (const auto& [from, to, named] :
         std::vector<std::tuple<std::string, std::string, std::string>>{
                 {"SIK", "XYZ", "XYZ"},
                 {"KernelHash", "KernelHull", "'KernelHull'"},
                 {"gaussian", "caussian", "caussian"},
                 {"FxIx", "FxIB", "begins with 'FxIB'"},
                 {"FxVT", "FxIx", "begins with 'FxIx'"},
                 {"Fais", "fais", "begins with 'fais'"}}) {
        const Bytes other = sealed(replaced(content, from, to));
        EXPECT_TRUE(throws([&] { from_bytes<Index>(other); }, named)) << from;
    }
}

/// Changes a value in the first header of a file, with matching checksums.
template <class T>
Bytes with_header(const Bytes& file, size_t field, uint8_t value) {
    Bytes content = content_of(file);
    const size_t name = 8 + content.at(0);
    content.at(name + field) = value;
    return sealed(content, file[2] == 'I' && file[3] == 'B' ? "FxIB" : "FxIx");
}

constexpr size_t is_trained_field = 4 + 8, metric_field = is_trained_field + 1;

/// In messages, a buffer without a name is called the data.
TEST(Io, MessagesAboutBuffers) {
    const Bytes good = bytes_of(*make("IDMap," + sik + ",BHash2x8"));
    const Bytes content = content_of(good);
    for (const Bytes& bad :
         {Bytes(),
          Bytes(good.begin(), good.begin() + 10),
          Bytes(good.begin(), good.end() - 5),
          replaced(good, "FxIx\13", "FxIx\7"),
          replaced(good, "FxIx", "FxIB"),
          sealed(Bytes(content.begin(), content.begin() + 40)),
          sealed(replaced(content, "IDTable", "IDTuble")),
          sealed(replaced(content, "SIK", "XYZ")),
          sealed(replaced(content, "Fais", "fais")),
          sealed(joined(content, {0})),
          with_header<Index>(good, metric_field, 0)}) {
        const auto error = error_of([&] { from_bytes<Index>(bad); });
        EXPECT_TRUE(error.starts_with("the data")) << error;
    }
    FullWriter writer(3);
    const auto index = make("KFlat(linear)");
    const auto error = error_of([&] {
        write(index.get(), static_cast<faiss::IOWriter*>(&writer));
    });
    EXPECT_TRUE(error.starts_with("cannot write to the data")) << error;
    EXPECT_TRUE(
            throws([&] { faiss_ext::write_index(index.get(), ""); },
                   "file '': No such"));
}

TEST(Io, MappedFiles) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto index = make(sik + ",BIVF2");
    const Bytes good = bytes_of(*index);
    const auto read_mapped = [&](const Bytes& bytes) {
        write_file(name, bytes);
        return read_index(name.c_str(), faiss::IO_FLAG_MMAP);
    };
    const auto q = data_for<Index>(5, 9);
    expect_same(search(*read_mapped(good), q, 4), search(*index, q, 4));
    for (size_t i = 0; i < good.size(); i += 7) { // FAISS receives none of it
        Bytes bad = good;
        bad[i] ^= 2;
        EXPECT_TRUE(throws([&] { read_mapped(bad); })) << i;
        bad.resize(i);
        EXPECT_TRUE(throws([&] { read_mapped(bad); })) << i;
    }
    // lengths that do not match FAISS's data
    const Bytes content = content_of(good);
    const std::string magic = "Fais";
    const auto at = std::search(
            content.begin(), content.end(), magic.begin(), magic.end());
    ASSERT_NE(at, content.end());
    Bytes bad = content;
    bad[at - content.begin() + 4]++;
    EXPECT_TRUE(throws([&] { read_mapped(sealed(bad)); }, "ends after"));
    EXPECT_TRUE(throws([&] { from_bytes<Index>(sealed(bad)); }));
    bad = joined(content, {0});
    EXPECT_TRUE(throws([&] { read_mapped(sealed(bad)); }, "ends after"));
}

TEST(Io, NestingWithoutEnd) {
    // a chain of IndexPreTransform inside IndexPreTransform
    IndexFlatKernel flat(d, LinearKernel());
    const auto nested_indexes = [&](int depth) {
        std::unique_ptr<Index> index;
        for (int i = 0; i < depth; i++) {
            auto outer = std::make_unique<faiss::IndexPreTransform>(
                    index ? index.get() : &flat);
            outer->own_fields = bool(index);
            index.release();
            index = std::move(outer);
        }
        return index;
    };
    const Bytes index = content_of(bytes_of(*nested_indexes(1)));
    const Bytes inner = content_of(bytes_of<Index>(flat));
    const Bytes level(index.begin(), index.end() - inner.size());
    const auto nested = [&](int depth) {
        Bytes bytes;
        for (int i = 0; i < depth; i++) {
            bytes.insert(bytes.end(), level.begin(), level.end());
        }
        return sealed(joined(bytes, inner));
    };
    constexpr int limit = Nesting::limit;
    EXPECT_TRUE(throws([&] { from_bytes<Index>(nested(100000)); }, "nested"));
    EXPECT_TRUE(
            throws([&] { from_bytes<Index>(nested(limit - 1)); }, "nested"));
    // the exception leaves no trace
    const Bytes deepest = nested(limit - 2); // plus an index and a kernel
    EXPECT_EQ(bytes_of(*from_bytes<Index>(deepest)), deepest);
    // objects too deep to be read are not written
    EXPECT_TRUE(
            throws([&] { bytes_of(*nested_indexes(limit - 1)); }, "nested"));

    // nested kernels in nested indexes
    const auto with_kernels = [&](int outer, int depth) {
        std::unique_ptr<Kernel> kernel = std::make_unique<LinearKernel>();
        for (int i = 0; i < depth; i++) {
            kernel = std::make_unique<NormalizedKernel>(*kernel);
        }
        flat.kernel = std::move(kernel);
        const auto index = nested_indexes(outer);
        return bytes_of(outer ? *index : flat);
    };
    for (int outer : {0, 1, limit / 2}) {
        EXPECT_TRUE(survives<Index>(with_kernels(outer, limit - outer - 2)));
        EXPECT_TRUE(throws(
                [&] { with_kernels(outer, limit - outer - 1); }, "nested"));
    }
    const Bytes kernels = content_of(with_kernels(0, limit / 2));
    Bytes levels;
    for (int i = 0; i < limit / 2; i++) {
        levels = joined(levels, level);
    }
    EXPECT_TRUE(
            throws([&] { from_bytes<Index>(sealed(joined(levels, kernels))); },
                   "nested"));
}

/// Every object that a string can ask for can be written to a file.
TEST(Io, NestingOfStrings) {
    const auto check = [](const std::string& string) {
        const auto index = make_empty(string);
        EXPECT_EQ(
                bytes_of(*from_bytes<Index>(bytes_of(*index))),
                bytes_of(*index));
    };
    std::string kernel = "linear";
    for (int i = 0; i < 63; i++) {
        kernel = "normalized(" + kernel + ")";
    }
    std::string string = "PCA4,KLSH8(" + kernel + "),BFlat";
    int outer = 0;
    while (error_of([&] { make_empty(string + ",RFlat"); }).empty()) {
        string += ",RFlat";
        outer++;
    }
    EXPECT_GE(outer, 8);
    check(string);
    check("IDMap," + string.substr(0, string.size() - 6));
    EXPECT_TRUE(
            throws([&] { make_empty(string + ",RFlat"); }, "nested indexes"));
    string = "Flat";
    while (string.size() + 22 < 4096) {
        string += ",Refine(KFlat(linear))";
    }
    EXPECT_TRUE(throws([&] { make_empty(string); }, "nested"));
}

/// A hash that counts how often its random numbers are drawn.
struct CountingHash : SignCauchyHash {
    inline static int draws = 0;

    void init() override {
        draws++;
        SignCauchyHash::init();
    }
};

/// Other errors are reported before random numbers, which take a while, are
/// drawn.
TEST(Io, StringsAreRefusedBeforeNumbersAreDrawn) {
    register_hash<CountingHash>("COUNT");
    for (const char* string :
         {"COUNT64",
          "COUNT64,BFoo",
          "COUNT64,BHash2x40",
          "COUNT64,BFlat,BFlat",
          "COUNT64,BFlat,Refine(Foo)",
          "COUNT64,BFlat,Refine(KFlat(foo))",
          "IDMap,COUNT64",
          "PCA4,COUNT64",
          "COUNT0,BFlat"}) {
        EXPECT_TRUE(throws([&] { make_empty(string); })) << string;
        EXPECT_TRUE(throws([&] { make_empty<IndexBinary>(string); })) << string;
        EXPECT_EQ(CountingHash::draws, 0) << string;
    }
    make_empty("COUNT64,BFlat,RFlat");
    EXPECT_EQ(CountingHash::draws, 1);
}

/// Calls f on a thread with a stack of 128 kB, the smallest common size.
template <class F>
void on_small_stack(F&& f) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
    pthread_t thread;
    const auto run = [](void* p) -> void* {
        (*static_cast<std::remove_reference_t<F>*>(p))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
    EXPECT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

/// Nests indexes of one class as deeply as possible.
template <class Outer, class... Arguments>
std::unique_ptr<Index> stack_of(Arguments... arguments) {
    std::unique_ptr<Index> index =
            std::make_unique<IndexFlatKernel>(d, LinearKernel());
    for (int i = 1; i + 1 < Nesting::limit; i++) {
        std::unique_ptr<Outer> outer;
        if constexpr (requires(Outer & o) { o.addIndex(nullptr); }) {
            outer = std::make_unique<Outer>(d, false);
            own_group(*outer);
            outer->addIndex(index.release());
        } else {
            outer = std::make_unique<Outer>(index.get(), arguments...);
            outer->own_fields = true;
            index.release();
        }
        index = std::move(outer);
    }
    return index;
}

TEST(Io, SmallStacks) {
#ifndef NDEBUG
    const bool is_optimized = false;
#else
    const bool is_optimized = !is_sanitized;
#endif
    if (!is_optimized) {
        GTEST_SKIP() << "functions take more of the stack";
    }
    std::vector<std::unique_ptr<Index>> indexes;
    indexes.push_back(stack_of<faiss::IndexIDMap2>());
    indexes.push_back(stack_of<faiss::IndexPreTransform>());
    indexes.push_back(stack_of<faiss::IndexHNSW>(4));
    indexes.push_back(stack_of<faiss::IndexShards>());
    indexes.push_back(stack_of<faiss::IndexReplicas>());
    for (const auto& index : indexes) {
        on_small_stack([&] {
            const Bytes bytes = bytes_of(*index);
            EXPECT_EQ(bytes_of(*from_bytes<Index>(bytes)), bytes);
            Bytes content = content_of(bytes);
            content.pop_back();
            EXPECT_FALSE(survives<Index>(sealed(content)));
        });
    }
}

// Files that are complete but inconsistent.

/// Returns the index, or the hash, projection or kernel in it, of this class.
template <class Class>
Class& part_of(Index& index) {
    Class* found = nullptr;
    const auto look_at = [&](auto& object) {
        if_is<Class>(object, [&](Class& part) { found = &part; });
    };
    look_at(index);
    if_is<IndexKernelHash>(index, [&](auto& i) {
        look_at(*i.hash);
        if_is<ProjectionHash>(
                *i.hash, [&](auto& h) { look_at(*h.projection); });
        if_is<ShiftInvariantHash>(
                *i.hash, [&](auto& h) { look_at(*h.kernel); });
    });
    return *found;
}

/// Changes a part of an index. Then the index is not written or its file is
/// refused, and the message names the fault.
template <class Class, class F>
void refused(const std::string& string, const std::string& named, F&& spoil) {
    SCOPED_TRACE(string + ": " + named);
    const auto index = make(string);
    EXPECT_EQ(error_of([&] { from_bytes<Index>(bytes_of(*index)); }), "");
    spoil(part_of<Class>(*index));
    EXPECT_TRUE(throws([&] { from_bytes<Index>(bytes_of(*index)); }, named));
}

TEST(Io, PartsThatDoNotFit) {
    const std::string map = "IDMap,KFlat(linear)", hash = sik + ",BFlat";
    const std::string unfit = "do not match";
    using Map = faiss::IndexIDMap;
    refused<Map>(map, "id_map", [](auto& i) { i.id_map.pop_back(); });
    refused<Map>(map, unfit, [](auto& i) { i.d++; });
    refused<Map>(map, unfit, [](auto& i) {
        i.id_map.pop_back();
        i.ntotal--;
    });
    refused<Index>(hash, unfit, [](auto& i) { i.ntotal++; });
    refused<Index>(hash, unfit, [](auto& i) { i.d++; });
    refused<IndexKernelHash>(hash, unfit, [](auto& i) {
        delete i.storage;
        i.storage = new faiss::IndexBinaryFlat(56);
        i.storage->add(n, Bytes(n * 7, 0).data());
    });

    using Pre = faiss::IndexPreTransform;
    refused<Pre>("PCA4,KFlat(linear)", "transformation", [](auto& i) {
        i.chain.push_back(new faiss::NormalizationTransform(3));
    });
    refused<Pre>("HKM0(chi2),Flat", "dimension of 7", [](auto& i) {
        i.chain[0]->d_out = 7;
    });
    refused<Pre>("PCA4,KFlat(linear)", unfit, [](auto& i) {
        delete i.index;
        i.index = new IndexFlatKernel(5, LinearKernel());
        i.index->add(n, uniform_vectors(n, 5, 1).data());
    });
    using Refine = faiss::IndexRefine;
    const std::string refine = hash + ",Refine(KFlat(linear))";
    refused<Refine>(refine, unfit, [](auto& i) { i.refine_index->reset(); });
    refused<Refine>(refine, "k_factor", [](auto& i) { i.k_factor = 0.5; });
    refused<Refine>(refine, "k_factor", [](auto& i) { i.k_factor = NAN; });

    // groups: FAISS notices some errors before it owns a part and some after;
    // in both cases the part is deleted once
    using Shards = faiss::IndexShards;
    const std::string shards = "Shards KFlat(linear)";
    refused<Shards>(shards, unfit, [](auto& i) { i.d++; });
    refused<Shards>(shards, "", [](auto& i) { i.at(1)->is_trained = false; });
    refused<faiss::IndexReplicas>(
            "Replicas KFlat(linear)", "", [](auto& i) { fill(*i.at(1), 5); });
    const auto index = make(shards);
    Bytes none = content_of(bytes_of(*index));
    auto& parts = dynamic_cast<Shards&>(*index);
    none.resize(
            begin_of(none, content_of(bytes_of(*parts.at(0)))) - magic_size);
    none[none.size() - 4] = 0; // the count
    EXPECT_TRUE(throws([&] { from_bytes<Index>(sealed(none)); }, "count"));
}

/// Returns all wrappers around indexes of a string, or around two of them if a
/// wrapper needs two.
std::vector<std::unique_ptr<Index>> wrapped(const std::string& string) {
    std::vector<std::unique_ptr<Index>> all;
    for (const std::string before :
         {"IDMap,", "IDMap2,", "L2norm,", "Shards ", "Replicas "}) {
        all.push_back(make_empty(before + string));
    }
    const auto part = [&] { return make_empty(string).release(); };
    const auto add = [&](auto* index) {
        index->own_fields = true;
        all.emplace_back(index);
    };
    add(new faiss::IndexPreTransform(part()));
    add(new faiss::IndexRefineFlat(part()));
    for (auto* refine :
         {new faiss::IndexRefine(part(), part()),
          static_cast<faiss::IndexRefine*>(
                  new IndexRefineKernel(part(), part()))}) {
        refine->own_refine_index = true;
        add(refine);
    }
    add(new faiss::IndexHNSW(part(), 4));
    add(new IndexHNSWKernel(dynamic_cast<IndexFlatKernel*>(part()), 4));
    return all;
}

TEST(Io, MetricsOfPartsAreTheSame) {
    for (const auto& index : wrapped("KFlat(linear)")) {
        SCOPED_TRACE(typeid(*index).name());
        fill(*index);
        const Bytes good = bytes_of(*index);
        EXPECT_EQ(with_header<Index>(good, metric_field, 1), good);
        EXPECT_FALSE(
                survives<Index>(with_header<Index>(good, metric_field, 0)));
        // objects that could not be read are not written
        for (Index* part : parts_alike<Index>(*index)) {
            auto& metric = part->metric_type;
            metric = faiss::METRIC_INNER_PRODUCT;
            EXPECT_TRUE(throws([&] { bytes_of(*index); }, "METRIC_"));
            metric = faiss::METRIC_L2;
        }
        EXPECT_EQ(bytes_of(*index), good);
    }
    refused<Index>("L2norm,KFlat(linear)", "metric 2", [](auto& i) {
        i.metric_type = faiss::METRIC_L1;
        dynamic_cast<faiss::IndexPreTransform&>(i).index->metric_type =
                faiss::METRIC_L1;
    });
    for (const char* before : {"", "IDMap,", "Shards "}) {
        const auto index = make<IndexBinary>(before + sik + ",BFlat");
        const Bytes bad =
                with_header<IndexBinary>(bytes_of(*index), metric_field, 0);
        EXPECT_TRUE(throws([&] { from_bytes<IndexBinary>(bad); }, "metric"));
    }
}

TEST(Io, ListsWithoutCentroidsAreNotWritten) {
    const auto index = make("HKM1(chi2),IVF4,Flat");
    fill(*index);
    auto& pre = dynamic_cast<faiss::IndexPreTransform&>(*index);
    dynamic_cast<faiss::IndexIVF&>(*pre.index).quantizer->reset();
    EXPECT_TRUE(throws([&] { bytes_of(*index); }, "each of 4 lists"));
}

TEST(Io, WhatIsTrainedHasTrainedParts) {
    for (const auto& index : wrapped("KFlat(gaussian)")) {
        SCOPED_TRACE(typeid(*index).name());
        // FAISS's graph always claims to be trained
        const bool is_graph = typeid(*index) == typeid(faiss::IndexHNSW);
        EXPECT_TRUE(is_graph || !index->is_trained);
        const Bytes empty = bytes_of(*index);
        EXPECT_EQ(bytes_of(*from_bytes<Index>(empty)), empty);
        EXPECT_EQ(
                survives<Index>(with_header<Index>(empty, is_trained_field, 1)),
                is_graph);
        // parts may have been trained separately
        const auto x = data_for<Index>(n, 1);
        for (Index* part : parts_alike<Index>(*index)) {
            part->train(n, x.data());
        }
        EXPECT_TRUE(is_graph || !index->is_trained);
        const Bytes half = bytes_of(*index);
        EXPECT_EQ(bytes_of(*from_bytes<Index>(half)), half);
        index->train(n, x.data());
        fill(*index);
        EXPECT_EQ(from_bytes<Index>(bytes_of(*index))->ntotal, n);
        parts_alike<Index>(*index).back()->is_trained = false;
        EXPECT_TRUE(throws([&] { bytes_of(*index); }, "trained"));
    }
    const auto pre = make("PCA4,KFlat(linear)");
    dynamic_cast<faiss::IndexPreTransform&>(*pre).chain[0]->is_trained = false;
    EXPECT_TRUE(throws([&] { bytes_of(*pre); }, "trained"));
}

/// If a hash was trained separately, the index accepts vectors, and they can be
/// read back.
TEST(Io, HashesThatWereTrainedByThemselves) {
    const std::string untrained = "SIK64(gaussian)";
    const auto x = data_for<Index>(n, 1);
    for (const char* storage : {",BFlat", ",AFlat"}) {
        const auto index = make_empty(untrained + storage);
        if_is<IndexKernelHash>(
                *index, [&](auto& i) { i.hash->train(n, x.data()); });
        if_is<IndexAsymmetricHash>(
                *index, [&](auto& i) { i.hash->train(n, x.data()); });
        index->add(n, x.data());
        const Bytes bytes = bytes_of(*index);
        const auto copy = from_bytes<Index>(bytes);
        EXPECT_TRUE(copy->is_trained);
        index->is_trained = true;
        expect_same(search(*copy, x, 3), search(*index, x, 3));
        const Bytes bad = with_header<Index>(bytes, is_trained_field, 0);
        EXPECT_TRUE(throws([&] { from_bytes<Index>(bad); }, "do not match"));
    }
}

/// Labels that IDMap and Refine would use as invalid positions.
TEST(Io, LabelsThatAreNoPositions) {
    const auto lists = make("KIVF1(M=3)");
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    const auto map_of = [&](Index* index, faiss::IndexIDMap& map) {
        map.index = index;
        map.id_map.assign(n, 1000);
        map.d = d;
        map.ntotal = n;
        map.is_trained = true;
        map.metric_type = index->metric_type;
    };
    faiss::IndexIDMap map;
    map_of(lists.get(), map);
    IndexFlatKernel flat(d, LinearKernel());
    fill<Index>(flat, n);
    faiss::IndexRefine refine(lists.get(), &flat);
    IndexRefineKernel refine_kernel(lists.get(), &flat);
    const auto string_of = [](const std::vector<idx_t>& ids) {
        const auto* p = reinterpret_cast<const uint8_t*>(ids.data());
        return std::string(p, p + ids.size() * sizeof(idx_t));
    };
    for (const Index* index :
         std::vector<const Index*>{&map, &refine, &refine_kernel}) {
        const Bytes good = content_of(bytes_of(*index));
        EXPECT_TRUE(survives<Index>(sealed(good)));
        for (idx_t id : // the last one is a duplicate
             {idx_t(-1), idx_t(-5), idx_t(n), idx_t(1) << 40, idx_t(0)}) {
            SCOPED_TRACE(id);
            std::vector<idx_t> others = ids;
            others[n / 2] = id;
            const Bytes bad = replaced(good, string_of(ids), string_of(others));
            ASSERT_NE(bad, good);
            // the lists themselves refuse -1 and ids that they have not
            // assigned
            EXPECT_TRUE(
                    throws([&] { from_bytes<Index>(sealed(bad)); },
                           id == -1          ? "the id -1"
                                   : id >= n ? "not below the next id"
                                             : "not the positions"));
        }
    }
    // objects that could not be read are not written
    faiss::IndexIDMap outer;
    map_of(&map, outer);
    EXPECT_TRUE(throws([&] { bytes_of<Index>(outer); }, "not the positions"));

    const auto codes = make<IndexBinary>("IDMap," + sik + ",BFlat");
    faiss::IndexBinaryIDMap binary;
    binary.index = codes.get();
    binary.d = codes->d;
    binary.code_size = codes->code_size;
    binary.ntotal = n;
    binary.id_map = ids;
    EXPECT_TRUE(
            throws([&] { bytes_of<IndexBinary>(binary); }, "its next id is"));
    faiss::IndexRefine half;
    half.refine_index = &flat;
    EXPECT_TRUE(throws([&] { bytes_of<Index>(half); }, "null"));
}

/// FAISS's loops would end the process.
TEST(Io, IndexesThatComputeNoDistances) {
    const auto base = make("KFlat(linear)");
    const auto same = make("KFlat(linear)");
    const Bytes good = content_of(
            bytes_of<Index>(IndexRefineKernel(base.get(), same.get())));
    const Bytes part = content_of(bytes_of(*same));
    const size_t behind = begin_of(good, part) + 1,
                 front = behind +
            begin_of(Bytes(good.begin() + behind, good.end()), part);
    const auto lists = make("KIVF2(M=3)");
    auto& of_lists = dynamic_cast<IndexIVFPQ4&>(*lists);
    auto& ids = of_lists.lists[0].ids.make_owned();
    std::fill(ids.begin(), ids.end(), 0); // a duplicate
    const std::vector<Index*> indexes = {
            make(sik + ",AFlat").release(),
            make(sik + ",BIVF2").release(),
            lists.get()};
    for (Index* again : indexes) {
        IndexRefineKernel refine(base.get(), again);
        EXPECT_TRUE(throws([&] { search(refine, data_for<Index>(5, 9), 3); }));
        // objects that could not be read are not written
        EXPECT_TRUE(throws(
                [&] { bytes_of<Index>(refine); }, "cannot compute distances"));
        const Bytes bad =
                joined(Bytes(good.begin(), good.begin() + front),
                       content_of(bytes_of(*again)));
        EXPECT_TRUE(
                throws([&] { from_bytes<Index>(sealed(bad)); },
                       "cannot compute distances"));
    }
    faiss::IndexHNSW graph(lists.get(), 8);
    graph.ntotal = n;
    EXPECT_TRUE(throws([&] { bytes_of<Index>(graph); }));
    delete indexes[0];
    delete indexes[1];
}

/// Shards have their own ids, but all of them together are positions.
TEST(Io, PositionsOfShards) {
    const auto check = [](auto& index) {
        using T = std::conditional_t<
                std::is_base_of_v<Index, std::decay_t<decltype(index)>>,
                Index,
                IndexBinary>;
        const auto q = data_for<T>(5, 9);
        const auto copy = from_bytes<T>(bytes_of<T>(index));
        expect_same(search(*copy, q, 4), search(static_cast<T&>(index), q, 4));
    };
    for (const std::string string : {"KIVF2(M=3)", "IDMap,KFlat(linear)"}) {
        SCOPED_TRACE(string);
        const auto one = make(string), two = make(string);
        one->reset();
        two->reset();
        faiss::IndexShards shards(d, false, false);
        shards.addIndex(one.get());
        shards.addIndex(two.get());
        const auto x = data_for<Index>(n, 1);
        shards.add(n, x.data());
        faiss::IndexFlat flat(d);
        flat.add(n, x.data());
        faiss::IndexRefine refine(&shards, &flat);
        check(refine);
        faiss::IndexIDMap map;
        map.index = &shards;
        map.d = d;
        map.ntotal = n;
        map.is_trained = true;
        map.metric_type = shards.metric_type;
        map.id_map.resize(n);
        std::iota(map.id_map.begin(), map.id_map.end(), 500);
        check(map);
    }
}

TEST(Io, ListsMappedFromAFileAreNotWritten) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto index = make("RFF8(gaussian),IVF2,Flat");
    faiss_ext::write_index(index.get(), name.c_str());
    const Bytes before = file_bytes(name);
    std::unique_ptr<Index> mapped;
    if (!error_of([&] {
             mapped = faiss_ext::read_index(name.c_str(), faiss::IO_FLAG_MMAP);
         }).empty()) {
        GTEST_SKIP() << "this FAISS cannot map it";
    }
    const std::string error = error_of(
            [&] { faiss_ext::write_index(mapped.get(), name.c_str()); });
    const bool is_old = FAISS_VERSION_MAJOR == 1 && FAISS_VERSION_MINOR < 8;
    EXPECT_TRUE(!is_old || !error.empty());
    if (!error.empty()) {
        EXPECT_NE(error.find("mapped"), std::string::npos) << error;
        EXPECT_EQ(file_bytes(name), before);
    }
    const auto q = data_for<Index>(5, 9);
    expect_same(
            search(*faiss_ext::read_index(name.c_str()), q, 3),
            search(*index, q, 3));
}

TEST(Io, ParametersAndArraysThatDoNotFit) {
    using Sik = ShiftInvariantHash;
    const std::string hash = sik + ",BFlat", flat = "KFlat(linear)";
    refused<Sik>(hash, "threshold", [](auto& h) { h.threshold.pop_back(); });
    refused<Sik>(hash, "offset", [](auto& h) { h.offset.push_back(0); });
    refused<Sik>(hash, "kernel", [](auto& h) { h.kernel = nullptr; });
    refused<Sik>(hash, "seed is -1", [](auto& h) { h.seed = -1; });
    refused<GaussianKernel>(hash, "gamma", [](auto& k) { k.gamma = -1; });
    refused<KernelizedLSH>(
            "KLSH64(chi2,p=20),BFlat", "t is 20", [](auto& h) { h.t = 20; });
    refused<BilinearProjection>(
            "BSIK64(2x3),BFlat", "3x3", [](auto& p) { p.d_w = 3; });
    // the right number of values, but in other rows
    for (const char* string : {"SIK8(gaussian)", "SIK8(gaussian,proj=dense)"}) {
        refused<Projection>(string + ",BFlat"s, "", [](auto& p) {
            std::swap(p.d_in, p.d_out);
        });
    }
    using Flat = IndexFlatKernel;
    refused<Flat>(flat, "vectors", [](auto& i) {
        i.codes.resize(i.codes.size() - sizeof(float));
    });
    refused<Flat>(flat, "no kernel", [](auto& i) { i.kernel = nullptr; });
    // even if the index claims to be
    refused<Flat>(flat, "trained", [](auto& i) {
        i.kernel = std::make_unique<GaussianKernel>();
    });
    for (float bad : {-1.0f, NAN, 1e38f}) {
        refused<Flat>("KFlat(chi2)", "component 2", [&](auto& i) {
            std::memcpy(&i.codes[8 * sizeof(float)], &bad, sizeof(bad));
        });
    }
}

// A hash without a kernel reports this and does not use the kernel.
TEST(Io, HashesWithoutKernels) {
    ShiftInvariantHash hash(d, 64, GaussianKernel());
    hash.kernel = nullptr;
    const auto x = data_for<Index>(n, 1);
    EXPECT_TRUE(throws([&] { hash.train(n, x.data()); }, "kernel"));
}

/// A number, accessed by f(part), is refused if it is not finite.
template <class Class, class F>
void finite_only(
        const std::string& scheme,
        const std::string& named,
        F&& number) {
    for (float bad : {NAN, HUGE_VALF, -HUGE_VALF}) {
        refused<Class>(scheme + ",BFlat", named, [&](Class& part) {
            *number(part) = bad;
        });
    }
}

TEST(Io, NumbersAreFinite) {
    const auto threshold = [](auto& h) { return &h.threshold[3]; };
    const auto offset = [](auto& h) { return &h.offset[63]; };
    const auto norm = [](auto& p) { return &p.norms[1]; };
    const auto panel = [](auto& p) { return &p.panels[1]; };
    for (const char* scheme : {"SIK64(gaussian,proj=dense)", "BSIK64(2x3)"}) {
        finite_only<ShiftInvariantHash>(scheme, "threshold", threshold);
        finite_only<ShiftInvariantHash>(scheme, "offset", offset);
    }
    finite_only<GaussianKernel>(sik, "gamma", [](auto& k) { return &k.gamma; });
    finite_only<StructuredProjection>(sik, "norms", norm);
    using Bilinear = BilinearProjection;
    finite_only<Bilinear>("BSIK64(2x3)", "norms", norm);
    finite_only<Bilinear>("BSIK64(2x3)", "V", [](auto& p) { return &p.V[0]; });
    const std::string klsh = "KLSH64(chi2,p=20)";
    using Klsh = KernelizedLSH;
    finite_only<DenseProjection>(klsh, "", panel);
    finite_only<Klsh>(klsh, "threshold", threshold);
    finite_only<Klsh>(klsh, "mean", [](auto& h) { return &h.mean_value; });
    finite_only<Klsh>(
            klsh, "eigenvalues", [](auto& h) { return &h.map.eigenvalues[0]; });
    finite_only<Klsh>(
            klsh, "landmarks", [](auto& h) { return &h.map.landmarks[7]; });
    finite_only<Klsh>(klsh, "scale", [](auto& h) { return &h.map.scale; });
    finite_only<Klsh>(
            klsh, "tolerance", [](auto& h) { return &h.map.tolerance; });
}

TEST(Io, GraphsWithBadLinks) {
    const idx_t count = 200;
    const auto index = make_empty("HNSW4,KFlat(linear)");
    fill(*index, count);
    auto& hnsw = dynamic_cast<faiss::IndexHNSW&>(*index).hnsw;
    ASSERT_GE(hnsw.max_level, 1);
    const auto is_read = [&] { // objects that cannot be read are not written
        return !throws([&] { from_bytes<Index>(bytes_of(*index)); });
    };
    const auto refuses = [&](auto& field, const std::vector<int>& values) {
        const auto before = field;
        for (int value : values) {
            field = value;
            EXPECT_FALSE(is_read()) << value;
        }
        field = before;
        EXPECT_TRUE(is_read());
    };
    refuses(hnsw.neighbors[0], {int(count), -2, 1 << 30});
    refuses(hnsw.levels[0], {0, -1, 1000});
    refuses(hnsw.entry_point, {-1, int(count)});
    refuses(hnsw.max_level, {-1, hnsw.max_level + 1, 1000});
    refuses(hnsw.efSearch, {0});
    refuses(hnsw.efConstruction, {0});

    // from an upper level to a vector that is not on it
    const auto vector_of = [&](bool on_level_1) {
        idx_t i = 0;
        while ((hnsw.levels[i] >= 2) != on_level_1) {
            i++;
        }
        return i;
    };
    size_t begin, end;
    hnsw.neighbor_range(vector_of(true), 1, &begin, &end);
    refuses(hnsw.neighbors[begin], {int(vector_of(false))});

    // more levels to draw for new vectors than exist, or none
    hnsw.assign_probas.assign(hnsw.cum_nneighbor_per_level.size() + 5, 0.1);
    EXPECT_FALSE(is_read());
    hnsw.assign_probas.clear();
    EXPECT_FALSE(is_read());
}

// File systems.

TEST(Io, WhatCannotBeWrittenLeavesNoFile) {
    // FAISS cannot write a quantizer of ours, but notices it after some bytes
    IndexFlatKernel ours(d, GaussianKernel());
    faiss::IndexIVFFlat ivf(&ours, d, 2);
    faiss::IndexShards shards(d, false, false);
    shards.addIndex(&ours);
    shards.addIndex(&ivf);
    const faiss::IndexIDMap map(&shards);
    for (const Index* bad : std::vector<const Index*>{&map, &ivf}) {
        TemporaryFolder folder;
        const std::string name = folder / "index";
        EXPECT_TRUE(throws([&] { write(bad, name.c_str()); }));
        EXPECT_EQ(folder.names(), Names());
        write<Index>(&ours, name.c_str());
        EXPECT_TRUE(throws([&] { write(bad, name.c_str()); }));
        EXPECT_EQ(folder.names(), Names{"index"});
        EXPECT_EQ(file_bytes(name), bytes_of<Index>(ours));
    }
    EXPECT_TRUE(throws([&] { faiss_ext::clone_index(&map); }));
}

TEST(Io, FullDisks) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    faiss_ext::write_index(make("KFlat(linear)").get(), name.c_str());
    const Bytes before = file_bytes(name);
    const auto big = make_empty("IDMap,KFlat(linear)");
    fill(*big, 5000);

    // limit the size of files to a few bytes
    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit low = limit;
    low.rlim_cur = 50000;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    const auto error =
            error_of([&] { faiss_ext::write_index(big.get(), name.c_str()); });
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, handler);

    EXPECT_NE(error, "");
    EXPECT_EQ(folder.names(), Names{"index"});
    EXPECT_EQ(file_bytes(name), before);
    faiss_ext::write_index(big.get(), name.c_str());
    EXPECT_EQ(faiss_ext::read_index(name.c_str())->ntotal, 5000);
}

TEST(Io, PlacesThatTakeOrHoldNoFiles) {
    TemporaryFolder folder;
    const auto index = make("KFlat(linear)");
    write_file(folder / "file", {1, 2, 3});
    fs::create_directory(folder / "folder");
    fs::create_directory(folder / "locked");
    fs::permissions(folder / "locked", fs::perms::owner_read);
    Names bad = {
            folder / "none/index",
            folder / "file/index",
            folder / "folder",
            ""};
    if (fs::exists("/dev/full")) {
        bad.push_back("/dev/full");
    }
    if (geteuid() != 0) { // root may do everything
        bad.push_back(folder / "locked/index");
    }
    for (const std::string& name : bad) {
        EXPECT_TRUE(throws(
                [&] { faiss_ext::write_index(index.get(), name.c_str()); },
                name));
        if (name != "/dev/full") { // it never ends
            EXPECT_TRUE(
                    throws([&] { faiss_ext::read_index(name.c_str()); }, name));
        }
    }
    fs::permissions(folder / "locked", fs::perms::owner_all);
    EXPECT_EQ(folder.names(), (Names{"file", "folder", "locked"}));
    EXPECT_EQ(file_bytes(folder / "file"), (Bytes{1, 2, 3}));
    EXPECT_TRUE(fs::is_empty(folder / "folder"));
    EXPECT_TRUE(fs::is_empty(folder / "locked"));
}

TEST(Io, SymbolicLinks) {
    TemporaryFolder folder;
    const auto index = make("KFlat(linear)");
    const std::string target = folder / "data/target";
    fs::create_directory(folder / "data");
    fs::create_symlink("data/target", folder / "link");
    fs::create_symlink("link", folder / "link_to_link");
    // first to a file that does not exist yet
    for (const char* link : {"link", "link", "link_to_link"}) {
        const std::string name = folder / link;
        faiss_ext::write_index(index.get(), name.c_str());
        EXPECT_TRUE(fs::is_symlink(name));
        EXPECT_FALSE(fs::is_symlink(target));
        EXPECT_EQ(file_bytes(target), bytes_of(*index));
        write_file(target, {1, 2, 3});
    }
    EXPECT_EQ(fs::read_symlink(folder / "link"), "data/target");
    EXPECT_EQ(folder.names(), (Names{"data", "link", "link_to_link"}));
}

TEST(Io, SymbolicLinksInACircle) {
    TemporaryFolder folder;
    fs::create_symlink("b", folder / "a");
    fs::create_symlink("a", folder / "b");
    fs::create_symlink("self", folder / "self");
    const auto index = make("KFlat(linear)");
    for (const char* link : {"a", "self"}) {
        const std::string name = folder / link;
        EXPECT_TRUE(throws(
                [&] { faiss_ext::write_index(index.get(), name.c_str()); },
                strerror(ELOOP)));
        EXPECT_TRUE(fs::is_symlink(name));
    }
    EXPECT_EQ(folder.names(), (Names{"a", "b", "self"}));
}

/// A file of another process with the same number, in a container for example,
/// is neither overwritten nor followed.
TEST(Io, FilesOfOthersStay) {
    TemporaryFolder folder;
    const std::string victim = folder / "victim";
    write_file(victim, {1, 2, 3});
    const auto name_of = [&](int i) {
        return folder /
                (".faiss_ext_" + std::to_string(getpid()) + "_" +
                 std::to_string(i));
    };
    constexpr int count = 3000;
    for (int i = 0; i < count; i += 2) {
        write_file(name_of(i), {4, 5});
        fs::create_symlink("victim", name_of(i + 1));
    }
    const auto index = make("KFlat(linear)");
    const std::string name = folder / "index";
    for (int i = 0; i < 4; i++) {
        faiss_ext::write_index(index.get(), name.c_str());
    }
    EXPECT_EQ(file_bytes(name), bytes_of(*index));
    EXPECT_EQ(file_bytes(victim), (Bytes{1, 2, 3}));
    EXPECT_EQ(folder.names().size(), size_t(count) + 2);
    for (int i = 0; i < count; i += 2) {
        EXPECT_EQ(file_bytes(name_of(i)), (Bytes{4, 5}));
        EXPECT_TRUE(fs::is_symlink(name_of(i + 1)));
    }
}

/// A kernel that inspects the folder while it is written.
struct SpyKernel : LinearKernel {
    inline static std::function<void()> look;

    void fields(FieldVisitor& v) const override {
        LinearKernel::fields(v);
        if (look) {
            look();
        }
    }
};

TEST(Io, PermissionsMeanwhile) {
    register_kernel<SpyKernel>("spy");
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const IndexFlatKernel index(d, SpyKernel());
    std::set<fs::perms> seen;
    SpyKernel::look = [&] {
        for (const std::string& file : folder.names()) {
            if (file.starts_with(".faiss_ext_")) {
                seen.insert(fs::status(folder / file).permissions());
            }
        }
    };
    const auto own = fs::perms::owner_read | fs::perms::owner_write;
    const auto group = own | fs::perms::group_read;
    const mode_t mask = umask(0027);
    write<Index>(&index, name.c_str());
    EXPECT_EQ(seen, std::set{group}); // as the new file shall be
    for (const fs::perms permissions :
         {own, group, own | fs::perms::others_read}) {
        seen.clear();
        fs::permissions(name, permissions);
        write<Index>(&index, name.c_str());
        EXPECT_EQ(seen, std::set{own});
        EXPECT_EQ(fs::status(name).permissions(), permissions);
    }
    umask(mask);
    SpyKernel::look = nullptr;
    EXPECT_EQ(folder.names(), Names{"index"});
}

TEST(Io, Owners) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root gives files away";
    }
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto index = make("KFlat(linear)");
    write_file(name, {1});
    ASSERT_EQ(chown(name.c_str(), 1234, 4321), 0);
    ASSERT_EQ(chmod(name.c_str(), 0640), 0);
    faiss_ext::write_index(index.get(), name.c_str());
    struct stat status;
    ASSERT_EQ(stat(name.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 1234u);
    EXPECT_EQ(status.st_gid, 4321u);
    EXPECT_EQ(status.st_mode & 0777, 0640u);
    // for an owner outside that group: the new group gets only the permissions
    // of others
    ASSERT_EQ(chmod(name.c_str(), 0664), 0);
    ASSERT_EQ(chown((folder / "").c_str(), 1234, 1234), 0);
    const gid_t gid = getegid();
    ASSERT_EQ(setegid(1234), 0);
    ASSERT_EQ(seteuid(1234), 0);
    const auto error = error_of(
            [&] { faiss_ext::write_index(index.get(), name.c_str()); });
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_EQ(setegid(gid), 0);
    EXPECT_EQ(error, "");
    ASSERT_EQ(stat(name.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 1234u);
    EXPECT_EQ(status.st_gid, 1234u);
    EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST(Io, NamesAndPermissions) {
    TemporaryFolder folder;
    const std::string longest(255, 'n'), name = folder / longest;
    const auto index = make("KFlat(linear)");
    const auto permissions = [](const std::string& file) {
        return fs::status(file).permissions();
    };
    faiss_ext::write_index(index.get(), name.c_str());
    EXPECT_EQ(folder.names(), Names{longest});
    // new files have FAISS's permissions; replaced ones keep theirs
    faiss::write_index(make("Flat").get(), (folder / "faiss").c_str());
    EXPECT_EQ(permissions(name), permissions(folder / "faiss"));
    const auto own = fs::perms::owner_read | fs::perms::owner_write;
    fs::permissions(name, own);
    faiss_ext::write_index(index.get(), name.c_str());
    EXPECT_EQ(permissions(name), own);
}

TEST(Io, Pipes) {
    TemporaryFolder folder;
    const std::string name = folder / "pipe";
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
    // data from a pipe can be read only once, FAISS's too
    for (const std::string& string :
         {"IDMap," + sik + ",BFlat", "Flat"s, "IVF2,Flat"s}) {
        const auto index = make(string);
        std::thread writer(
                [&] { faiss_ext::write_index(index.get(), name.c_str()); });
        std::unique_ptr<Index> copy;
        const auto read = [&] { copy = faiss_ext::read_index(name.c_str()); };
        EXPECT_EQ(error_of(read), "") << string;
        writer.join();
        EXPECT_TRUE(copy && bytes_of(*copy) == bytes_of(*index)) << string;
    }
    EXPECT_EQ(folder.names(), Names{"pipe"});
    EXPECT_TRUE(fs::is_fifo(name));
}

TEST(Io, SeveralWritersOfOneFile) {
    TemporaryFolder folder;
    const std::string name = folder / "index";
    const auto a = make("KFlat(linear)"), b = make(sik + ",BFlat");
    const Bytes bytes_a = bytes_of(*a), bytes_b = bytes_of(*b);
    faiss_ext::write_index(a.get(), name.c_str());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 10; i++) {
                const auto& index = (i + t) % 2 ? a : b;
                faiss_ext::write_index(index.get(), name.c_str());
                // the existing file is always complete
                const Bytes bytes = file_bytes(name);
                EXPECT_TRUE(bytes == bytes_a || bytes == bytes_b);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(folder.names(), Names{"index"});
}

} // namespace
