// SPDX-License-Identifier: MIT
// Sparse vectors that a fuzzer makes up, well-formed or not, in calls of
// indexes, kernels, maps and hashes. Calls must refuse them, or do the same as
// for dense vectors. The first byte says what is called.

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/kernels/bandwidth.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "../testing_kernels.h"
#include "../testing_sparse.h"
#include "FuzzedChoices.h"

using namespace faiss_ext_test;

namespace {

constexpr idx_t widest = std::numeric_limits<int32_t>::max();

void check(const std::string& what, bool good) {
    if (!good) {
        throw std::logic_error(what);
    }
}

/// Whether f throws a faiss::FaissException.
template <class F>
bool refuses(F&& f) {
    try {
        f();
        return false;
    } catch (const faiss::FaissException&) {
        return true;
    }
}

bool are_same_bits(const Floats& a, const Floats& b) {
    return std::equal(
            a.begin(), a.end(), b.begin(), b.end(), [](float v, float w) {
                return std::bit_cast<uint32_t>(v) == std::bit_cast<uint32_t>(w);
            });
}

// ------------------------------------------------------ vectors of a fuzzer

float draw_value(Choices& choose) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    switch (choose.below(16)) {
        case 0: {
            uint32_t bits = 0;
            for (int i = 0; i < 4; i++) {
                bits = 256 * bits + uint32_t(choose.below(256));
            }
            return std::bit_cast<float>(bits);
        }
        case 1: {
            const float values[] = {NAN, infinity, -infinity, 0, -0.0f, 1e38f};
            return values[choose.below(std::size(values))];
        }
        case 2:
            return -float(choose.below(100));
        default:
            return float(choose.below(100));
    }
}

int32_t draw_column(Choices& choose, idx_t d) {
    const idx_t near = std::min<idx_t>(d, 16);
    switch (choose.below(32)) {
        case 0: // out of range
            return d == widest ? -1 : int32_t(d + idx_t(choose.below(3)));
        case 1:
            return -1 - int32_t(choose.below(3));
        case 2:
            return int32_t(d - 1 - idx_t(choose.below(near)));
        default:
            return int32_t(choose.below(near));
    }
}

/// Up to `most` vectors. Columns are in any order, and may repeat. Rarely a
/// column is out of range, or indptr descends; it never exceeds the size of the
/// arrays, which no call can know.
Rows draw_rows(Choices& choose, idx_t d, size_t most) {
    Rows x{d, {idx_t(choose.below(8) == 0)}, {}, {}};
    const size_t n = choose.below(most + 1);
    const bool is_hostile = choose.below(16) == 0;
    for (int64_t j = 0; j < x.indptr[0]; j++) {
        x.indices.push_back(-7); // not part of any vector
        x.values.push_back(NAN);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t m = choose.below(8); m > 0; m--) {
            x.indices.push_back(draw_column(choose, d));
            x.values.push_back(draw_value(choose));
        }
        x.indptr.push_back(int64_t(x.indices.size()));
    }
    if (is_hostile) {
        int64_t& one = x.indptr[choose.below(n + 1)];
        one = int64_t(choose.below(x.indices.size() + 2)) - 1;
    }
    return x;
}

/// The same vectors with ascending columns and without zeros, or nothing if
/// they are not well-formed.
std::optional<Rows> canonical(const Rows& x) {
    Rows clean{x.d, {0}, {}, {}};
    if (x.n() > 0 && x.indptr[0] < 0) {
        return std::nullopt;
    }
    for (idx_t i = 0; i < x.n(); i++) {
        if (x.indptr[i] > x.indptr[i + 1]) {
            return std::nullopt;
        }
    }
    for (idx_t i = 0; i < x.n(); i++) {
        std::map<int32_t, double> sums;
        for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; j++) {
            if (x.indices[j] < 0 || x.indices[j] >= x.d ||
                !std::isfinite(x.values[j])) {
                return std::nullopt;
            }
            sums[x.indices[j]] += x.values[j];
        }
        std::map<int32_t, float> row;
        for (const auto& [column, sum] : sums) {
            if (!std::isfinite(float(sum))) {
                return std::nullopt;
            }
            if (float(sum) != 0) {
                row[column] = float(sum);
            }
        }
        clean.add(row);
    }
    return clean;
}

/// Small numbers, whose sums and products are exact.
bool are_exact(const Rows& x) {
    return std::all_of(x.values.begin(), x.values.end(), [](float v) {
        return v == std::round(v) && std::abs(v) < 256;
    });
}

// ----------------------------------------------------------------- indexes

/// An index that gets sparse vectors, beside two that get the same ones in
/// other forms.
class SparseIndexes {
   public:
    SparseIndexes(Choices& choose, const std::string& kernel, idx_t d)
            : choose(choose), d(d) {
        const std::string string = "KFlat(" + kernel + ",store=sparse)";
        index = index_factory(int(d), string.c_str());
        twin = index_factory(int(d), string.c_str());
        // other kernels round in another order
        if (d < 100 && (kernel == "linear" || kernel == "intersection")) {
            dense = index_factory(int(d), ("KFlat(" + kernel + ")").c_str());
        }
    }

    void step() {
        using Step = void (SparseIndexes::*)();
        static constexpr Step steps[] = {
                &SparseIndexes::add,
                &SparseIndexes::add,
                &SparseIndexes::replace,
                &SparseIndexes::remove,
                &SparseIndexes::search_nearest,
                &SparseIndexes::search_nearest,
                &SparseIndexes::search_range,
                &SparseIndexes::through_file};
        (this->*steps[choose.below(std::size(steps))])();
        check("the number of vectors", index->ntotal == twin->ntotal);
        if (dense) {
            check("the number of dense vectors",
                  index->ntotal == dense->ntotal);
        }
    }

   private:
    Choices& choose;
    const idx_t d;
    /// The twin gets dense vectors, or sparse ones in canonical form if there
    /// are too many dimensions. `dense` stores dense vectors as long as its
    /// results are exact.
    std::unique_ptr<faiss::Index> index, twin, dense;

    bool is_small() const {
        return d < 100;
    }

    /// Calls sparse(x), and same(clean) with the canonical form of x. Both must
    /// succeed, or both must throw. Returns whether they succeed.
    template <class Sparse, class Same>
    bool both(const Rows& x, Sparse&& sparse, Same&& same) {
        const bool refused = refuses([&] { sparse(x.get()); });
        const auto clean = canonical(x);
        check("malformed vectors are refused", clean || refused);
        if (clean) {
            const bool is_refused = refuses([&] { same(*clean); });
            check("both are refused", refused == is_refused);
        }
        return !refused;
    }

    /// Does the same to `dense`, or gives it up.
    template <class F>
    void in_dense(const Rows& x, F&& change) {
        const auto clean = canonical(x);
        if (!dense || !clean || !are_exact(*clean)) {
            dense = nullptr;
        } else {
            change(clean->dense());
        }
    }

    std::vector<idx_t> draw_ids(idx_t n) {
        std::vector<idx_t> ids(n);
        for (idx_t& id : ids) {
            id = idx_t(choose.below(200)) - 1;
        }
        return ids;
    }

    void add() {
        const Rows x = draw_rows(choose, d, 12);
        if (index->ntotal + x.n() > 150) {
            return;
        }
        const std::vector<idx_t> ids = draw_ids(x.n());
        const bool gives = choose.below(3) == 0;
        const idx_t* given = gives ? ids.data() : nullptr;
        const auto add_dense = [&](faiss::Index& to, const Floats& dense_x) {
            if (gives) {
                to.add_with_ids(x.n(), dense_x.data(), given);
            } else {
                to.add(x.n(), dense_x.data());
            }
        };
        const bool is_done = both(
                x,
                [&](const SparseVectors& v) {
                    faiss_ext::add(*index, v, given);
                },
                [&](const Rows& clean) {
                    if (is_small()) {
                        add_dense(*twin, clean.dense());
                    } else {
                        faiss_ext::add(*twin, clean.get(), given);
                    }
                });
        if (is_done) {
            in_dense(x, [&](const Floats& v) { add_dense(*dense, v); });
        }
    }

    /// update_vectors or upsert
    void replace() {
        const Rows x = draw_rows(choose, d, 3);
        if (index->ntotal + x.n() > 150) {
            return;
        }
        const std::vector<idx_t> ids = draw_ids(x.n());
        const bool adds = choose.below(2);
        const auto change = [&](faiss::Index& to, const SparseVectors& v) {
            if (adds) {
                faiss_ext::upsert(to, v, ids.data());
            } else {
                faiss_ext::update_vectors(to, v, ids.data());
            }
        };
        const bool is_done = both(
                x,
                [&](const SparseVectors& v) { change(*index, v); },
                [&](const Rows& clean) { change(*twin, clean.get()); });
        if (!is_done) {
            return;
        }
        in_dense(x, [&](const Floats& v) {
            if (adds) {
                faiss_ext::upsert(*dense, x.n(), v.data(), ids.data());
            } else {
                faiss_ext::update_vectors(*dense, x.n(), ids.data(), v.data());
            }
        });
    }

    void remove() {
        const idx_t low = idx_t(choose.below(200));
        const faiss::IDSelectorRange range(low, low + choose.below(20));
        const size_t removed = index->remove_ids(range);
        check("the number of removed vectors",
              removed == twin->remove_ids(range));
        if (dense) {
            dense->remove_ids(range);
        }
    }

    void search_nearest() {
        const Rows q = draw_rows(choose, d, 3);
        const idx_t n = q.n(), k = 1 + idx_t(choose.below(index->ntotal + 2));
        Floats distances(n * k), expected(n * k), of_dense(n * k);
        std::vector<idx_t> labels(n * k), expected_labels(n * k);
        const bool is_done = both(
                q,
                [&](const SparseVectors& v) {
                    faiss_ext::search(
                            *index, v, k, distances.data(), labels.data());
                },
                [&](const Rows& clean) {
                    if (is_small()) {
                        twin->search(
                                n,
                                clean.dense().data(),
                                k,
                                expected.data(),
                                expected_labels.data());
                    } else {
                        faiss_ext::search(
                                *twin,
                                clean.get(),
                                k,
                                expected.data(),
                                expected_labels.data());
                    }
                });
        if (!is_done) {
            return;
        }
        check("the labels", labels == expected_labels);
        check("the distances", are_same_bits(distances, expected));
        const Rows clean = *canonical(q);
        if (dense && are_exact(clean)) {
            dense->search(
                    n,
                    clean.dense().data(),
                    k,
                    of_dense.data(),
                    expected_labels.data());
            check("the distances of dense vectors",
                  are_same_bits(distances, of_dense));
        }
    }

    void search_range() {
        const Rows q = draw_rows(choose, d, 3);
        const float radius = draw_value(choose);
        faiss::RangeSearchResult found(q.n()), expected(q.n());
        const bool is_done = both(
                q,
                [&](const SparseVectors& v) {
                    faiss_ext::range_search(*index, v, radius, &found);
                },
                [&](const Rows& clean) {
                    if (is_small()) {
                        twin->range_search(
                                q.n(), clean.dense().data(), radius, &expected);
                    } else {
                        faiss_ext::range_search(
                                *twin, clean.get(), radius, &expected);
                    }
                });
        if (!is_done) {
            return;
        }
        check("the numbers in range",
              std::equal(found.lims, found.lims + q.n() + 1, expected.lims));
        const size_t size = found.lims[q.n()];
        check("the labels in range",
              std::equal(found.labels, found.labels + size, expected.labels));
        check("the distances in range",
              are_same_bits(
                      {found.distances, found.distances + size},
                      {expected.distances, expected.distances + size}));
    }

    void through_file() {
        faiss::VectorIOWriter writer;
        write_index(index.get(), &writer);
        faiss::VectorIOReader reader;
        reader.data = writer.data;
        index = read_index(&reader);
    }
};

void fuzz_index(Choices& choose) {
    static const auto kernels =
            joined(plain_kernels,
                   {"poly(degree=2)",
                    "gaussian(gamma=0.01)",
                    "laplacian(gamma=0.1)",
                    "expchi2(gamma=3)",
                    "normalized(intersection)"});
    const idx_t dimensions[] = {1, 5, 40, widest};
    const std::string& kernel = kernels[choose.below(std::size(kernels))];
    const idx_t d = dimensions[choose.below(std::size(dimensions))];
    SparseIndexes indexes(choose, kernel, d);
    while (!choose.done()) {
        indexes.step();
    }
}

// ----------------------------------------------------------------- kernels

/// Gram matrices and bandwidths.
void fuzz_kernel(Choices& choose) {
    static const auto kernels = joined(plain_kernels, {"laplacian", "expchi2"});
    const auto kernel =
            kernel_factory(kernels[choose.below(std::size(kernels))]);
    const idx_t d = choose.below(2) ? widest : 20;
    const Rows x = draw_rows(choose, d, 8), y = draw_rows(choose, d, 8);
    const auto clean_x = canonical(x), clean_y = canonical(y);
    if (!kernel->is_trained) {
        const auto twin = kernel->clone();
        const bool refused = refuses([&] { kernel->train_sparse(x.get()); });
        check("malformed vectors are refused", clean_x || refused);
        if (clean_x) {
            const bool is_refused =
                    refuses([&] { twin->train_sparse(clean_x->get()); });
            check("training is refused", refused == is_refused);
            check("the bandwidth",
                  kernel->description() == twin->description());
        }
    }
    Floats values(x.n() * y.n()), expected(x.n() * y.n());
    const bool refused =
            refuses([&] { kernel->gram(x.get(), y.get(), values.data()); });
    check("malformed vectors are refused", (clean_x && clean_y) || refused);
    if (clean_x && clean_y) {
        const bool is_refused = refuses([&] {
            kernel->gram(clean_x->get(), clean_y->get(), expected.data());
        });
        check("a matrix is refused", refused == is_refused);
        check("the matrix", refused || are_same_bits(values, expected));
    }
}

// --------------------------------------------------------- maps and hashes

std::vector<std::unique_ptr<Transform>> make_transforms(int d) {
    std::vector<std::unique_ptr<Transform>> all;
    for (const char* string :
         {"AHK64(chi2)",
          "AHK64(js,window=uniform)",
          "SIK64(gaussian,gamma=0.1)",
          "SIK64(laplacian,gamma=0.1)",
          "CWS64",
          "RHBE64",
          "SCR64"}) {
        all.push_back(kernel_hash_factory(d, string));
    }
    for (const char* string : {"HKM1(chi2)", "RFF16(gaussian,gamma=0.1)"}) {
        all.push_back(map_factory(d, string));
    }
    for (auto& transform : all) {
        const Floats ones(2 * d, 1.0f);
        transform->train(2, ones.data());
    }
    return all;
}

void fuzz_transform(Choices& choose) {
    static constexpr int d = 40;
    static const auto transforms = make_transforms(d);
    const Transform& transform = *transforms[choose.below(transforms.size())];
    while (!choose.done()) {
        const Rows x = draw_rows(choose, d, 5);
        const auto clean = canonical(x);
        const size_t size = x.n() * transform.d_out;
        Floats found(size), expected(size);
        const bool refused =
                refuses([&] { transform.apply_sparse(x.get(), found.data()); });
        check("malformed vectors are refused", clean || refused);
        if (!clean) {
            continue;
        }
        const Floats dense = clean->dense();
        const bool is_refused = refuses([&] {
            transform.apply_noalloc(x.n(), dense.data(), expected.data());
        });
        // the least sum of a histogram is in proportion to the components,
        // which are fewer in sparse vectors
        check("sparse vectors are refused", !refused || is_refused);
        if (is_refused) {
            continue;
        }
        check("the features or margins", are_same_bits(found, expected));
        if (const auto* hash = dynamic_cast<const KernelHash*>(&transform)) {
            Bytes codes(x.n() * hash->code_size());
            hash->encode_sparse(x.get(), codes.data());
            check("the codes", codes == codes_of(*hash, dense));
        }
    }
}

/// A scheme that needs no arrays of the size of the dimension.
void fuzz_wide_hash(Choices& choose) {
    static const auto hash = kernel_hash_factory(int(widest), "CWS64");
    while (!choose.done()) {
        const Rows x = draw_rows(choose, widest, 5);
        const auto clean = canonical(x);
        Bytes codes(x.n() * hash->code_size()), expected(codes.size());
        const bool refused =
                refuses([&] { hash->encode_sparse(x.get(), codes.data()); });
        check("malformed vectors are refused", clean || refused);
        if (clean) {
            const bool is_refused = refuses([&] {
                hash->encode_sparse(clean->get(), expected.data());
            });
            check("vectors are refused", refused == is_refused);
            check("the codes", refused || codes == expected);
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) {
        return -1;
    }
    FuzzedChoices choices(data + 1, size - 1);
    switch (data[0] % 4) {
        case 0:
            fuzz_index(choices);
            break;
        case 1:
            fuzz_kernel(choices);
            break;
        case 2:
            fuzz_transform(choices);
            break;
        default:
            fuzz_wide_hash(choices);
    }
    return 0;
}
