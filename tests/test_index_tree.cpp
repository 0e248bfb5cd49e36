// SPDX-License-Identifier: MIT
// The tree of an index, and what one class and one registration add to it.

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/index_factory.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>
#include <faiss_ext/indexes/KernelExceptions.h>
#include <faiss_ext/indexes/index_registry.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/SumKernel.h>

#include "indexes/index_facts.h"
#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int d = 8;
constexpr idx_t n = 200;

/// Passes everything to another index, of which it owns none, and adds a
/// constant to its distances.
struct IndexPlus : faiss::Index {
    faiss::Index* inside;
    float plus = 1;

    explicit IndexPlus(faiss::Index* index)
            : faiss::Index(index->d, index->metric_type), inside(index) {
        ntotal = index->ntotal;
        is_trained = index->is_trained;
    }
    void add(idx_t count, const float* x) override {
        inside->add(count, x);
        ntotal = inside->ntotal;
    }
    void search(
            idx_t count,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        inside->search(count, x, k, distances, labels);
        for (idx_t i = 0; i < count * k; i++) {
            distances[i] += plus;
        }
    }
    void reset() override {
        inside->reset();
        ntotal = 0;
    }
};

/// A class of its own, of which fields tell enough.
struct IndexFirst : faiss::IndexFlat, HasFields {
    int dims = 1;

    void fields(FieldVisitor& v) const override {
        v.integer("dims", dims, 1, 100, "components that count");
        v.array("codes", codes, ntotal * d * sizeof(float));
    }
    void init() override {
        restore();
    }
    void restore() override {
        code_size = d * sizeof(float);
    }
};

[[maybe_unused]] const bool registered = [] {
    IndexClass<IndexPlus> plus;
    plus.parts = [](const IndexPlus& i) {
        return std::vector<IndexPart>{
                {.name = "inside", .index = i.inside, .is_searched = true}};
    };
    plus.settings = [](const IndexPlus& i) {
        return std::vector<std::string>{"plus=" + std::to_string(int(i.plus))};
    };
    plus.parameters = [](IndexPlus& i) {
        return std::vector<SearchParameter>{
                {"plus",
                 false,
                 0,
                 10,
                 {1, 2},
                 {{[&i] { return double(i.plus); },
                   [&i](double value) { i.plus = float(value); }}}}};
    };
    plus.string = [](const IndexPlus& i) {
        return "Plus," + index_string(i.inside);
    };
    register_index_class(plus);
    register_index<IndexFirst>("First");
    return true;
}();

std::unique_ptr<faiss::Index> make(const std::string& text, idx_t count = n) {
    auto index = faiss_ext::index_factory(d, text);
    const auto x = uniform_vectors(n, d, 1);
    index->train(n, x.data());
    index->add(count, x.data());
    return index;
}

std::vector<std::string> names_of(faiss::Index& index) {
    std::vector<std::string> names;
    for (const SearchParameter& parameter : search_parameters(index)) {
        names.push_back(parameter.name);
    }
    return names;
}

using Names = std::vector<std::string>;

TEST(IndexTree, ShowsWhatIsInside) {
    for (const auto& [string, text] :
         std::vector<std::pair<std::string, std::string>>{
                 {"KFlat(chi2)", "IndexFlatKernel(chi2, d=8, ntotal=3)"},
                 {"IDMap,SIK16(gaussian(gamma=0.5)),BFlat",
                  "IndexIDTable(IndexKernelHash(SIK16(gaussian(gamma=0.5)), IndexBinaryFlatSIMD), d=8, ntotal=3)"},
                 {"PCA4,HNSW8,KFlat(linear)",
                  "IndexPreTransformSIMD(PCAMatrix(8, 4), IndexHNSWKernel(IndexFlatKernel(linear), efSearch=16), d=8, ntotal=3)"},
                 {"KIVF4(M=4),Refine(KFlat(chi2,store=f16))",
                  "IndexRefineKernel(IndexIVFPQ4(nlist=4, M=4, nprobe=8), IndexFlatKernel(chi2, store=f16), k_factor=1, d=8, ntotal=3)"}}) {
        EXPECT_EQ(index_text(*make(string, 3)), text);
    }
    faiss::IndexFlat flat(d, faiss::METRIC_L1);
    EXPECT_EQ(index_text(flat), "IndexFlat(d=8, metric=l1, ntotal=0)");
    faiss::IndexBinaryIDMap2 map;
    EXPECT_EQ(AnyIndex(map).class_name(), "IndexBinaryIDMap2");
    EXPECT_EQ(structure_text(map), "IndexBinaryIDMap2(None)");
}

TEST(IndexTree, AStringMakesAnIndexThatHasIt) {
    // with what training or FAISS adds
    for (const auto& [string, text] :
         std::vector<std::pair<std::string, std::string>>{
                 {"KFlat(chi2)", "KFlat(chi2)"},
                 {"HNSW8,KFlat(laplacian(gamma=3),store=u8)",
                  "HNSW8,KFlat(laplacian(gamma=3),store=u8)"},
                 {"HKM2(chi2,period=9),PCAR4,KIVF4(M=2,nprobe=2,seed=9),Refine(KFlat(js))",
                  "HKM(chi2,order=2,period=9),PCAR4,KIVF4(M=2,nprobe=2,seed=9),Refine(KFlat(js))"},
                 {"L2norm,RR6,SH8,BIVF4_HNSW8", "L2norm,RR6,SH8,BIVF4_HNSW8"},
                 {"RR4,IVF4,Flat,RFlat", "RR4,IVF4,Flat,RFlat"}}) {
        EXPECT_EQ(index_string(*make(string)), text);
        EXPECT_EQ(index_string(*make(text)), text);
    }
    EXPECT_TRUE(throws(
            [] { index_string(faiss::IndexIVFFlat()); },
            "index_string cannot make a factory string for IndexIVFFlat because of its quantizer"));
    EXPECT_TRUE(
            throws([] { index_string(faiss::IndexIDMap()); },
                   "part of the index is missing"));
}

TEST(IndexTree, NoStringIsThatOfAnotherIndex) {
    auto refined =
            make("SIK16(gaussian(gamma=1)),BFlat,Refine(KFlat(chi2))", 0);
    faiss::RandomRotationMatrix rotation(d, d);
    faiss::IndexPreTransform behind(refined.get());
    behind.prepend_transform(&rotation);
    auto table = make("IDMap,KFlat(chi2)", 0), exact = make("KFlat(chi2)", 0);
    IndexRefineKernel front(table.get(), exact.get());
    faiss::IndexIDMap map(table.get());
    for (const faiss::Index* index :
         std::vector<const faiss::Index*>{&behind, &front, &map}) {
        EXPECT_TRUE(throws(
                [&] { index_string(*index); }, "cannot make a factory string"));
    }
    faiss::IndexBinaryFlat codes(16);
    faiss::IndexBinaryIVF coarse(&codes, 16, 2), lists(&coarse, 16, 4);
    EXPECT_EQ(index_string(coarse), "BIVF2");
    EXPECT_TRUE(throws(
            [&] { index_string(lists); }, "cannot make a factory string"));
}

TEST(IndexTree, SearchParametersAreThoseOfAllParts) {
    auto index = make("KIVF4,Refine(KFlat(chi2))");
    EXPECT_EQ(names_of(*index), (Names{"nprobe", "k_factor"}));
    set_search_parameter(*index, "nprobe", 3);
    const SavedSearchParameters saved(*index);
    set_search_parameter(*index, "nprobe", 1);
    set_search_parameter(*index, "k_factor", 2.5);
    EXPECT_EQ(search_parameters(*index)[0].get(), 1);
    saved.apply();
    EXPECT_EQ(search_parameters(*index)[0].get(), 3);
    EXPECT_EQ(search_parameters(*index)[1].get(), 1);
    for (const double bad : {0., 2.5, 1e30, double(NAN)}) {
        EXPECT_TRUE(
                throws([&] { set_search_parameter(*index, "nprobe", bad); },
                       "nprobe must be an integer from 1 to 16777216, got "));
        EXPECT_TRUE(
                throws([&] { check_search_parameter(*index, "nprobe", bad); },
                       "an integer from 1 to 16777216"));
    }
    EXPECT_TRUE(
            throws([&] { set_search_parameter(*index, "k_factor", 2e9); },
                   "a number from 1 to 1000000000, got 2000000000"));
    EXPECT_TRUE(
            throws([&] { set_search_parameter(*index, "ef", 2); },
                   "no search parameter 'ef'; it has nprobe, k_factor"));
    EXPECT_EQ(search_parameters(*index)[0].get(), 3);

    auto one = make("KIVF4"), two = make("HNSW8,KFlat(chi2)");
    faiss::IndexShards shards(d);
    shards.add_shard(one.get());
    shards.add_shard(two.get());
    EXPECT_EQ(names_of(shards), (Names{"nprobe", "efSearch"}));
    set_search_parameter(shards, "efSearch", 40);
    EXPECT_EQ(dynamic_cast<faiss::IndexHNSW&>(*two).hnsw.efSearch, 40);
}

TEST(IndexTree, KernelValuesAreThoseOfTheIdsOfTheWholeIndex) {
    const auto x = uniform_vectors(n, d, 1), q = uniform_vectors(3, d, 2);
    const IndexFlatKernel exact = [&] {
        IndexFlatKernel index(d, *kernel_factory("chi2"));
        index.add(n, x.data());
        return index;
    }();
    std::vector<idx_t> positions = {5, 7, -1, 0, 199, 5, -1, -1, 3};
    Floats expected(9);
    exact.compute_kernel_subset(
            3, q.data(), 3, expected.data(), positions.data());
    const auto expect_values = [&](const faiss::Index& index,
                                   const std::vector<idx_t>& ids) {
        SCOPED_TRACE(index_text(index));
        Floats values(9, NAN);
        compute_kernel_values(index, 3, q.data(), 3, ids.data(), values.data());
        for (int i = 0; i < 9; i++) {
            EXPECT_EQ(values[i], ids[i] == -1 ? 0 : expected[i]);
        }
    };
    for (const char* string :
         {"KFlat(chi2)",
          "HNSW8,KFlat(chi2)",
          "SIK16(gaussian(gamma=1)),BFlat,Refine(KFlat(chi2))"}) {
        expect_values(*make(string), positions);
    }
    std::vector<idx_t> own(n), ids = positions;
    for (idx_t i = 0; i < n; i++) {
        own[i] = 1000 - 3 * i;
    }
    for (idx_t& id : ids) {
        id = id == -1 ? -1 : own[id];
    }
    auto table = make("IDMap,KFlat(chi2)", 0);
    table->add_with_ids(n, x.data(), own.data());
    expect_values(*table, ids);
    IndexFlatKernel inside(d, *kernel_factory("chi2"));
    faiss::IndexIDMap map(&inside);
    map.add_with_ids(n, x.data(), own.data());
    expect_values(map, ids);
    Floats values(1);
    const idx_t missing = 4;
    for (const faiss::Index* index :
         {table.get(), static_cast<faiss::Index*>(&map)}) {
        EXPECT_TRUE(throws(
                [&] {
                    compute_kernel_values(
                            *index, 1, q.data(), 1, &missing, values.data());
                },
                "0 vectors with id 4"));
    }

    auto half = make("KFlat(chi2)", 0), rest = make("KFlat(chi2)", 0);
    faiss::IndexShards shards(d, false, true);
    shards.add_shard(half.get());
    shards.add_shard(rest.get());
    shards.add(n, x.data());
    expect_values(shards, positions);
    auto other = make("KFlat(chi2)");
    auto same = make("KFlat(chi2)");
    faiss::IndexReplicas replicas(d);
    replicas.add_replica(other.get());
    replicas.add_replica(same.get());
    expect_values(replicas, positions);
}

TEST(IndexTree, TellsWhereVectorsAre) {
    const auto mapped = make("HKM1(chi2),PCA4,KFlat(linear)", 0);
    const AnyIndex inside = part_that_stores(mapped.get());
    EXPECT_EQ(structure_text(inside), "IndexFlatKernel(linear)");
    const auto table = make("IDMap,SIK16(gaussian(gamma=1)),BFlat", 0);
    EXPECT_EQ(
            structure_text(part_that_stores(table.get())),
            "IndexBinaryFlatSIMD");
    EXPECT_TRUE(keeps_ids(table.get()));
    EXPECT_FALSE(divides_vectors(table.get()));
    const auto refined = make("KIVF4(M=4),Refine(KFlat(chi2))", 0);
    EXPECT_EQ(part_that_stores(refined.get()).floats, refined.get());
    EXPECT_FALSE(keeps_ids(refined.get()));
    EXPECT_EQ(unused_places(refined.get()), 0);
    faiss::IndexShards shards(d);
    shards.add_shard(mapped.get());
    EXPECT_TRUE(divides_vectors(shards));

    const auto x = uniform_vectors(3, d, 2);
    const auto& pre = dynamic_cast<faiss::IndexPreTransform&>(*mapped);
    const auto seen = transformed(mapped.get(), 3, x.data());
    ASSERT_EQ(seen.size(), size_t(3 * pre.index->d));
    EXPECT_EQ(transformed(pre.index, 3, seen.data()), seen);
}

/// The graphs in an index.
std::vector<const IndexHNSWKernel*> graphs_in(const AnyIndex& index) {
    std::vector<const IndexHNSWKernel*> graphs;
    if (const auto* graph = index.as<IndexHNSWKernel>()) {
        graphs.push_back(graph);
    }
    for (const IndexPart& part : parts_of(index)) {
        const auto inside = graphs_in(part.index);
        graphs.insert(graphs.end(), inside.begin(), inside.end());
    }
    return graphs;
}

TEST(IndexTree, CompactReachesGraphsInside) {
    const auto x = uniform_vectors(n, d, 1), q = uniform_vectors(20, d, 2);
    std::vector<std::unique_ptr<faiss::Index>> compacted;
    for (const char* text :
         {"HNSW8,KFlat(gaussian(gamma=1))",
          "IDMap2,HNSW8,KFlat(gaussian(gamma=1))",
          "Concurrent,HNSW8,KFlat(gaussian(gamma=1))",
          "RR8,HNSW8,KFlat(gaussian(gamma=1))",
          "HNSW8,KFlat(linear),Refine(KFlat(gaussian(gamma=1)))",
          "Concurrent,IDMap,PCA4,HNSW8,KFlat(linear),Refine(KFlat(chi2))"}) {
        auto index = make(text, 0);
        std::vector<idx_t> ids(n);
        std::iota(ids.begin(), ids.end(), idx_t(500));
        index->add_with_ids(n, x.data(), ids.data());
        const auto graphs = graphs_in(index.get());
        ASSERT_EQ(graphs.size(), 1u) << text;
        const faiss::HNSW& hnsw = graphs[0]->hnsw;
        const auto* before = hnsw.neighbors.data();
        compact(*index); // nothing to do
        EXPECT_EQ(hnsw.neighbors.data(), before) << text;

        index->remove_ids(faiss::IDSelectorRange(510, 520));
        EXPECT_EQ(graphs[0]->num_removed(), 10) << text;
        compact(*index);
        EXPECT_EQ(graphs[0]->num_removed(), 0) << text;
        EXPECT_EQ(graphs[0]->hnsw.offsets.size(), size_t(n - 10 + 1)) << text;
        EXPECT_EQ(index->ntotal, n - 10);
        Floats vector(d);
        index->reconstruct(650, vector.data());
        for (int i = 0; i < d; i++) { // a rotation and its inverse round
            EXPECT_NEAR(vector[i], x[150 * d + i], 1e-6) << text;
        }
        for (const idx_t id : search(*index, q, 5).labels) {
            EXPECT_TRUE(id >= 500 && (id < 510 || id >= 520)) << text;
        }
        compacted.push_back(std::move(index));
    }
    faiss::IndexShards shards(d);
    for (auto& index : compacted) {
        index->remove_ids(faiss::IDSelectorRange(520, 525));
        shards.add_shard(index.get());
    }
    compact(shards);
    for (const IndexHNSWKernel* graph : graphs_in(shards)) {
        EXPECT_EQ(graph->num_removed(), 0);
    }
}

TEST(IndexTree, ListSizesAreThoseOfThePartInside) {
    const auto untrained = index_factory(d, "Concurrent,KIVF4(M=4)");
    EXPECT_EQ(list_sizes(untrained.get()), std::vector<idx_t>(4));
    const auto lists = make("PCA4,IVF4,Flat,Refine(KFlat(linear))");
    const auto& refine = dynamic_cast<faiss::IndexRefine&>(*lists);
    const auto& behind =
            dynamic_cast<faiss::IndexPreTransform&>(*refine.base_index);
    const auto& ivf = dynamic_cast<faiss::IndexIVF&>(*behind.index);
    const auto sizes = list_sizes(lists.get());
    ASSERT_EQ(sizes.size(), 4u);
    for (int list = 0; list < 4; list++) {
        EXPECT_EQ(size_t(sizes[list]), ivf.get_list_size(list));
    }
    faiss::IndexReplicas replicas(d);
    replicas.add_replica(lists.get());
    EXPECT_EQ(list_sizes(replicas), sizes);
    faiss::IndexShards shards(d);
    shards.add_shard(lists.get());
    EXPECT_THROW(list_sizes(shards), UnsupportedError);
}

TEST(IndexTree, DistancesTellKernelValues) {
    const auto kind = [](const std::string& string) {
        const auto index = faiss_ext::index_factory(d, string);
        return distance_kind(part_that_compares(index.get()));
    };
    EXPECT_EQ(kind("KFlat(chi2)"), DistanceKind::kernel);
    EXPECT_EQ(kind("Concurrent,IDMap,HNSW8,KFlat(chi2)"), DistanceKind::kernel);
    EXPECT_EQ(
            kind("AHK64(chi2),BFlat,Refine(KFlat(chi2))"),
            DistanceKind::kernel);
    EXPECT_EQ(kind("Concurrent,AHK64(chi2),BFlat"), DistanceKind::hamming);
    EXPECT_EQ(kind("IDMap,AHK64(chi2),AFlat"), DistanceKind::asymmetric);
    EXPECT_EQ(kind("Flat"), DistanceKind::other);
    EXPECT_EQ(kind("HKM1(chi2),KFlat(linear)"), DistanceKind::other);
    const std::unique_ptr<faiss::IndexBinary> sets =
            index_binary_factory(64, "BConcurrent,BKFlat(jaccard)");
    EXPECT_EQ(
            distance_kind(part_that_compares(sets.get())),
            DistanceKind::scaled);
}

TEST(IndexTree, TellsWhatTrainingNeeds) {
    for (const auto& [string, least] :
         std::vector<std::pair<std::string, idx_t>>{
                 {"KFlat(chi2)", 0},
                 {"IVF7,Flat", 7},
                 {"Concurrent,IDMap,PCA2,IVF7,Flat,Refine(KFlat(linear))",
                  7}}) {
        const auto index = faiss_ext::index_factory(d, string);
        EXPECT_EQ(least_training(index.get()), least) << string;
        index->train(n, uniform_vectors(n, d, 1).data());
        EXPECT_EQ(least_training(index.get()), 0) << string;
    }
}

TEST(IndexTree, TellsWhichMergesAreSlow) {
    for (const std::string front : {"", "Concurrent,", "IDMap,PCA2,"}) {
        EXPECT_FALSE(merges_slowly(
                faiss_ext::index_factory(d, front + "KFlat(linear)").get()));
        EXPECT_TRUE(merges_slowly(
                faiss_ext::index_factory(d, front + "HNSW8,KFlat(linear)")
                        .get()));
    }
    EXPECT_TRUE(merges_slowly(
            faiss_ext::index_factory(d, "HNSW8,KFlat(chi2),Refine(KFlat(chi2))")
                    .get()));
}

TEST(IndexTree, FlatQuantizersAreNotShown) {
    for (const auto& [string, count] :
         std::vector<std::pair<std::string, size_t>>{
                 {"IVF4,Flat", 0}, {"IVF4_HNSW8,Flat", 1}}) {
        const std::unique_ptr<faiss::Index> index(
                faiss::index_factory(d, string.c_str()));
        EXPECT_EQ(parts_of(index.get()).size(), 1);
        EXPECT_EQ(shown_parts(index.get()).size(), count);
    }
}

TEST(IndexTree, TellsTheMemoryThatFilesDoNotNeed) {
    EXPECT_EQ(extra_memory(*make("KFlat(chi2)"), 1000), 0);
    const auto index = make("IDMap,SIK16(gaussian(gamma=1)),BHash4");
    // 16 entries at most
    EXPECT_EQ(extra_memory(*index, 1000000), 16 * 100);
    EXPECT_GT(
            extra_memory(*make("SIK16(gaussian(gamma=1)),BPerm(M=3)"), 1000000),
            1e6);
}

TEST(IndexTree, ADescribedClassWorksEverywhere) {
    auto graph = make("HNSW8,KFlat(chi2)");
    IndexPlus plus(graph.get());
    EXPECT_EQ(
            structure_text(plus),
            AnyIndex(plus).class_name() +
                    "(IndexHNSWKernel(IndexFlatKernel(chi2), efSearch=16), plus=1)");
    EXPECT_EQ(index_string(plus), "Plus,HNSW8,KFlat(chi2)");
    EXPECT_EQ(names_of(plus), (Names{"efSearch", "plus"}));
    set_search_parameter(plus, "efSearch", 99);
    set_search_parameter(plus, "plus", 2);
    EXPECT_EQ(plus.plus, 2);
    EXPECT_EQ(dynamic_cast<faiss::IndexHNSW&>(*graph).hnsw.efSearch, 99);
    EXPECT_TRUE(holds_faiss_ext(&plus));
    // distances of the part are not those of the index
    EXPECT_EQ(part_that_compares(plus).floats, &plus);

    // what the part stores, the index does
    EXPECT_EQ(part_that_stores(plus).floats, graph.get());
    EXPECT_FALSE(keeps_ids(plus));
    auto lists = make("KIVF4(M=4)");
    IndexPlus behind(lists.get());
    EXPECT_TRUE(keeps_ids(behind));
    EXPECT_EQ(unused_places(behind), 4 * 16);

    // wrappers of this library and of FAISS see through it
    plus.reset();
    IndexIDTable table(&plus);
    EXPECT_EQ(names_of(table), (Names{"efSearch", "plus"}));
    faiss::IndexReplicas replicas(d);
    replicas.add_replica(&plus);
    EXPECT_EQ(names_of(replicas), (Names{"efSearch", "plus"}));
    EXPECT_TRUE(
            throws([] { register_index_class(IndexClass<IndexPlus>()); },
                   "described already"));
}

/// Tells the opposite of its base class.
struct IndexUnchecked : faiss::IndexReplicas {
    using faiss::IndexReplicas::IndexReplicas;
};

struct IndexPlusAgain : IndexPlus {
    using IndexPlus::IndexPlus;
};

TEST(IndexTree, AClassMayDifferFromItsBase) {
    auto one = make("HNSW8,KFlat(chi2)"), two = make("HNSW8,KFlat(chi2)", 3);
    IndexUnchecked index(d);
    IndexClass<IndexUnchecked> facts;
    facts.checks_calls = false;
    facts.divides_vectors = false;
    facts.string = [](const IndexUnchecked&) { return "Unchecked"; };
    register_index_class(facts);
    index.add_replica(one.get());
    EXPECT_EQ(index_string(index), "Unchecked");
    KernelExceptionGuard sound(&index);
    one->reset();
    EXPECT_TRUE(throws([&] { KernelExceptionGuard guard(&index); }, "replica"));

    // a class without facts of its own has those of its base class
    IndexPlusAgain again(two.get());
    EXPECT_EQ(names_of(again), (Names{"efSearch", "plus"}));
    // but strings are those of a class itself in FAISS
    EXPECT_EQ(index_string(faiss::IndexFlatL2(d)), "Flat");
    EXPECT_TRUE(
            throws([] { index_string(faiss::IndexFlat1D()); },
                   "cannot make a factory string"));
}

/// Its members never fit.
struct IndexUnfit : faiss::IndexFlat {
    using faiss::IndexFlat::IndexFlat;
};

TEST(IndexTree, ChecksKeepClassAndDataOfErrors) {
    IndexClass<IndexUnfit> facts;
    facts.check = [](const IndexUnfit&) {
        throw VectorError("component 0 of ", 7, " is nan");
    };
    register_index_class(facts);
    const IndexUnfit index(d);
    try {
        KernelExceptionGuard guard(&index);
        FAIL();
    } catch (const VectorError& e) {
        EXPECT_EQ(e.vector, 7);
        EXPECT_NE(std::string(e.what()).find("IndexUnfit"), std::string::npos);
    }
}

struct IndexNamed : faiss::IndexFlat {
    using faiss::IndexFlat::IndexFlat;
};

TEST(IndexTree, OnlyAFunctionHasNoString) {
    const auto same = [](size_t n, auto, size_t m, auto, size_t, float* out) {
        std::fill_n(out, n * m, 1.0f);
    };
    const IndexFlatKernel flat(d, CallbackKernel(same));
    IndexFlatKernel normalized(d, NormalizedKernel(CallbackKernel(same)));
    const IndexHNSWKernel graph(&normalized);
    SumKernel sum;
    sum.add(LinearKernel());
    sum.add(CallbackKernel(same));
    const IndexFlatKernel of_sum(d, sum);
    for (const faiss::Index* index :
         std::vector<const faiss::Index*>{&flat, &graph, &of_sum}) {
        EXPECT_TRUE(throws([&] { index_string(*index); }, "CallbackKernel"));
    }
    // the name in a string proves nothing
    IndexClass<IndexNamed> facts;
    facts.string = [](const IndexNamed&) { return "Flat,callback"; };
    register_index_class(facts);
    EXPECT_EQ(index_string(IndexNamed(d)), "Flat,callback");
}

TEST(IndexTree, NoIndexIsAnError) {
    EXPECT_EQ(index_text(AnyIndex()), "None");
    EXPECT_TRUE(throws([] { parts_of(AnyIndex()); }, "there is no index"));
    EXPECT_TRUE(throws([] { index_string(AnyIndex()); }, "missing"));
}

TEST(IndexTree, ARegisteredClassNeedsNoMore) {
    auto index = make("First(dims=3)", 2);
    EXPECT_EQ(index_string(*index), "First(dims=3)");
    EXPECT_TRUE(holds_faiss_ext(index.get()));
    EXPECT_TRUE(search_parameters(*index).empty());
    EXPECT_TRUE(parts_of(*index).empty());
    const auto x = uniform_vectors(2, d, 1);
    idx_t nearest[2];
    Floats distances(2);
    clone_index(index.get())->search(2, x.data(), 1, distances.data(), nearest);
    EXPECT_EQ(nearest[0], 0);
    EXPECT_EQ(nearest[1], 1);
}

} // namespace
