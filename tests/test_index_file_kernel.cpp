// SPDX-License-Identifier: MIT
// Exact search in the vectors of a file, compared with the same vectors in
// memory.

#include <faiss_ext/indexes/IndexFileKernel.h>

#include <Eigen/Core>

#include <faiss/impl/IDSelector.h>

#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using Store = IndexFlatKernel::Store;

constexpr int d = 13;
constexpr idx_t n = 3000, nq = 20;

/// Returns counts, which every component type stores exactly.
Floats counts(idx_t n, uint64_t seed) {
    Floats x = uniform_vectors(n, d, seed, 0, 200);
    for (float& v : x) {
        v = std::floor(v);
    }
    return x;
}

template <class T>
void append(Bytes& bytes, T value) {
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof(value));
}

/// A file of vectors in the format of .fvecs or .bvecs, after a header.
struct Vectors {
    TemporaryFolder folder;
    Floats x = counts(n, 1), q = counts(nq, 2);
    Store store;
    std::string path = folder / "x.vecs";
    int64_t header = 64, offset, stride;

    explicit Vectors(Store store) : store(store) {
        const int size = store == Store::f32 ? 4 : store == Store::f16 ? 2 : 1;
        offset = header + 4;
        stride = 4 + d * size;
        stride += stride % size;
        write();
    }

    void write() const {
        Bytes bytes(header);
        for (idx_t i = 0; i < n; i++) {
            const size_t end = bytes.size() + stride;
            append(bytes, int32_t(d));
            for (int k = 0; k < d; k++) {
                const float v = x[i * d + k];
                switch (store) {
                    case Store::f32:
                        append(bytes, v);
                        break;
                    case Store::f16:
                        append(bytes, Eigen::half(v));
                        break;
                    default:
                        append(bytes, uint8_t(v));
                }
            }
            bytes.resize(end);
        }
        std::ofstream(path, std::ios::binary)
                .write(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
    }

    IndexFileKernel index(
            const std::string& kernel = "chi2",
            faiss::MetricType metric = faiss::METRIC_L2) const {
        return IndexFileKernel(
                d,
                path,
                store,
                offset,
                stride,
                n,
                *kernel_factory(kernel),
                metric);
    }

    void touch(int seconds) const {
        const auto time = std::filesystem::last_write_time(path);
        std::filesystem::last_write_time(
                path, time + std::chrono::seconds(seconds));
    }
};

struct EachStore : testing::TestWithParam<Store> {
    const Vectors vectors{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
        Stores,
        EachStore,
        testing::Values(Store::f32, Store::f16, Store::u8));

TEST_P(EachStore, FindsWhatVectorsInMemoryDo) {
    for (const char* kernel : {"chi2", "gaussian(gamma=0.0001)"}) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            IndexFlatKernel expected(d, *kernel_factory(kernel), metric);
            expected.add(n, vectors.x.data());
            IndexFileKernel index = vectors.index(kernel, metric);
            EXPECT_EQ(index.ntotal, 0);
            expect_same(
                    search(index, vectors.q, 3),
                    search(IndexFlatKernel(d, *kernel_factory(kernel), metric),
                           vectors.q,
                           3));
            index.add(n / 3, vectors.x.data());
            index.add_next(n - n / 3);
            EXPECT_EQ(index.ntotal, n);
            EXPECT_EQ(index.codes.size(), 0u);
            const auto found = search(expected, vectors.q, 50);
            for (int threads : {1, 3}) {
                const Threads set(threads);
                expect_same(search(index, vectors.q, 50), found);
            }
            const float radius = found.distances[40];
            EXPECT_EQ(
                    range_search(index, vectors.q, radius),
                    range_search(expected, vectors.q, radius));
            Floats again(nq * 50), before(nq * 50);
            index.compute_distance_subset(
                    nq,
                    vectors.q.data(),
                    50,
                    again.data(),
                    found.labels.data());
            expected.compute_distance_subset(
                    nq,
                    vectors.q.data(),
                    50,
                    before.data(),
                    found.labels.data());
            EXPECT_EQ(again, before);
            index.compute_kernel_subset(
                    nq,
                    vectors.q.data(),
                    50,
                    again.data(),
                    found.labels.data());
            expected.compute_kernel_subset(
                    nq,
                    vectors.q.data(),
                    50,
                    before.data(),
                    found.labels.data());
            EXPECT_EQ(again, before);
            Floats rows(7 * d);
            index.reconstruct_n(n - 7, 7, rows.data());
            EXPECT_TRUE(std::equal(
                    rows.begin(), rows.end(), &vectors.x[(n - 7) * d]));
        }
    }
}

TEST_P(EachStore, StandsBehindRefineAndUnderGraphs) {
    const auto string = "AHK128(chi2,center=1),BFlat";
    const auto base = index_factory(d, string);
    IndexFileKernel exact = vectors.index();
    IndexRefineKernel index(base.get(), &exact);
    index.k_factor = 5;
    index.train(n, vectors.x.data());
    index.add(n, vectors.x.data());
    const auto expected =
            index_factory(d, std::string(string) + ",Refine(KFlat(chi2))");
    expected->train(n, vectors.x.data());
    expected->add(n, vectors.x.data());
    dynamic_cast<faiss::IndexRefine&>(*expected).k_factor = 5;
    expect_same(search(index, vectors.q, 10), search(*expected, vectors.q, 10));
    expect_same(
            search(*clone_index(&index), vectors.q, 10),
            search(*expected, vectors.q, 10));

    // refused vectors are added to neither
    EXPECT_TRUE(
            throws([&] { index.add(1, vectors.q.data()); }, "of which 3000"));
    EXPECT_EQ(index.ntotal, n);
    EXPECT_EQ(base->ntotal, n);

    IndexFlatKernel flat(d, *kernel_factory("chi2"));
    IndexHNSWKernel graph(&flat, 8);
    graph.add(500, vectors.x.data());
    IndexFileKernel again = vectors.index();
    IndexHNSWKernel on_file(&again, 8);
    on_file.add(500, vectors.x.data());
    expect_same(search(on_file, vectors.q, 5), search(graph, vectors.q, 5));

    // vertices of removed vectors stay, as the file does
    for (idx_t count : {300, 50, 50}) {
        const faiss::IDSelectorRange first(0, count);
        EXPECT_EQ(on_file.remove_ids(first), size_t(count));
    }
    on_file.add(10, &vectors.x[500 * d]);
    EXPECT_EQ(on_file.ntotal, 110);
    EXPECT_EQ(again.ntotal, 510);
    on_file.hnsw.efSearch = 500;
    const auto left = search(on_file, rows(vectors.x, d, 400, 510), 1);
    for (idx_t i = 0; i < 110; i++) {
        EXPECT_EQ(left.labels[i], i);
    }
    EXPECT_TRUE(throws([&] { on_file.compact(); }, "cannot move its vectors"));
}

TEST_P(EachStore, TakesTheVectorsOfTheFileOnly) {
    IndexFileKernel index = vectors.index();
    index.add(100, vectors.x.data());
    const auto found = search(index, vectors.q, 5);
    Floats others(&vectors.x[100 * d], &vectors.x[400 * d]);
    others[257 * d + 3] += 1;
    others[299 * d] += 1;
    const Floats negative(d, -1);
    expect_throws(
            {{[&] { index.add(300, others.data()); },
              "vector 257 is not vector 357 of"},
             {[&] { index.add(1, vectors.x.data()); },
              "vector 0 is not vector 100"},
             {[&] { index.add(1, negative.data()); }, "finite number >= 0"},
             {[&] { index.add(n - 99, vectors.x.data()); },
              "has 3000, of which 100 have been added"},
             {[&] { index.add_next(n - 99); }, "of which 100"},
             {[&] { index.add_next(-1); }, "-1 vectors"}});
    EXPECT_EQ(index.ntotal, 100);
    expect_same(search(index, vectors.q, 5), found);
    index.add(257, others.data());
    EXPECT_EQ(index.ntotal, 357);
}

TEST_P(EachStore, RemovesTheLastVectors) {
    IndexFileKernel index = vectors.index();
    index.add_next(n);
    const faiss::IDSelectorRange middle(5, 10), two(0, 2), last(700, n);
    expect_throws({{[&] { index.remove_ids(middle); }, "vector 5 of"}});
    EXPECT_EQ(index.ntotal, n);
    EXPECT_EQ(index.remove_ids(last), size_t(n - 700));
    EXPECT_EQ(index.ntotal, 700);
    index.verify();
    IndexFlatKernel expected(d, *kernel_factory("chi2"));
    expected.add(700, vectors.x.data());
    expect_same(search(index, vectors.q, 5), search(expected, vectors.q, 5));
    index.add(1, &vectors.x[700 * d]);
    index.verify();
    index.reset();
    EXPECT_EQ(index.ntotal, 0);
    index.add(2, vectors.x.data());
    EXPECT_EQ(index.remove_ids(two), 2u);
    index.verify();
}

TEST_P(EachStore, DoesNotMerge) {
    IndexFileKernel a = vectors.index(), b = vectors.index();
    a.add_next(10);
    b.add_next(10);
    IndexFlatKernel flat(d, *kernel_factory("chi2"));
    Bytes code(a.code_size);
    expect_throws(
            {{[&] { a.merge_from(b, 0); }, "stay in"},
             {[&] { a.merge_from(flat, 0); }, "stay in"},
             {[&] { flat.merge_from(a, 0); }, ""},
             {[&] { a.sa_encode(1, vectors.x.data(), code.data()); },
              "sa_encode is not supported"}});
    EXPECT_THROW(a.merge_from(b, 0), UnsupportedError);
    EXPECT_THROW(
            a.sa_encode(1, vectors.x.data(), code.data()), UnsupportedError);
    EXPECT_THROW(a.add_sa_codes(1, code.data(), nullptr), UnsupportedError);
    EXPECT_THROW(a.permute_entries(nullptr), UnsupportedError);
    EXPECT_EQ(a.ntotal, 10);
    EXPECT_EQ(b.ntotal, 10);
    EXPECT_EQ(flat.ntotal, 0);
}

TEST_P(EachStore, ComesBackFromFiles) {
    const std::string file = vectors.folder / "x.index";
    IndexFileKernel index = vectors.index("gaussian");
    expect_throws({{[&] { index.add_next(1); }, "train"}});
    write_index(&index, file.c_str());
    EXPECT_FALSE(read_index(file.c_str())->is_trained);
    index.train(n, vectors.x.data());
    index.add_next(n - 1);
    const auto found = search(index, vectors.q, 5);
    write_index(&index, file.c_str());
    EXPECT_LT(std::filesystem::file_size(file), 2000u);
    const auto again = read_index(file.c_str());
    EXPECT_EQ(again->ntotal, n - 1);
    expect_same(search(*again, vectors.q, 5), found);
    again->add(1, &vectors.x[(n - 1) * d]);
    EXPECT_EQ(again->ntotal, n);
    expect_same(search(*clone_index(&index), vectors.q, 5), found);
}

TEST_P(EachStore, VerifiesTheFileAtThePath) {
    Vectors vectors(GetParam());
    IndexFileKernel index = vectors.index();
    index.add_next(n);
    const std::string other = vectors.folder / "other";
    std::filesystem::copy_file(vectors.path, other);
    std::filesystem::rename(other, vectors.path); // the same vectors
    index.verify();
    const auto found = search(index, vectors.q, 5);
    vectors.x[0] += 1;
    std::filesystem::remove(vectors.path);
    vectors.write(); // another file than the mapped one
    EXPECT_TRUE(throws([&] { index.verify(); }, "has changed: its vectors 0"));
    expect_same(search(index, vectors.q, 5), found);
}

TEST_P(EachStore, InterruptsOfReadingStayInterrupts) {
    const std::string file = vectors.folder / "x.index";
    IndexFileKernel index = vectors.index();
    index.add_next(n);
    write_index(&index, file.c_str());
    vectors.touch(10); // the vectors are verified
    bool is_interrupt = false;
    EXPECT_TRUE(interrupted_at(1, [&] {
        try {
            read_index(file.c_str());
        } catch (const InterruptedError&) {
            is_interrupt = true;
            throw;
        }
    }));
    EXPECT_TRUE(is_interrupt);
}

TEST_P(EachStore, LooksAtAFileThatMayHaveChanged) {
    Vectors vectors(GetParam());
    const std::string file = vectors.folder / "x.index";
    const auto read = [&] { return read_index(file.c_str()); };
    IndexFileKernel index = vectors.index();
    index.add_next(n - 5);
    const auto found = search(index, vectors.q, 5);
    write_index(&index, file.c_str());

    vectors.touch(10); // the same vectors
    expect_same(search(*read(), vectors.q, 5), found);
    write_index(&index, file.c_str());
    expect_same(search(*read(), vectors.q, 5), found);

    const std::string moved = vectors.folder / "elsewhere";
    std::filesystem::rename(vectors.path, moved);
    EXPECT_TRUE(throws(read, "cannot map the file", "No such file"));
    std::filesystem::rename(moved, vectors.path);

    // move both into another folder
    const TemporaryFolder other;
    for (const std::string name : {"x.vecs", "x.index"}) {
        std::filesystem::rename(vectors.folder / name, other / name);
    }
    const auto beside = read_index((other / "x.index").c_str());
    expect_same(search(*beside, vectors.q, 5), found);
    EXPECT_EQ(dynamic_cast<IndexFileKernel&>(*beside).path, other / "x.vecs");
    for (const std::string name : {"x.vecs", "x.index"}) {
        std::filesystem::rename(other / name, vectors.folder / name);
    }

    vectors.x.back() += 1; // of a vector that was not added
    vectors.write();
    vectors.touch(20);
    expect_same(search(*read(), vectors.q, 5), found);

    // copy both, and put other vectors in the old place
    for (const std::string name : {"x.vecs", "x.index"}) {
        std::filesystem::copy_file(vectors.folder / name, other / name);
    }
    vectors.x[(n - 6) * d] += 1;
    vectors.write();
    vectors.touch(30);
    EXPECT_TRUE(throws(read, "has changed: its vectors"));
    const auto copied = read_index((other / "x.index").c_str());
    expect_same(search(*copied, vectors.q, 5), found);
    EXPECT_EQ(dynamic_cast<IndexFileKernel&>(*copied).path, other / "x.vecs");
    std::filesystem::resize_file(other / "x.vecs", vectors.header);
    EXPECT_TRUE(
            throws([&] { read_index((other / "x.index").c_str()); },
                   vectors.path + "' has changed: its vectors"));

    std::filesystem::resize_file(vectors.path, vectors.header);
    EXPECT_TRUE(throws(read, "has changed: it has 64 bytes"));
    std::filesystem::resize_file(vectors.path, 0);
    EXPECT_TRUE(throws(read, "empty"));
}

TEST_P(EachStore, AddsNothingBehindVectorsThatHaveChanged) {
    Vectors vectors(GetParam());
    IndexFileKernel index = vectors.index();
    index.add_next(500);
    const auto found = search(index, vectors.q, 5);
    const Floats before = vectors.x;
    vectors.x[d] += 1;
    vectors.write();
    const faiss::IDSelectorRange last(499, 500);
    for (const auto& change : std::vector<std::function<void()>>{
                 [&] { index.add_next(1); },
                 [&] { index.add(1, &vectors.x[500 * d]); },
                 [&] { index.remove_ids(last); }}) {
        EXPECT_TRUE(throws(change, "has changed: its vectors 0 to 499"));
        EXPECT_EQ(index.ntotal, 500);
    }
    vectors.x = before;
    vectors.write();
    expect_same(search(index, vectors.q, 5), found);
    index.add_next(1);
    EXPECT_EQ(index.ntotal, 501);
}

// An older valid file is kept.
TEST_P(EachStore, IsNotWrittenWhenItsFileHasChanged) {
    Vectors vectors(GetParam());
    const std::string file = vectors.folder / "x.index";
    IndexFileKernel index = vectors.index();
    index.add_next(n - 5);
    write_index(&index, file.c_str());
    const auto written = file_bytes(file);
    const auto expect_refused = [&](const std::string& why) {
        EXPECT_TRUE(throws([&] { write_index(&index, file.c_str()); }, why));
        EXPECT_TRUE(throws([&] { index.check_unchanged(); }, why));
        EXPECT_EQ(file_bytes(file), written);
    };
    vectors.x[d] += 1; // in another file with this name
    std::filesystem::remove(vectors.path);
    vectors.write();
    vectors.touch(10);
    expect_refused("has changed: its vectors 0 to");
    std::filesystem::resize_file(vectors.path, vectors.header);
    expect_refused("has changed: it has 64 bytes");
    std::filesystem::remove(vectors.path);
    expect_refused("No such file");
}

TEST(IndexFileKernel, RefusesWhatIsNotThere) {
    const Vectors vectors(Store::f32);
    const auto make = [&](int d,
                          const std::string& path,
                          int64_t offset,
                          int64_t stride,
                          int64_t capacity) {
        IndexFileKernel(
                d,
                path,
                Store::f32,
                offset,
                stride,
                capacity,
                *kernel_factory("chi2"));
    };
    const std::string& path = vectors.path;
    const int64_t o = vectors.offset, s = vectors.stride, most = INT64_MAX;
    make(d, path, o, s, n);
    make(1, path, 0, 4, n);
    expect_throws(
            {{[&] { make(d, path, o, s, n + 1); }, "too few for 3001 vectors"},
             {[&] { make(d, path, o, s, most); }, "bytes apart"},
             {[&] { make(d, path, o, most, 2); }, "bytes apart"},
             {[&] { make(d, path, most, s, 1); }, "bytes apart"},
             {[&] { make(d, path, -4, s, 1); }, "bytes apart"},
             {[&] { make(d, path, o, 4 * d - 4, 1); }, "bytes apart"},
             {[&] { make(d, path, o, 0, 1); }, "bytes apart"},
             {[&] { make(d, path, o, s, 0); }, "bytes apart"},
             {[&] { make(d, path, 6, s, 1); }, "multiples of 4"},
             {[&] { make(0, path, o, s, 1); }, "dimension is 0"},
             {[&] { make(d, vectors.folder / "gone", o, s, 1); },
              "No such file"},
             {[&] { make(d, "/dev/null", o, s, 1); }, "not a regular file"},
             {[&] { make(d, vectors.folder.path.string(), o, s, 1); },
              "not a regular file"}});
}

TEST(IndexFileKernel, ErrorsNumberVectorsAsTheFileDoes) {
    for (idx_t bad : {17, 2999}) {
        Vectors vectors(Store::f32);
        vectors.x[bad * d + 5] = -1;
        vectors.write();
        IndexFileKernel index = vectors.index();
        EXPECT_TRUE(throws(
                [&] { index.add_next(n); },
                "component 5 of vector " + std::to_string(bad) + " is -1"));
        index.add_next(10);
        EXPECT_TRUE(throws(
                [&] { index.add_next(n - 10); },
                "component 5 of vector " + std::to_string(bad) + " is -1"));
        EXPECT_EQ(index.ntotal, 10);
    }
}

/// Changes every number of the layout, with matching checksums.
TEST(IndexFileKernel, DoesNotBelieveFiles) {
    const Vectors vectors(Store::u8);
    IndexFileKernel index = vectors.index();
    index.add_next(n);
    const Bytes content = content_of(bytes_of(index));
    size_t refused = 0;
    for (size_t i = 0; i + 8 <= content.size(); i++) {
        for (int64_t value : {int64_t(-1), int64_t(0), INT64_MAX, int64_t(1)}) {
            Bytes changed = content;
            std::memcpy(&changed[i], &value, 8);
            try {
                const auto read = from_bytes(sealed(changed));
                search(*read, Floats(read->d, 1.0f), 3);
            } catch (const faiss::FaissException&) {
                refused++;
            }
        }
    }
    EXPECT_GT(refused, content.size());
}

} // namespace
