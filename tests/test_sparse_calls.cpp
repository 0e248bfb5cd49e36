// SPDX-License-Identifier: MIT
// Calls with sparse vectors do what those with dense vectors do.

#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>

#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"
#include "testing_sparse.h"
#include "testing_strings.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr idx_t d = 300, k = 7;

Found<float> search(
        const faiss::Index& index,
        const Rows& q,
        Params params = nullptr) {
    return found_by<float>(q.n(), k, [&](float* distances, idx_t* labels) {
        faiss_ext::search(index, q.get(), k, distances, labels, params);
    });
}

Ranges range_search(
        const faiss::Index& index,
        const Rows& q,
        float radius,
        Params params = nullptr) {
    faiss::RangeSearchResult result(q.n());
    faiss_ext::range_search(index, q.get(), radius, &result, params);
    return to_ranges(result);
}

class EachString : public testing::TestWithParam<std::string> {
   protected:
    const Rows x = draw(3000, d, 5, false, 1), q = draw(20, d, 5, false, 2);
    const Floats dense = x.dense(), dense_q = q.dense();

    std::unique_ptr<faiss::Index> make_untrained() const {
        return std::unique_ptr<faiss::Index>(index_factory(d, GetParam()));
    }

    /// An index that was trained with sparse vectors.
    std::unique_ptr<faiss::Index> make() const {
        auto index = make_untrained();
        train(*index, x.get());
        return index;
    }

    /// One that was trained with dense vectors if this gives the same result,
    /// bit for bit. Sums of sparse vectors are rounded in another order.
    std::unique_ptr<faiss::Index> make_of_dense() const {
        const std::string& text = GetParam();
        for (const char* name : {"KLSH", "KPCA", "gaussian"}) {
            if (text.find(name) != std::string::npos) {
                return make();
            }
        }
        auto index = make_untrained();
        index->train(x.n(), dense.data());
        return index;
    }

    /// Compares sparse queries with dense ones, on an index that was filled
    /// with sparse vectors and on one with dense ones.
    void expect_equal(const faiss::Index& a, const faiss::Index& b) const {
        ASSERT_EQ(a.ntotal, b.ntotal);
        const auto found = search(a, q);
        expect_same(found, faiss_ext_test::search(a, dense_q, k));
        expect_same(found, faiss_ext_test::search(b, dense_q, k));
        const float radius = found.distances[k / 2];
        const auto within = range_search(a, q, radius);
        EXPECT_GT(total_size(within), 0);
        EXPECT_EQ(within, faiss_ext_test::range_search(a, dense_q, radius));
        EXPECT_EQ(within, faiss_ext_test::range_search(b, dense_q, radius));
        faiss::IDSelectorRange sel(found.labels[0], found.labels[0] + 500);
        faiss::SearchParameters params;
        params.sel = &sel;
        const auto selected = search(a, q, &params);
        // FAISS's Flat computes the distances of selected vectors in another
        // way. Here they have 16 components, and norms of at most 1.
        constexpr float rounding =
                4 * 16 * std::numeric_limits<float>::epsilon();
        EXPECT_LE(selected.distances[0], found.distances[0] + rounding);
        expect_same(selected, faiss_ext_test::search(b, dense_q, k, &params));
        EXPECT_EQ(
                range_search(a, q, radius, &params),
                faiss_ext_test::range_search(b, dense_q, radius, &params));
    }
};

} // namespace

INSTANTIATE_TEST_SUITE_P(
        Sparse,
        EachString,
        testing::Values(
                "KFlat(chi2,store=sparse)",
                "IDMap,KFlat(jaccard,store=sparse)",
                "Concurrent,KFlat(js,store=sparse)",
                "KFlat(gaussian,store=sparse)",
                "RHBE64,BFlat",
                "IDMap,SIK64(gaussian),BFlat",
                "KLSH64(chi2,p=50),BIVF4",
                "AHK64(chi2),AFlat",
                "HKM1(chi2),PCAR16,Flat",
                "CWS64,BFlat,Refine(KFlat(jaccard,store=sparse))",
                "AHK64(chi2),AFlat,Refine(KFlat(chi2,store=sparse))",
                "Concurrent,SCR64,BFlat,Refine(KFlat(chi2,store=sparse))",
                "KPCA16(jaccard,p=100),KIVF8,Refine(KFlat(jaccard,store=sparse))"),
        testing_strings::name_of_row);

TEST_P(EachString, AddedVectorsAreFound) {
    const auto sparse = make(), other = make_of_dense();
    EXPECT_TRUE(takes_sparse(*sparse));
    add(*sparse, x.get().slice(0, 1000));
    add(*sparse, x.get().slice(1000, 3000));
    other->add(3000, dense.data());
    expect_equal(*sparse, *other);
}

TEST_P(EachString, IdsChangesAndFiles) {
    const auto sparse = make(), other = make_of_dense();
    std::vector<idx_t> ids(3000);
    for (idx_t i = 0; i < 3000; i++) {
        ids[i] = 10000 - 3 * i;
    }
    add(*sparse, x.get(), ids.data());
    other->add_with_ids(3000, dense.data(), ids.data());
    expect_equal(*sparse, *other);

    const std::string used = std::to_string(ids[5]);
    EXPECT_TRUE(
            throws([&] { add(*sparse, x.get().slice(0, 1), &ids[5]); },
                   "id " + used + " is already in use"));

    const faiss::IDSelectorRange gone(5000, 7000);
    EXPECT_EQ(sparse->remove_ids(gone), other->remove_ids(gone));
    expect_equal(*sparse, *other);

    // vectors of others, given to some ids, in another order
    const std::vector<idx_t> changed = {ids[9], ids[3], ids[700]};
    update_vectors(*sparse, x.get().slice(2990, 2993), changed.data());
    update_vectors(*other, 3, changed.data(), &dense[2990 * d]);
    expect_equal(*sparse, *other);

    const std::vector<idx_t> some = {20000, ids[4], 30000, ids[8]};
    EXPECT_EQ(upsert(*sparse, x.get().slice(5, 9), some.data()), 2);
    EXPECT_EQ(upsert(*other, 4, &dense[5 * d], some.data()), 2);
    expect_equal(*sparse, *other);

    add(*sparse, x.get().slice(0, 1)); // above all ids
    other->add(1, dense.data());
    expect_equal(*sparse, *other);

    const auto bytes = bytes_of(*sparse);
    const auto read = from_bytes(bytes);
    expect_equal(*read, *other);
    EXPECT_EQ(bytes_of(*read), bytes);
    const std::unique_ptr<faiss::Index> copy(clone_index(sparse.get()));
    expect_equal(*copy, *other);
    EXPECT_EQ(index_string(*copy), index_string(*sparse));
}

TEST_P(EachString, ErrorsChangeNothing) {
    const auto index = make();
    add(*index, x.get());
    const auto bytes = bytes_of(*index);
    Rows bad = draw(3, d, 5, false, 3);
    bad.values[bad.indptr[1]] = NAN;
    const std::string place = "vector 1";
    EXPECT_TRUE(throws([&] { add(*index, bad.get()); }, place));
    EXPECT_TRUE(throws([&] { search(*index, bad); }, place));
    const std::vector<idx_t> ids = {1, 2, 3};
    EXPECT_TRUE(throws([&] { add(*index, bad.get(), ids.data()); }));
    EXPECT_TRUE(throws(
            [&] { update_vectors(*index, bad.get(), ids.data()); }, place));
    const Rows narrow = draw(3, d - 1, 5, false, 3);
    EXPECT_TRUE(throws([&] { add(*index, narrow.get()); }, "dimension"));
    EXPECT_TRUE(throws([&] { search(*index, narrow); }, "dimension"));
    EXPECT_EQ(bytes_of(*index), bytes);
    EXPECT_EQ(search(*index, q).labels.size(), size_t(q.n() * k));
}

TEST(SparseCalls, IndexesOfDenseVectorsRefuseThem) {
    const Rows x = draw(3, 8, 2, false, 1);
    for (const char* text :
         {"KFlat(chi2)", "IDMap,KFlat(chi2)", "Concurrent,KIVF4", "Flat"}) {
        const std::unique_ptr<faiss::Index> index(index_factory(8, text));
        EXPECT_FALSE(takes_sparse(*index));
        EXPECT_TRUE(throws(
                [&] { add(*index, x.get()); }, "takes no sparse vectors"));
        EXPECT_TRUE(
                throws([&] { search(*index, x); }, "takes no sparse vectors"));
        EXPECT_EQ(index->ntotal, 0);
    }
}

TEST(SparseCalls, MethodsByPositionAreRefusedIfThereAreIds) {
    const std::unique_ptr<faiss::Index> index(
            index_factory(d, "KFlat(chi2,store=sparse)"));
    auto& sparse = dynamic_cast<IndexSparseKernel&>(*index);
    const Rows x = draw(3, d, 5, false, 1);
    sparse.add(x.get()); // ids are positions
    const std::vector<idx_t> ids = {7, 8, 9};
    add(*index, x.get(), ids.data());
    EXPECT_TRUE(throws([&] { sparse.add(x.get()); }, "sparse_calls.h"));
    EXPECT_EQ(index->ntotal, 6);
}
