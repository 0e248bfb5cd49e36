// SPDX-License-Identifier: MIT
// Index classes of another program that have indexes inside: strings, files,
// copies, texts and search parameters, and who owns the parts when that fails.

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexFlat.h>

#include <faiss_ext/indexes/index_registry.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/describe.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

using faiss::Index;
using faiss::IndexBinary;
using Names = std::vector<std::string>;

constexpr int d = 8;
constexpr int nbits = 64;
constexpr idx_t n = 100;

/// The objects that exist of a class derived from it.
template <class C>
struct Counted {
    static inline int alive = 0;
    Counted() {
        alive++;
    }
    ~Counted() {
        alive--;
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
};

/// What the two kinds of indexes differ in.
template <class IndexT>
struct Kind {
    using Item = float;
    using Distance = float;
    static int size(const Index& index) {
        return index.d;
    }
    static std::unique_ptr<Index> make(const std::string& text) {
        return faiss_ext::index_factory(d, text);
    }
    static Floats data(uint64_t seed) {
        return uniform_vectors(n, d, seed);
    }
    static std::unique_ptr<Index> clone(const Index& index) {
        return clone_index(&index);
    }
};

template <>
struct Kind<IndexBinary> {
    using Item = uint8_t;
    using Distance = int32_t;
    static int size(const IndexBinary& index) {
        return index.code_size;
    }
    static std::unique_ptr<IndexBinary> make(const std::string& text) {
        return faiss_ext::index_binary_factory(nbits, text);
    }
    static Bytes data(uint64_t seed) {
        return random_bytes(n * nbits / 8, seed);
    }
    static std::unique_ptr<IndexBinary> clone(const IndexBinary& index) {
        return clone_binary_index(&index);
    }
};

/// Gives an index the vectors with their components, or bytes, in reverse
/// order, and multiplies its distances: `Rev(times=2),<index>`, `BRev,...`.
template <class IndexT>
struct Reversed : IndexT, HasFields, Counted<Reversed<IndexT>> {
    using Item = typename Kind<IndexT>::Item;
    using Distance = typename Kind<IndexT>::Distance;

    int times = 1;
    std::unique_ptr<IndexT> inside;

    void fields(FieldVisitor& v) const override {
        v.integer("times", times, 1, 10, "factor of all distances");
    }
    void init() override {
        check_fields(*this);
    }

    std::vector<Item> reversed(idx_t count, const Item* x) const {
        const int size = Kind<IndexT>::size(*this);
        std::vector<Item> rows(x, x + count * size);
        for (idx_t i = 0; i < count; i++) {
            std::reverse(&rows[i * size], &rows[i * size] + size);
        }
        return rows;
    }
    void train(idx_t count, const Item* x) override {
        inside->train(count, reversed(count, x).data());
        this->is_trained = true;
    }
    void add(idx_t count, const Item* x) override {
        inside->add(count, reversed(count, x).data());
        this->ntotal = inside->ntotal;
    }
    void search(
            idx_t count,
            const Item* x,
            idx_t k,
            Distance* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        inside->search(count, reversed(count, x).data(), k, distances, labels);
        for (idx_t i = 0; i < count * k; i++) {
            distances[i] *= Distance(times);
        }
    }
    void reset() override {
        inside->reset();
        this->ntotal = 0;
    }
};

using Rev = Reversed<Index>;
using BRev = Reversed<IndexBinary>;

/// Searches the first of any number of parts, and owns them as FAISS's classes
/// do: `Copies`. Its take_parts may fail after the first part.
struct Copies : Index, HasFields, Counted<Copies> {
    static inline bool fails = false;
    std::vector<Index*> all;

    ~Copies() override {
        for (Index* part : all) {
            delete part;
        }
    }
    void fields(FieldVisitor&) const override {}
    void add(idx_t count, const float* x) override {
        for (Index* part : all) {
            part->add(count, x);
        }
        ntotal += count;
    }
    void search(
            idx_t count,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        all.at(0)->search(count, x, k, distances, labels);
    }
    void reset() override {
        for (Index* part : all) {
            part->reset();
        }
        ntotal = 0;
    }
};

/// Exact search, `Leaf`.
struct Leaf : faiss::IndexFlat, HasFields, Counted<Leaf> {
    void fields(FieldVisitor& v) const override {
        v.array("codes", codes, ntotal * d * sizeof(float));
    }
    void init() override {
        restore();
    }
    void restore() override {
        code_size = d * sizeof(float);
    }
};

/// Forgets what it is given, `Lost`.
struct Lost : Rev {};

/// Says that its parts are binary, `Wrong`.
struct Wrong : Rev {
    BRev other;
};

template <class Class, class IndexT>
void register_reversed(const std::string& name) {
    IndexClass<Class> facts;
    facts.parts = [](const Class& i) {
        return std::vector<IndexPart>{
                {.name = "index inside",
                 .index = i.inside.get(),
                 .is_searched = true}};
    };
    facts.take_parts = [](Class& i, OwnedParts<Class> parts) {
        i.inside = std::move(parts[0]);
    };
    facts.settings = [](const Class& i) {
        return Names{"times=" + std::to_string(i.times)};
    };
    facts.parameters = [](Class& i) {
        return std::vector<SearchParameter>{
                {"times",
                 true,
                 1,
                 10,
                 {1, 2},
                 {{[&i] { return double(i.times); },
                   [&i](double value) { i.times = int(value); }}}}};
    };
    register_index_class(facts);
    register_index<Class>(name);
}

[[maybe_unused]] const bool registered = [] {
    register_reversed<Rev, Index>("Rev");
    register_reversed<BRev, IndexBinary>("BRev");
    register_index<Leaf>("Leaf");

    IndexClass<Copies> copies;
    copies.parts = [](const Copies& i) {
        std::vector<IndexPart> parts;
        for (const Index* part : i.all) {
            parts.push_back(
                    {.name = "copy",
                     .index = part,
                     .is_searched = true,
                     .by_position = true});
        }
        return parts;
    };
    copies.take_parts = [](Copies& i, OwnedParts<Copies> parts) {
        FAISS_THROW_IF_NOT_MSG(!parts.empty(), "no copies");
        for (auto& part : parts) {
            i.all.reserve(i.all.size() + 1);
            i.all.push_back(part.release());
            FAISS_THROW_IF_NOT_MSG(!Copies::fails, "fails on purpose");
        }
    };
    register_index_class(copies);
    register_index<Copies>("Copies");

    IndexClass<Lost> lost;
    lost.take_parts = [](Lost&, OwnedParts<Lost>) {};
    register_index_class(lost);
    register_index<Lost>("Lost");

    IndexClass<Wrong> wrong;
    wrong.parts = [](const Wrong& i) {
        return std::vector<IndexPart>{{.name = "other", .index = i.other}};
    };
    register_index_class(wrong);
    register_index<Wrong>("Wrong");
    return true;
}();

template <class IndexT>
std::unique_ptr<IndexT> make(const std::string& text) {
    auto index = Kind<IndexT>::make(text);
    const auto x = Kind<IndexT>::data(1);
    index->train(n, x.data());
    index->add(n, x.data());
    return index;
}

template <class IndexT>
Names names_of(IndexT& index) {
    Names names;
    for (const SearchParameter& parameter : search_parameters(index)) {
        names.push_back(parameter.name);
    }
    return names;
}

/// A string, the text of its index, and the names of its search parameters.
struct Row {
    std::string string, text;
    Names parameters;
};

template <class IndexT>
void check_row(const Row& row) {
    SCOPED_TRACE(row.string);
    const auto index = make<IndexT>(row.string);
    EXPECT_TRUE(is_faiss_ext_string(row.string));
    EXPECT_EQ(index_string(*index), row.string);
    EXPECT_EQ(structure_text(*index), row.text);
    EXPECT_EQ(names_of(*index), row.parameters);
    EXPECT_TRUE(holds_faiss_ext(index.get()));
    const auto q = Kind<IndexT>::data(2);
    const auto found = search(*index, q, 5);
    const auto read = from_bytes<IndexT>(bytes_of(*index));
    const auto clone = Kind<IndexT>::clone(*index);
    for (IndexT* copy : {read.get(), clone.get()}) {
        EXPECT_EQ(typeid(*copy), typeid(*index));
        EXPECT_EQ(index_text(*copy), index_text(*index));
        EXPECT_EQ(index_string(*copy), row.string);
        EXPECT_EQ(bytes_of(*copy), bytes_of(*index));
        expect_same(search(*copy, q, 5), found);
        // the copy has parts of its own
        for (const SearchParameter& parameter : search_parameters(*copy)) {
            set_search_parameter(*copy, parameter.name, parameter.least);
        }
        copy->reset();
    }
    expect_same(search(*index, q, 5), found);
}

const std::string sik = "SIK64(gaussian(gamma=1))";

TEST(OutsideWrappers, WorkLikeClassesOfTheLibrary) {
    const std::string name = AnyIndex(Rev()).class_name();
    const std::string binary = AnyIndex(BRev()).class_name();
    const std::string kernel_hash = "IndexKernelHash(" + sik + ", ";
    for (const Row& row : std::vector<Row>{
                 {"Rev,KFlat(chi2)",
                  name + "(IndexFlatKernel(chi2), times=1)",
                  {"times"}},
                 {"Rev(times=3),IVF4,Flat",
                  name + "(IndexIVFFlat(nlist=4, nprobe=1), times=3)",
                  {"nprobe", "max_codes", "times"}},
                 {"Rev(times=2),Rev,HNSW8,KFlat(chi2)",
                  name + "(" + name +
                          "(IndexHNSWKernel(IndexFlatKernel(chi2), efSearch=16), times=1), times=2)",
                  {"efSearch", "times", "times_rf"}},
                 {"IDMap,Rev(times=2),KFlat(chi2)",
                  "IndexIDTable(" + name + "(IndexFlatKernel(chi2), times=2))",
                  {"times"}},
                 {"RR4,Rev,KFlat(linear)",
                  "IndexPreTransformSIMD(RandomRotationMatrix(8, 4), " + name +
                          "(IndexFlatKernel(linear), times=1))",
                  {"times"}},
                 {"HKM(chi2,period=9.5),Rev,KFlat(linear)",
                  "IndexPreTransformSIMD(HKM(chi2,period=9.5), " + name +
                          "(IndexFlatKernel(linear), times=1))",
                  {"times"}},
                 {"Rev,HKM(chi2,period=9.5),PCA4,Rev,KFlat(linear)",
                  name + "(IndexPreTransformSIMD(HKM(chi2,period=9.5), PCAMatrix(24, 4), " +
                          name +
                          "(IndexFlatKernel(linear), times=1)), times=1)",
                  {"times", "times_rf"}},
                 {"Rev," + sik + ",BFlat,Refine(KFlat(gaussian(gamma=1)))",
                  "IndexRefineKernel(" + name + "(" + kernel_hash +
                          "IndexBinaryFlatSIMD), times=1), IndexFlatKernel(gaussian(gamma=1)), k_factor=1)",
                  {"times", "k_factor"}},
                 {sik + ",BRev(times=2),BIVF4",
                  kernel_hash + binary +
                          "(IndexBinaryIVFSIMD(nlist=4, nprobe=1), times=2))",
                  {"nprobe", "max_codes", "times"}}}) {
        check_row<Index>(row);
    }
    for (const Row& row : std::vector<Row>{
                 {"BRev,BFlat",
                  binary + "(IndexBinaryFlatSIMD, times=1)",
                  {"times"}},
                 {"IDMap,BRev(times=3),BKFlat(jaccard)",
                  "IndexBinaryIDTable(" + binary +
                          "(IndexBinaryFlatKernel(jaccard), times=3))",
                  {"times"}},
                 {"BRev,BRev(times=2),BIVF4",
                  binary + "(" + binary +
                          "(IndexBinaryIVFSIMD(nlist=4, nprobe=1), times=2), times=1)",
                  {"nprobe", "max_codes", "times", "times_rf"}}}) {
        check_row<IndexBinary>(row);
    }
}

template <class IndexT>
void check_search(const std::string& string, const std::string& inside) {
    using Class = Reversed<IndexT>;
    const auto index = make<IndexT>(string);
    const auto& outside = dynamic_cast<const Class&>(*index);
    const auto expected = Kind<IndexT>::make(inside);
    const auto reversed = [&](uint64_t seed) {
        return outside.reversed(n, Kind<IndexT>::data(seed).data());
    };
    expected->train(n, reversed(1).data());
    expected->add(n, reversed(1).data());
    auto found = search(*expected, reversed(2), 5);
    for (auto& distance : found.distances) {
        distance *= outside.times;
    }
    expect_same(search(*index, Kind<IndexT>::data(2), 5), found);
    EXPECT_EQ(index_string(*outside.inside), inside);
}

TEST(OutsideWrappers, SearchTheIndexInside) {
    check_search<Index>("Rev(times=3),IVF4,Flat", "IVF4,Flat");
    check_search<IndexBinary>("BRev(times=3),BFlat", "BFlat");
}

TEST(OutsideWrappers, GetTheMetricAndAreTrainedLikeTheIndexInside) {
    const auto index = faiss_ext::index_factory(
            d, "Rev,IVF4,Flat", faiss::METRIC_INNER_PRODUCT);
    EXPECT_EQ(index->metric_type, faiss::METRIC_INNER_PRODUCT);
    EXPECT_FALSE(index->is_trained);
    EXPECT_FALSE(from_bytes(bytes_of(*index))->is_trained);
    index->train(n, Kind<Index>::data(1).data());
    EXPECT_TRUE(from_bytes(bytes_of(*index))->is_trained);
    EXPECT_TRUE(faiss_ext::index_factory(d, "Rev,Flat")->is_trained);
}

TEST(OutsideWrappers, StringsSayWhatIsWrong) {
    const std::pair<const char*, const char*> bad_strings[] = {
            {"Rev", "expected an index inside Rev"},
            {"Rev(times=2)", "expected an index inside Rev"},
            {"Rev,", ""},
            {"Rev(times=11),Flat", "1 to 10"},
            {"Rev,Nothing", "Nothing"},
            {"Rev,IDMap,Flat", "IDMap must come first"},
            {"PCA4,IDMap,Rev,Flat", "IDMap must come first"},
            {"Rev2,Flat", "Rev2"},
            {"HNSW8,Rev,KFlat(chi2)", "a graph needs KFlat behind it"},
            {"HNSW8,Rev", "a graph needs KFlat behind it"},
            {"IVF4,Rev,Flat", "inside its cells"},
            {"IDMap,Rev,IVF4,Flat", "keep ids themselves"},
            {"SIK64(gaussian),Rev,Flat", ""},
            {"SIK64(gaussian),BRev", "expected an index inside BRev"},
            {"SIK64(gaussian),BRev,AFlat", "unknown binary index 'AFlat'"},
            {"SIK64(gaussian),BRev,BKFlat(jaccard)", "cannot store the codes"},
            {"SIK64(gaussian),BRev,IDMap,BFlat", "IDMap must come first"},
            {"SIK64(gaussian),Unknown", "BRev(...),<binary index>"},
            {"KFlat(chi2),Rev,Flat", "unexpected text"},
            {"Unknown,KFlat(chi2)", "Rev(...),<index>"},
            {"Rev,BFlat", "BFlat"},
            {"BRev,BFlat", "index_binary_factory"},
            {"Copies,Flat,Flat", ""},
            {"Lost,Flat", "take_parts"},
            {"Wrong,Flat", "take_parts"}};
    for (const auto& [text, named] : bad_strings) {
        EXPECT_TRUE(throws(
                [&text = text] { faiss_ext::index_factory(d, text); }, named))
                << text;
    }
    for (const auto& [text, named] :
         std::vector<std::pair<const char*, const char*>>{
                 {"BRev", "expected an index inside BRev"},
                 {"BRev,Flat", "Flat"},
                 {"BRev,Rev,BFlat", "Rev"},
                 {"BRev,IDMap,BFlat", "IDMap must come first"}}) {
        EXPECT_TRUE(throws(
                [&text = text] {
                    faiss_ext::index_binary_factory(nbits, text);
                },
                named))
                << text;
    }
    EXPECT_TRUE(
            throws([] { faiss_ext::index_binary_factory(12, "BRev,BFlat"); },
                   "a multiple of 8"));
    std::string deep = "Flat", codes = "BFlat";
    for (int i = 0; i < 11; i++) {
        deep = "Rev," + deep;
        codes = "BRev," + codes;
    }
    from_bytes(bytes_of(*faiss_ext::index_factory(d, deep)));
    from_bytes<IndexBinary>(
            bytes_of(*faiss_ext::index_binary_factory(nbits, codes)));
    const std::string too_deep = "more than 12 nested indexes";
    EXPECT_TRUE(throws(
            [&] { faiss_ext::index_factory(d, "Rev," + deep); }, too_deep));
    EXPECT_TRUE(throws(
            [&] { faiss_ext::index_binary_factory(nbits, "BRev," + codes); },
            too_deep));
    EXPECT_EQ(describe("Rev")[0].key, "times");
    EXPECT_TRUE(is_string_for_codes("IDMap,BRev,BFlat"));
    EXPECT_FALSE(is_string_for_codes("Rev,Flat"));
}

TEST(OutsideWrappers, HaveNoStringThatMakesAnotherIndex) {
    Rev front;
    front.d = d;
    EXPECT_TRUE(throws([&] { index_string(front); }, "missing"));
    for (const char* outermost :
         {"IDMap,KFlat(chi2)", "KFlat(chi2),Refine(KFlat(chi2))"}) {
        front.inside = make<Index>(outermost);
        EXPECT_TRUE(throws(
                [&] { index_string(front); }, "cannot make a factory string"));
        front.ntotal = n;
        EXPECT_EQ(index_text(*from_bytes(bytes_of(front))), index_text(front));
    }
}

/// Three indexes as the parts of a Copies.
std::unique_ptr<Copies> make_copies(const std::string& part, int count = 3) {
    auto copies = std::make_unique<Copies>();
    copies->d = d;
    copies->ntotal = n;
    for (int i = 0; i < count; i++) {
        copies->all.push_back(make<Index>(part).release());
    }
    return copies;
}

TEST(OutsideWrappers, MayHaveAnyNumberOfParts) {
    const auto q = Kind<Index>::data(2);
    for (const int count : {1, 3}) {
        const auto copies = make_copies("Rev,KFlat(chi2)", count);
        const auto read = from_bytes(bytes_of(*copies));
        ASSERT_EQ(parts_of(*read).size(), count);
        expect_same(search(*read, q, 5), search(*copies, q, 5));
        if (count == 1) {
            EXPECT_EQ(index_string(*copies), "Copies,Rev,KFlat(chi2)");
        } else {
            EXPECT_TRUE(
                    throws([&] { index_string(*copies); },
                           "cannot make a factory string"));
        }
    }
    const auto lists = make_copies("KIVF4", 0);
    auto part = make<Index>("KIVF4");
    part->reset();
    std::vector<idx_t> ids(n);
    std::iota(ids.begin(), ids.end(), 1);
    part->add_with_ids(n, q.data(), ids.data());
    lists->all.push_back(part.release());
    EXPECT_TRUE(
            throws([&] { bytes_of<Index>(*lists); },
                   "the ids of its copy are not the positions of its vectors"));
    const auto none = make_copies("Flat", 0);
    EXPECT_TRUE(throws([&] { from_bytes(bytes_of(*none)); }, "no copies"));
}

// Damage.

TEST(OutsideWrappers, AreNotWrittenIfTheyCouldNotBeRead) {
    const auto index = make<Index>("Rev,Leaf");
    auto& outside = dynamic_cast<Rev&>(*index);
    auto& inside = dynamic_cast<Leaf&>(*outside.inside);
    const Bytes good = bytes_of(*index);
    const auto refused = [&](const std::string& named) {
        EXPECT_TRUE(throws([&] { bytes_of(outside); }, named));
        EXPECT_TRUE(throws([&] { clone_index(&outside); }, named));
    };
    outside.ntotal++;
    refused("its parts do not match");
    outside.ntotal--;
    inside.metric_type = faiss::METRIC_INNER_PRODUCT;
    refused("expected the same");
    inside.metric_type = faiss::METRIC_L2;
    inside.is_trained = false;
    refused("a part that is not trained");
    inside.is_trained = true;
    outside.d = 9;
    refused("its index inside has 8 dimensions, expected 9");
    outside.d = d;
    outside.times = 11;
    refused("times is 11");
    outside.times = 1;
    EXPECT_EQ(bytes_of(outside), good);
    outside.inside.reset();
    refused("the index inside of the object to write is null");

    Wrong wrong;
    wrong.d = wrong.other.d = 8;
    wrong.other.code_size = 1;
    wrong.other.inside = std::make_unique<faiss::IndexBinaryFlat>(8);
    EXPECT_TRUE(
            throws([&] { bytes_of<Index>(wrong); },
                   "is a binary index, expected a float one"));
}

/// The content of a file with the last `rest` bytes replaced.
Bytes with_end(const Bytes& content, size_t rest, const Bytes& end) {
    return joined(Bytes(content.begin(), content.end() - rest), end);
}

Bytes joined_parts(int32_t count, const std::vector<Bytes>& parts) {
    Bytes bytes(sizeof(count));
    std::memcpy(bytes.data(), &count, sizeof(count));
    for (const Bytes& part : parts) {
        bytes = joined(joined(bytes, {'F', 'x', 'I', 'x'}), part);
    }
    return bytes;
}

TEST(OutsideWrappers, FilesWithOtherPartsAreDamaged) {
    const auto content = [](const Index& index) {
        return content_of(bytes_of(index));
    };
    const auto index = make<Index>("Rev,Leaf");
    const Bytes good = content(*index);
    const Bytes inside = content(*dynamic_cast<const Rev&>(*index).inside);
    const Bytes end = joined_parts(1, {inside});
    ASSERT_EQ(with_end(good, end.size(), end), good);
    const auto refused = [&](const Bytes& bytes, const std::string& named) {
        EXPECT_TRUE(throws(
                [&] { from_bytes(sealed(with_end(good, end.size(), bytes))); },
                named));
    };
    refused(joined_parts(0, {}), "damaged: ");
    refused(joined_parts(0, {}), "has 0 parts, expected 1");
    refused(joined_parts(2, {inside, inside}), "has 2 parts, expected 1");
    refused(joined_parts(-1, {}), "parts is -1");
    refused(joined_parts(1 << 21, {}), "parts is 2097152");
    refused(joined_parts(1, {}), "truncated");
    refused(joined_parts(2, {inside}), "truncated");
    refused(joined(end, {0}), "1 bytes follow");
    auto other = make<Index>("Leaf");
    const auto refused_inside = [&](const std::string& named) {
        refused(joined_parts(1, {content(*other)}), named);
    };
    other->metric_type = faiss::METRIC_INNER_PRODUCT;
    refused_inside("expected the same");
    other->metric_type = faiss::METRIC_L2;
    other->is_trained = false;
    refused_inside("a part that is not trained");
    other->reset();
    other->is_trained = true;
    refused_inside("damaged: its parts do not match");
    other = faiss_ext::index_factory(4, "Leaf");
    refused_inside("damaged: its index inside has 4 dimensions, expected 8");
}

template <class IndexT>
void check_damage(const std::string& string) {
    SCOPED_TRACE(string);
    const auto index = make<IndexT>(string);
    const std::string magic = std::is_same_v<IndexT, Index> ? "FxIx" : "FxIB";
    const Bytes content = content_of(bytes_of(*index));
    const int outside = Counted<Reversed<IndexT>>::alive;
    const int inside = Counted<Leaf>::alive;
    int objects = 0, errors = 0;
    const auto try_to_read = [&](const Bytes& bytes) {
        try {
            from_bytes<IndexT>(sealed(bytes, magic));
            objects++;
        } catch (const faiss::FaissException&) {
            errors++;
        }
        ASSERT_EQ(Counted<Reversed<IndexT>>::alive, outside);
        ASSERT_EQ(Counted<Leaf>::alive, inside);
    };
    for (size_t i = 0; i < content.size(); i++) {
        try_to_read(Bytes(content.begin(), content.begin() + i));
    }
    EXPECT_EQ(objects, 0);
    for (size_t i = 0; i < content.size(); i++) {
        Bytes changed = content;
        changed[i] ^= 1 << i % 8;
        try_to_read(changed);
    }
    EXPECT_GT(objects, 0); // if only a value changed
    EXPECT_GT(errors, int(content.size()));
}

TEST(OutsideWrappers, DamagedFilesLeaveNothingBehind) {
    check_damage<Index>("Rev(times=2),Rev,Leaf");
    check_damage<IndexBinary>("BRev(times=2),BRev,BFlat");
}

// Ownership.

TEST(OutsideWrappers, APartHasOneOwner) {
    const auto alive = [] {
        return std::vector<int>{
                Counted<Rev>::alive,
                Counted<Copies>::alive,
                Counted<Leaf>::alive};
    };
    const auto before = alive();
    {
        const auto copies = make_copies("Rev,Leaf");
        EXPECT_EQ(alive(), (std::vector<int>{3, 1, 3}));
        const auto read = from_bytes(bytes_of(*copies));
        const auto clone = clone_index(read.get());
        EXPECT_EQ(alive(), (std::vector<int>{9, 3, 9}));
        Copies::fails = true;
        const Bytes bytes = bytes_of(*copies);
        for (const auto& f : std::vector<std::function<void()>>{
                     [&] { from_bytes(bytes); },
                     [&] { clone_index(copies.get()); },
                     [&] { faiss_ext::index_factory(d, "Copies,Leaf"); }}) {
            EXPECT_TRUE(throws(f, "fails on purpose"));
            EXPECT_EQ(alive(), (std::vector<int>{9, 3, 9}));
        }
        Copies::fails = false;
    }
    EXPECT_TRUE(throws([] { faiss_ext::index_factory(d, "Lost,Leaf"); }));
    EXPECT_EQ(alive(), before);
}

} // namespace
