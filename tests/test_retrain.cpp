// SPDX-License-Identifier: MIT
// An index that is trained again is the index that its string makes of the new
// training vectors and the stored ones: their files are equal.

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>

#include <faiss_ext/core/progress.h>
#include <faiss_ext/hashes/FrequencyHash.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFileKernel.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/io/retrain.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/maps/FrequencyMap.h>

#include "testing.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 16;
constexpr idx_t n = 300;

using IndexPtr = std::unique_ptr<faiss::Index>;

/// Vectors of integers up to 127, which every store keeps exactly. Seeds give
/// other distributions.
Floats counts(idx_t number, int seed) {
    std::mt19937 rng(seed);
    std::vector<int> most(d);
    for (int& m : most) {
        m = 5 + int(rng() % 96);
    }
    Floats x;
    for (idx_t i = 0; i < number; i++) {
        for (int c = 0; c < d; c++) {
            x.push_back(float(rng() % (most[c] + 1)));
        }
        x[i * d] = 127; // with this one, i8 keeps all exactly
    }
    return x;
}

const Floats before = counts(200, 1), now = counts(n, 2),
             recent = counts(250, 3);

IndexPtr trained(const std::string& string, const Floats& x) {
    IndexPtr index = index_factory(d, string);
    index->train(x.size() / d, x.data());
    return index;
}

void set_parameters(faiss::Index& index) {
    for (const SearchParameter& parameter : search_parameters(index)) {
        if (parameter.name == "nprobe") {
            parameter.set(3);
        } else if (parameter.name == "efSearch") {
            parameter.set(41);
        } else if (parameter.name == "k_factor") {
            parameter.set(7);
        }
    }
}

IndexPtr retrained(const faiss::Index& index, const Floats& x = recent) {
    return faiss_ext::retrained(index, x.size() / d, x.data());
}

const IndexFlatKernel& exact(const faiss::Index& index) {
    return dynamic_cast<const IndexFlatKernel&>(
            *dynamic_cast<const IndexRefineKernel&>(index).refine_index);
}

const std::vector<std::string> strings = {
        "KLSH32(chi2,p=50),BFlat,Refine(KFlat(chi2,store=u8))",
        "KLSH32(gaussian,p=40,rank=auto,scale=auto),BFlat,Refine(KFlat(gaussian,store=f16))",
        "HKM1(chi2),PCAR8,KIVF4(M=4),Refine(KFlat(chi2,store=u8))",
        "AHK32(chi2,center=1),BIVF4,Refine(KFlat(chi2,store=i8))",
        "SH16,BHNSW8,Refine(KFlat(chi2))",
        "AHK32(js,rot=itq),AFlat,Refine(KFlat(js))",
        "SIK32(laplacian(neighbor=9)),BHash2x8,Refine(KFlat(laplacian(gamma=0.25)))",
        "KLSH32(sum(gaussian,2*chi2),p=40),BFlat,Refine(KFlat(normalized(chi2)))",
        "HKM1(chi2),PCAR8,HNSW8,KFlat(linear,store=i8),Refine(KFlat(chi2,store=u8))",
        "KPCA8(chi2,p=40),IVF4,Flat,RFlat",
        "PCA8,IVF4,Flat,RFlat",
        "KFlat(gaussian)",
        "HNSW8,KFlat(expchi2)",
        "Flat",
        "IVF4,Flat",
        "IDMap,SH16,BFlat,Refine(KFlat(chi2))",
        "Concurrent,HKM1(chi2),KIVF4,Refine(KFlat(chi2))",
};

} // namespace

TEST(Retrained, IsTheIndexThatItsStringMakes) {
    for (const std::string& string : strings) {
        SCOPED_TRACE(string);
        const IndexPtr old = trained(string, before);
        old->add(n, now.data());
        set_parameters(*old);
        const Bytes file = bytes_of(*old);
        const IndexPtr expected = trained(string, recent);
        expected->add(n, now.data());
        set_parameters(*expected);
        const IndexPtr made = retrained(*old);
        EXPECT_EQ(bytes_of(*made), bytes_of(*expected));
        expect_same(search(*made, recent, 5), search(*expected, recent, 5));
        EXPECT_EQ(bytes_of(*old), file);
    }
}

TEST(Retrained, TakesIdsAndTheirOrder) {
    for (const std::string& string : strings) {
        SCOPED_TRACE(string);
        if (string == "PCA8,IVF4,Flat,RFlat" || string == "Flat" ||
            string == "IVF4,Flat") {
            continue; // FAISS's own, without a table of ids
        }
        const IndexPtr old = trained(string, before);
        std::vector<idx_t> ids(n);
        for (idx_t i = 0; i < n; i++) {
            ids[i] = (i * 7919) % 1000;
        }
        ids[0] = 5000; // the largest, which is removed
        old->add_with_ids(n, now.data(), ids.data());
        const std::vector<idx_t> removed = {ids[0], ids[5], ids[17], ids[250]};
        const faiss::IDSelectorBatch selected(removed.size(), removed.data());
        ASSERT_EQ(old->remove_ids(selected), removed.size());

        const std::vector<idx_t> left = index_ids(*old);
        Floats rows(left.size() * d);
        reconstruct_batch(*old, left.size(), left.data(), rows.data());
        const IndexPtr expected = trained(string, recent);
        expected->add_with_ids(left.size(), rows.data(), left.data());
        const IndexPtr made = retrained(*old);
        EXPECT_EQ(index_ids(*made), left);
        expect_same(search(*made, recent, 5), search(*expected, recent, 5));
        Floats again(rows.size());
        reconstruct_batch(*made, left.size(), left.data(), again.data());
        EXPECT_EQ(again, rows);
        // the id of a removed vector is not given again
        made->add(1, now.data());
        bool found = false;
        const idx_t next = 5001;
        contains(*made, 1, &next, &found);
        EXPECT_TRUE(found);
        EXPECT_EQ(made->ntotal, n - 3);
        EXPECT_EQ(old->ntotal, n - 4);
    }
}

TEST(Retrained, CopiesStoredVectorsBitByBit) {
    const auto x = uniform_vectors(n, d, 4);
    for (const char* store : {"f32", "f16", "u8", "i8"}) {
        const IndexPtr old =
                trained(std::string("SH16,BFlat,Refine(KFlat(chi2,store=") +
                                store + "))",
                        before);
        old->add(n, x.data());
        const IndexPtr made = retrained(*old);
        const auto &a = exact(*old), &b = exact(*made);
        ASSERT_EQ(a.codes.size(), b.codes.size());
        EXPECT_TRUE(std::equal(
                a.codes.data(),
                a.codes.data() + a.codes.size(),
                b.codes.data()))
                << store;
        // once more: nothing drifts
        EXPECT_EQ(bytes_of(*retrained(*made)), bytes_of(*made)) << store;
    }
}

TEST(Retrained, ChoosesAgainOnlyWhatTrainingChose) {
    const auto gammas = [](const faiss::Index& index) {
        const auto& refine = dynamic_cast<const IndexRefineKernel&>(index);
        return dynamic_cast<const IndexKernelHash&>(*refine.base_index)
                       .hash->description() +
                " " + exact(index).kernel->description();
    };
    const std::string given =
            "SIK32(gaussian(gamma=0.001)),BFlat,Refine(KFlat(laplacian(gamma=0.5)))";
    EXPECT_EQ(
            gammas(*retrained(*trained(given, before))),
            gammas(*trained(given, before)));
    const std::string chosen = "SIK32(gaussian),BFlat,Refine(KFlat(laplacian))";
    const IndexPtr made = retrained(*trained(chosen, before));
    EXPECT_EQ(gammas(*made), gammas(*trained(chosen, recent)));
    EXPECT_NE(gammas(*made), gammas(*trained(chosen, before)));
    // the string of a trained index has the values, also those that are 0
    const std::string automatic =
            "KLSH32(chi2,p=40,rank=auto,scale=auto),BFlat";
    const std::string text = index_string(*trained(automatic, before));
    EXPECT_EQ(text.find("auto"), std::string::npos) << text;
    EXPECT_NE(text.find("rank="), std::string::npos) << text;
}

// FAISS's lists keep the ids, not the order of additions.
TEST(Retrained, ListsOfWholeVectors) {
    for (const char* string : {"IVF4,Flat", "Concurrent,IVF4,Flat"}) {
        SCOPED_TRACE(string);
        const IndexPtr old = trained(string, before);
        std::vector<idx_t> ids(n), sorted;
        for (idx_t i = 0; i < n; i++) {
            ids[i] = (i * 7919) % 1000;
        }
        old->add_with_ids(n, now.data(), ids.data());
        set_parameters(*old);
        const IndexPtr made = retrained(*old);
        std::vector<idx_t> left = index_ids(*made);
        std::sort(left.begin(), left.end());
        sorted = ids;
        std::sort(sorted.begin(), sorted.end());
        EXPECT_EQ(left, sorted);
        const IndexPtr expected = trained(string, recent);
        expected->add_with_ids(n, now.data(), ids.data());
        set_parameters(*expected);
        expect_same(search(*made, recent, 5), search(*expected, recent, 5));
        EXPECT_NE(
                search(*made, recent, 5).labels,
                search(*old, recent, 5).labels);
        EXPECT_EQ(retrained_on_sample(*old)->ntotal, n);
    }
    // a direct map stays one
    const IndexPtr old = trained("IVF4,Flat", before);
    old->add(n, now.data());
    dynamic_cast<faiss::IndexIVF&>(*old).make_direct_map();
    Floats rows(now.size());
    retrained(*old)->reconstruct_n(0, n, rows.data());
    EXPECT_EQ(rows, now);
    // entries that the index does not count
    old->ntotal--;
    EXPECT_TRUE(throws([&] { retrained(*old); }, "lists hold 300 vectors"));
}

TEST(Retrained, KeepsGivenFrequenciesAndFunctions) {
    constexpr int frequencies = 24;
    Floats omega = normal_vectors(frequencies, d, 1);
    for (float& component : omega) {
        component *= 0.01f;
    }
    const auto mapped = [&](const char* behind) {
        IndexPtr index = index_factory(2 * frequencies, behind);
        auto* pre = dynamic_cast<IndexPreTransformSIMD*>(index.get());
        if (!pre) {
            pre = new IndexPreTransformSIMD(index.release());
            pre->own_fields = true;
            index.reset(pre);
        }
        pre->prepend_transform(new FrequencyMap(d, frequencies, omega.data()));
        return index;
    };
    const auto hashed = [&](const char* storage) {
        const FrequencyHash hash(d, frequencies, omega.data(), 5);
        auto index = std::make_unique<IndexKernelHash>(
                hash.clone().release(),
                index_binary_factory(frequencies, storage).release());
        index->own_fields = true;
        return index;
    };
    const std::vector<std::function<IndexPtr()>> makers = {
            [&] { return mapped("Flat"); },
            [&] { return mapped("PCAR8,KIVF4(M=4)"); },
            [&] { return mapped("RFF8(gaussian),IVF4,Flat"); },
            [&] { return mapped("SH16,BFlat"); },
            [&] { return hashed("BFlat"); },
            [&] { return hashed("BIVF4"); },
            [&] {
                return std::make_unique<IndexAsymmetricHash>(
                        FrequencyHash(d, frequencies, omega.data(), 5));
            }};
    const CallbackKernel function(
            [](size_t rows,
               const float* x,
               size_t m,
               const float* y,
               size_t dims,
               float* out) {
                GaussianKernel(0.0001).block(rows, x, m, y, dims, out);
            },
            "gaussian of retrained");
    for (size_t i = 0; i < makers.size(); i++) {
        SCOPED_TRACE(i);
        const auto with_refine = [&] {
            IndexPtr exact = index_factory(d, "KFlat(gaussian)");
            if (i % 2 == 1) {
                exact = std::make_unique<IndexFlatKernel>(d, function);
            }
            auto index = std::make_unique<IndexRefineKernel>(
                    makers[i]().release(), exact.release());
            index->own_fields = index->own_refine_index = true;
            return index;
        };
        const IndexPtr old = with_refine(), expected = with_refine();
        old->train(before.size() / d, before.data());
        old->add(n, now.data());
        expected->train(recent.size() / d, recent.data());
        expected->add(n, now.data());
        const IndexPtr made = retrained(*old);
        EXPECT_EQ(bytes_of(*made), bytes_of(*expected));
        expect_same(search(*made, recent, 5), search(*expected, recent, 5));
        EXPECT_TRUE(
                throws([&] { index_string(*made); }, "has no factory string"));

        const IndexPtr alone = makers[i](), empty = makers[i]();
        alone->train(recent.size() / d, recent.data());
        EXPECT_EQ(bytes_of(*retrained(*empty)), bytes_of(*alone));
    }
}

TEST(Retrained, KeepsOptionsThatStringsDoNotHave) {
    const std::string string =
            "HKM1(chi2),HNSW8,KFlat(linear),Refine(KFlat(chi2))";
    const auto graph_of = [](faiss::Index& index) -> faiss::HNSW& {
        auto& refine = dynamic_cast<IndexRefineKernel&>(index);
        auto& front =
                dynamic_cast<faiss::IndexPreTransform&>(*refine.base_index);
        return dynamic_cast<faiss::IndexHNSW&>(*front.index).hnsw;
    };
    const IndexPtr old = trained(string, before);
    graph_of(*old).efConstruction = 17;
    EXPECT_EQ(graph_of(*retrained(*old)).efConstruction, 17);

    const IndexPtr lists = trained("PCA8,IVF4,Flat,RFlat", before);
    const auto ivf_of = [](faiss::Index& index) -> faiss::IndexIVF& {
        auto& refine = dynamic_cast<faiss::IndexRefine&>(index);
        auto& front =
                dynamic_cast<faiss::IndexPreTransform&>(*refine.base_index);
        return dynamic_cast<faiss::IndexIVF&>(*front.index);
    };
    ivf_of(*lists).cp.niter = 3;
    EXPECT_EQ(ivf_of(*retrained(*lists)).cp.niter, 3);
}

TEST(Retrained, KeepsTheArgumentOfTheMetric) {
    faiss::IndexFlat old(d, faiss::METRIC_Lp);
    old.metric_arg = 3;
    old.add(n, now.data());
    const IndexPtr made = retrained(old);
    expect_same(search(*made, recent, 5), search(old, recent, 5));
}

TEST(Retrained, DrawsASampleOfTheStoredVectors) {
    const std::string string =
            "KLSH32(chi2,p=50),BFlat,Refine(KFlat(chi2,store=u8))";
    const IndexPtr old = trained(string, before);
    old->add(n, now.data());
    EXPECT_EQ(
            bytes_of(*retrained_on_sample(*old)),
            bytes_of(*retrained(*old, now)));
    std::set<Bytes> files;
    for (const int64_t seed : {1, 2, 1}) {
        files.insert(bytes_of(*retrained_on_sample(*old, 60, seed)));
    }
    EXPECT_EQ(files.size(), 2u);
}

TEST(Retrained, EmptyAndUntrainedIndexes) {
    for (const char* string :
         {"SH16,BFlat,Refine(KFlat(chi2))",
          "SH16,BFlat",
          "PCA8,KFlat(linear)"}) {
        const IndexPtr empty = trained(string, before);
        const IndexPtr untrained = index_factory(d, string);
        const IndexPtr expected = trained(string, recent);
        EXPECT_EQ(bytes_of(*retrained(*empty)), bytes_of(*expected));
        EXPECT_EQ(bytes_of(*retrained(*untrained)), bytes_of(*expected));
        EXPECT_FALSE(untrained->is_trained);
    }
    const IndexPtr empty = trained("SH16,BFlat,Refine(KFlat(chi2))", before);
    EXPECT_TRUE(throws([&] { retrained_on_sample(*empty); }, "no vectors"));
    // ids go on after those of removed vectors
    const idx_t id = 41;
    empty->add_with_ids(1, now.data(), &id);
    empty->remove_ids(faiss::IDSelectorBatch(1, &id));
    const IndexPtr made = retrained(*empty);
    made->add(1, now.data());
    EXPECT_EQ(index_ids(*made), std::vector<idx_t>{42});
}

TEST(Retrained, WithoutVectorsThereIsAnError) {
    const auto filled = [](const std::string& string) {
        IndexPtr index = trained(string, before);
        index->add(n, now.data());
        return index;
    };
    for (const char* string :
         {"SH16,BFlat",
          "HKM1(chi2),KIVF4",
          "PCA8,KFlat(linear)",
          "IDMap,AHK16(chi2),AFlat",
          "Concurrent,SH16,BFlat",
          "PCA8,IVF4,Flat"}) {
        const IndexPtr index = filled(string);
        const Bytes file = bytes_of(*index);
        EXPECT_TRUE(
                throws([&] { retrained(*index); },
                       "retrained: ",
                       "Refine(KFlat(...))"))
                << string;
        EXPECT_TRUE(throws(
                [&] { retrained_on_sample(*index); }, "Refine(KFlat(...))"));
        EXPECT_EQ(bytes_of(*index), file);
    }

    const IndexPtr part = filled("SH16,BFlat,Refine(KFlat(chi2))");
    faiss::IndexShards shards(d);
    shards.add_shard(part.get());
    faiss::IndexReplicas replicas(d);
    replicas.addIndex(part.get());
    EXPECT_TRUE(throws([&] { retrained(shards); }, "IndexShards", "each"));
    EXPECT_TRUE(throws([&] { retrained(replicas); }, "IndexReplicas", "each"));
}

TEST(Retrained, BadCallsChangeNothing) {
    const IndexPtr old = trained("SH16,BFlat,Refine(KFlat(chi2))", before);
    old->add(n, now.data());
    const Bytes file = bytes_of(*old);
    auto negative = recent;
    negative[5] = -1;
    expect_throws({
            {[&] { faiss_ext::retrained(*old, 5, nullptr); }, "null"},
            {[&] { faiss_ext::retrained(*old, 1, recent.data()); }, "1 vector"},
            {[&] { retrained(*old, negative); }, "vector 0"},
            {[&] { retrained_on_sample(*old, 0); }, "at least one"},
            {[&] { retrained_on_sample(*old, 5, -1); }, "seed"},
    });
    const CallbackKernel kernel(
            [](size_t rows,
               const float*,
               size_t m,
               const float*,
               size_t,
               float* out) { std::fill_n(out, rows * m, 1.0f); });
    IndexFlatKernel callback(d, NormalizedKernel(kernel));
    EXPECT_TRUE(throws(
            [&] { retrained(callback); }, "retrained: ", "CallbackKernel"));
    // a count that does not match
    auto& refine = dynamic_cast<IndexRefineKernel&>(*old);
    refine.base_index->ntotal--;
    EXPECT_TRUE(throws([&] { retrained(*old); }, "base_index"));
    refine.base_index->ntotal++;
    EXPECT_EQ(bytes_of(*old), file);
}

TEST(Retrained, SparseVectorsStaySparse) {
    const auto rows = draw(n, d, 3, true, 1), others = draw(200, d, 6, true, 2);
    for (const std::string string :
         {"KLSH32(jaccard,p=40),BFlat,Refine(KFlat(jaccard,store=sparse))",
          "HKM1(chi2),KIVF4,Refine(KFlat(chi2,store=sparse))",
          "CWS32,BFlat,Refine(KFlat(jaccard,store=auto))",
          "KFlat(gaussian,store=sparse)"}) {
        SCOPED_TRACE(string);
        const IndexPtr old = index_factory(d, string);
        train(*old, rows.get());
        add(*old, rows.get());
        const IndexPtr expected = index_factory(d, string);
        train(*expected, others.get());
        add(*expected, rows.get());
        EXPECT_EQ(
                bytes_of(*faiss_ext::retrained(*old, others.get())),
                bytes_of(*expected));
        EXPECT_EQ(bytes_of(*retrained_on_sample(*old)), bytes_of(*old));
    }
    const IndexPtr dense = trained("PCA8,KFlat(linear),RFlat", before);
    EXPECT_TRUE(throws(
            [&] { faiss_ext::retrained(*dense, others.get()); }, "sparse"));
}

TEST(Retrained, ManyVectorsAreEncodedInBlocksThatReport) {
    constexpr int wide = 8192; // 2,048 vectors in a block
    constexpr idx_t many = 2100;
    const auto x = uniform_vectors(many, wide, 5);
    const std::string string =
            "RHBE8(center=1),BFlat,Refine(KFlat(cosine,store=u8))";
    const auto old = index_factory(wide, string);
    old->train(20, x.data());
    old->add(many, x.data());
    std::vector<size_t> told;
    IndexPtr made;
    {
        const ProgressScope scope(
                [&](const char* task, size_t done, size_t total) {
                    if (total == size_t(many)) {
                        EXPECT_EQ(task, std::string("encoding"));
                        told.push_back(done);
                    }
                },
                std::chrono::milliseconds(0));
        made = faiss_ext::retrained(*old, 30, x.data());
    }
    EXPECT_EQ(told, (std::vector<size_t>{2048, many}));
    // codes of all vectors at once
    Floats rows(size_t(many) * wide);
    old->reconstruct_n(0, many, rows.data());
    const auto& hash =
            *dynamic_cast<const IndexKernelHash&>(
                     *dynamic_cast<const IndexRefineKernel&>(*made).base_index)
                     .hash;
    const auto expected = index_factory(wide, "RHBE8(center=1),BFlat");
    expected->train(30, x.data());
    EXPECT_EQ(
            codes_of(hash, rows),
            codes_of(
                    *dynamic_cast<const IndexKernelHash&>(*expected).hash,
                    rows));
    expected->add(many, rows.data());
    EXPECT_EQ(
            bytes_of(*dynamic_cast<const IndexRefineKernel&>(*made).base_index),
            bytes_of(*expected));
}

TEST(Retrained, CanBeInterrupted) {
    const IndexPtr old =
            trained("SH16,BFlat,Refine(KFlat(chi2,store=u8))", before);
    old->add(n, now.data());
    const Bytes file = bytes_of(*old);
    for (const int at : {1, 2}) {
        EXPECT_TRUE(interrupted_at(at, [&] { retrained_on_sample(*old); }));
    }
    EXPECT_EQ(bytes_of(*old), file);
    EXPECT_EQ(retrained(*old)->ntotal, n);
}

/// Codes that were trained on data of other directions find few neighbours. The
/// queries are independent, so Hoeffding's inequality bounds the error of the
/// mean gain, which lies between -1 and 1.
TEST(Retrained, FindsMoreNeighboursAfterADrift) {
    constexpr idx_t nb = 1000, nq = 2000, k = 10;
    const auto drawn = [](idx_t number, int first, uint64_t seed) {
        Floats x = normal_vectors(number, d, seed);
        for (idx_t i = 0; i < number; i++) {
            for (int c = 0; c < d; c++) {
                const bool is_wide = c >= first && c < first + d / 2;
                x[i * d + c] *= is_wide ? 1 : 0.05f;
            }
        }
        return x;
    };
    const Floats then = drawn(nb, 0, 1), base = drawn(nb, d / 2, 2),
                 queries = drawn(nq, d / 2, 3);
    for (const char* string :
         {"SH32,BFlat,Refine(KFlat(gaussian(gamma=0.1)))",
          "PCA8,KIVF16(M=8),Refine(KFlat(gaussian(gamma=0.1)))"}) {
        const IndexPtr old = trained(string, then);
        old->add(nb, base.data());
        const IndexPtr made = retrained_on_sample(*old);
        const auto truth = search(exact(*old), queries, k).labels;
        const double gain = recall(search(*made, queries, k).labels, truth, k) -
                recall(search(*old, queries, k).labels, truth, k);
        EXPECT_GT(gain, hoeffding(nq, 2)) << string;
    }
}
