// SPDX-License-Identifier: MIT
// KPCA and KLSH with sparse landmarks, and bandwidths from sparse vectors.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <faiss/IndexRefine.h>
#include <faiss/impl/io.h>

#include <faiss_ext/hashes/KernelizedLSH.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/BandwidthKernel.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/kernels/NormalizedKernel.h>
#include <faiss_ext/kernels/ShiftInvariantKernel.h>
#include <faiss_ext/kernels/WrappedKernel.h>
#include <faiss_ext/kernels/bandwidth.h>
#include <faiss_ext/maps/KernelPCA.h>

#include "testing.h"
#include "testing_kernels.h"
#include "testing_sparse.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

constexpr int widest = std::numeric_limits<int32_t>::max();
constexpr idx_t d = 300;

template <class T>
std::unique_ptr<T> as(std::unique_ptr<Transform> made) {
    return std::unique_ptr<T>(&dynamic_cast<T&>(*made.release()));
}

std::unique_ptr<KernelPCA> make_map(const std::string& text, int dim = d) {
    return as<KernelPCA>(map_factory(dim, text));
}

std::unique_ptr<KernelizedLSH> make_hash(const std::string& text, int dim = d) {
    return as<KernelizedLSH>(kernel_hash_factory(dim, text));
}

Floats applied(const Transform& transform, const Rows& rows) {
    Floats y(rows.n() * transform.d_out);
    transform.apply_sparse(rows.get(), y.data());
    return y;
}

Rows rows_of(const SparseRows& rows) {
    return {rows.d, rows.indptr, rows.indices, rows.values};
}

/// The same vectors in more dimensions: columns are `step` apart, and the last
/// one is used.
Rows spread(Rows rows, int dim, int step) {
    for (int32_t& column : rows.indices) {
        column = column == rows.d - 1 ? dim - 1 : column * step;
    }
    rows.d = dim;
    return rows;
}

/// Vectors with few components, some of them empty and some equal.
Rows vectors(idx_t n, int seed) {
    Rows rows = draw(n, d, 6, false, seed);
    rows.add({});
    rows.add({{int32_t(d - 1), 1.0f}});
    rows.add({{0, 0.5f}, {int32_t(d - 1), 0.5f}});
    return rows;
}

const std::vector<std::string> kernels =
        joined(plain_kernels,
               {"chi2,scale=2",
                "linear,normalize=0",
                "poly(degree=2)",
                "gaussian,gamma=3",
                "laplacian,gamma=0.7",
                "matern(nu=1.5,gamma=2)",
                "expchi2(gamma=1.5)",
                "normalized(poly(degree=2))",
                "exponential(jaccard,scale=2)"});

/// The error of a kernel value. A sum over pairs has an error of 1e-5 of the
/// sum of its terms. At most five of them, or twice that with a transform, are
/// in a value, and two values are compared.
constexpr double value_error = 1e-4;

/// Values of a map's kernel between vectors and its landmarks, all dense.
Floats dense_values(const KernelPCA& map, const Floats& x) {
    const Floats y = rows_of(map.sparse_landmarks).dense();
    const NormalizedKernel normalized(*map.kernel);
    const Kernel* kernel = map.normalize ? &normalized : map.kernel.get();
    Floats values = kernel_block(*kernel, x, y, d);
    for (float& v : values) {
        v = map.scale > 0 ? float(std::exp(map.scale * (v - 1))) : v;
    }
    return values;
}

/// Compares a map or hash with its projection of dense kernel values.
void expect_near_projection(
        const Projection& projection,
        const Floats& offset,
        const Floats& values,
        const Floats& found) {
    const size_t p = projection.d_in, m = projection.d_out;
    const Floats A = projection.matrix();
    for (size_t i = 0; i < found.size(); i++) {
        const float *a = &A[i % m * p], *k = &values[i / m * p];
        double sum = -offset[i % m], size = std::abs(offset[i % m]);
        double error = 0;
        for (size_t j = 0; j < p; j++) {
            sum += double(a[j]) * k[j];
            size += std::abs(double(a[j]) * k[j]);
            error += std::abs(a[j]) * value_error;
        }
        error += double(p + 2) * float_unit * size;
        ASSERT_NEAR(found[i], sum, error) << i;
    }
}

/// The largest memory of this process so far.
double peak_bytes() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * double(usage.ru_maxrss);
}

CallbackKernel callback() {
    return CallbackKernel([](size_t n,
                             const float* x,
                             size_t m,
                             const float* y,
                             size_t dim,
                             float* out) {
        for (size_t i = 0; i < n * m; i++) {
            out[i] = dot_product(x + i / m * dim, y + i % m * dim, dim);
        }
    });
}

} // namespace

TEST(SparseLandmarks, ResultsEqualThoseOfDenseOnes) {
    const Rows x = vectors(300, 1), q = vectors(60, 2);
    for (const std::string& kernel : kernels) {
        SCOPED_TRACE(kernel);
        const auto dense = make_map("KPCA6(" + kernel + ",p=40)");
        const auto sparse = make_map("KPCA6(" + kernel + ",p=40)");
        dense->train(x.n(), x.dense().data());
        sparse->train_sparse(x.get());
        EXPECT_TRUE(sparse->landmarks.empty());
        EXPECT_EQ(rows_of(sparse->sparse_landmarks).dense(), dense->landmarks);
        // Weyl: eigenvalues differ at most by the norm of the difference
        for (int i = 0; i < 6; i++) {
            EXPECT_NEAR(
                    sparse->eigenvalues[i],
                    dense->eigenvalues[i],
                    40 * value_error);
        }
        expect_near_projection(
                *sparse->components,
                sparse->offset,
                dense_values(*sparse, q.dense()),
                applied(*sparse, q));

        const auto hash = make_hash("KLSH64(" + kernel + ",p=40)");
        hash->train_sparse(x.get());
        EXPECT_EQ(
                hash->map.sparse_landmarks.values,
                sparse->sparse_landmarks.values);
        expect_near_projection(
                *hash->projection,
                hash->threshold,
                dense_values(hash->map, q.dense()),
                applied(*hash, q));
    }
}

// Vectors may be dense or sparse, whatever the landmarks are.
TEST(SparseLandmarks, VectorsOfBothForms) {
    const Rows x = vectors(300, 1), q = vectors(60, 2);
    for (const std::string& kernel : kernels) {
        SCOPED_TRACE(kernel);
        std::vector<std::unique_ptr<Transform>> all;
        for (bool is_sparse : {false, true}) {
            all.push_back(make_map("KPCA6(" + kernel + ",p=40)"));
            all.push_back(make_hash("KLSH64(" + kernel + ",p=40)"));
            for (size_t i = all.size() - 2; i < all.size(); i++) {
                if (is_sparse) {
                    all[i]->train_sparse(x.get());
                } else {
                    all[i]->train(x.n(), x.dense().data());
                }
            }
        }
        for (const auto& transform : all) {
            const Floats found = applied(*transform, q);
            EXPECT_TRUE(same_bits(
                    found, faiss_ext_test::applied(*transform, q.dense())));
            const Threads threads(3);
            EXPECT_TRUE(same_bits(found, applied(*transform, q)));
        }
    }
}

TEST(SparseLandmarks, DoNotDependOnThreads) {
    const Rows x = vectors(300, 1);
    for (const std::string text :
         {"KPCA6(gaussian,p=40)", "KPCA6(expchi2,p=40)", "KPCA6(js,p=40)"}) {
        const auto one = make_map(text), three = make_map(text);
        one->train_sparse(x.get());
        const Threads threads(3);
        three->train_sparse(x.get());
        one->check_identical(*three);
    }
    const std::string text = "KLSH64(jaccard,p=40,rank=auto,scale=auto)";
    const auto one = make_hash(text), three = make_hash(text);
    one->train_sparse(x.get());
    const Threads threads(3);
    three->train_sparse(x.get());
    one->check_identical(*three);
    EXPECT_GT(one->map.eigenvalues.size(), 0u);
}

TEST(SparseLandmarks, AreSet) {
    const Rows x = vectors(300, 1), q = vectors(60, 2);
    const auto drawn = make_map("KPCA6(chi2,p=40)");
    drawn->train_sparse(x.get());
    const Rows chosen = rows_of(drawn->sparse_landmarks);
    const auto given = make_map("KPCA6(chi2,p=300)");
    // columns in another order
    Rows turned = chosen;
    for (idx_t i = 0; i < turned.n(); i++) {
        const auto begin = turned.indptr[i], end = turned.indptr[i + 1];
        std::reverse(
                turned.indices.begin() + begin, turned.indices.begin() + end);
        std::reverse(
                turned.values.begin() + begin, turned.values.begin() + end);
    }
    given->set_landmarks(turned.get());
    EXPECT_EQ(given->p, 40);
    EXPECT_EQ(given->sparse_landmarks.indices, chosen.indices);
    // landmarks that are set keep their form
    const auto file = reread(*given);
    for (KernelPCA* map : {given.get(), &dynamic_cast<KernelPCA&>(*file)}) {
        map->train(x.n(), x.dense().data());
        EXPECT_TRUE(same_bits(applied(*map, q), applied(*drawn, q)));
    }
    const auto other = make_map("KPCA6(chi2,p=40)");
    const auto dense = make_map("KPCA6(chi2,p=40)");
    dense->train(x.n(), x.dense().data());
    other->set_landmarks(chosen.get());
    other->set_landmarks(40, chosen.dense().data());
    EXPECT_EQ(other->sparse_landmarks.n(), 0);
    other->train_sparse(x.get());
    EXPECT_TRUE(same_bits(applied(*other, q), applied(*dense, q)));

    const auto hash = make_hash("KLSH64(chi2,p=60,t=50)");
    hash->set_landmarks(chosen.get());
    EXPECT_EQ(hash->t, 39);
    hash->train_sparse(x.get());
    const auto same = make_hash("KLSH64(chi2,p=40,t=39)");
    same->train_sparse(x.get());
    hash->check_identical(*same);

    Rows wrong = chosen;
    wrong.values[0] = -1;
    Rows wide = chosen;
    wide.d = d + 1;
    const KernelPCA of_callback(
            d, 6, std::make_unique<CallbackKernel>(callback()).get());
    KernelPCA cannot = of_callback;
    const auto precomputed = make_map("KPCA6(precomputed)");
    const auto fresh = make_map("KPCA6(chi2,p=40)");
    expect_throws(
            {{[&] { fresh->set_landmarks(wrong.get()); },
              "component " + std::to_string(wrong.indices[0]) + " of vector 0"},
             {[&] { fresh->set_landmarks(wide.get()); }, "301 dimensions"},
             {[&] { fresh->set_landmarks(chosen.get().slice(0, 5)); },
              "at least the rank, 6"},
             {[&] { drawn->set_landmarks(chosen.get()); }, "already trained"},
             {[&] { hash->set_landmarks(chosen.get()); }, "already trained"},
             {[&] { precomputed->set_landmarks(chosen.get()); }, "precomputed"},
             {[&] { cannot.set_landmarks(chosen.get()); },
              "callback may depend on components that are 0"}});
    EXPECT_EQ(fresh->sparse_landmarks.n(), 0);
    EXPECT_EQ(fresh->p, 40);
}

// Kernels that see zeros, and kernel values, need dense rows.
TEST(SparseLandmarks, OfOtherKernelsAreDense) {
    const Rows x = vectors(300, 1), q = vectors(60, 2);
    const CallbackKernel kernel = callback();
    KernelPCA dense(d, 6, &kernel), sparse(d, 6, &kernel);
    dense.p = sparse.p = 40;
    dense.train(x.n(), x.dense().data());
    sparse.train_sparse(x.get());
    EXPECT_EQ(sparse.landmarks, dense.landmarks);
    EXPECT_EQ(sparse.sparse_landmarks.n(), 0);
    EXPECT_TRUE(same_bits(applied(sparse, q), applied(dense, q)));

    KernelPCA wide(10'000'000, 6, &kernel);
    wide.p = 40;
    EXPECT_TRUE(throws(
            [&] { wide.train_sparse(spread(x, wide.d_in, 30'000).get()); },
            "landmarks are dense",
            "40 landmarks of dimension 10000000 take 1.6 GB"));
    EXPECT_FALSE(wide.is_trained);

    Rows values{20, {0}, {}, {}};
    for (int32_t i = 0; i < 20; i++) {
        values.add({{i, 1.0f + float(i)}});
    }
    const auto a = make_map("KPCA4(precomputed)", 20);
    const auto b = make_map("KPCA4(precomputed)", 20);
    a->train(20, values.dense().data());
    b->train_sparse(values.get());
    a->check_identical(*b);
    EXPECT_TRUE(same_bits(
            applied(*b, values), faiss_ext_test::applied(*a, values.dense())));
}

TEST(SparseLandmarks, FilesAndCopies) {
    const Rows x = vectors(300, 1), q = vectors(60, 2);
    std::vector<std::unique_ptr<Transform>> all;
    all.push_back(make_map("KPCA6(jaccard,p=40)"));
    all.push_back(make_map("KPCA6(gaussian,p=40)"));
    all.push_back(make_hash("KLSH64(poly(degree=2),p=40)"));
    for (const auto& made : all) {
        made->train_sparse(x.get());
        const Floats expected = applied(*made, q);
        const Bytes bytes = bytes_of(*made);
        const auto read = from_bytes<faiss::VectorTransform>(bytes);
        const auto& same = dynamic_cast<const Transform&>(*read);
        made->check_identical(same);
        EXPECT_EQ(bytes_of(same), bytes);
        EXPECT_TRUE(same_bits(applied(same, q), expected));
        const auto copy = made->copy_transform();
        EXPECT_TRUE(same_bits(applied(*copy, q), expected));
        for (size_t size = 0; size < bytes.size(); size += 97) {
            const Bytes part(bytes.begin(), bytes.begin() + size);
            EXPECT_TRUE(throws([&] {
                from_bytes<faiss::VectorTransform>(part);
            })) << size;
        }
    }
    // the other form is another map
    const auto dense = make_map("KPCA6(jaccard,p=40)");
    dense->train(x.n(), x.dense().data());
    EXPECT_TRUE(throws([&] { all[0]->check_identical(*dense); }, "differ"));
}

TEST(SparseLandmarks, DamagedFiles) {
    const auto trained = make_map("KPCA6(jaccard,p=40)");
    trained->train_sparse(vectors(300, 1).get());
    const size_t last = trained->sparse_landmarks.indices.size() - 1;
    size_t long_row = 0;
    while (trained->sparse_landmarks.indptr[long_row + 1] -
                   trained->sparse_landmarks.indptr[long_row] <
           2) {
        long_row++;
    }
    const size_t at = trained->sparse_landmarks.indptr[long_row];
    const auto refused = [&](const std::string& named, auto&& change) {
        const auto map = as<KernelPCA>(trained->clone());
        change(*map, map->sparse_landmarks);
        EXPECT_TRUE(throws([&] { reread(*map); }, named));
    };
    using Map = KernelPCA;
    refused("column", [&](Map&, SparseRows& r) { r.indices[last] = d; });
    refused("column", [&](Map&, SparseRows& r) { r.indices[last] = -1; });
    refused("ascend", [&](Map&, SparseRows& r) {
        std::swap(r.indices[at], r.indices[at + 1]);
    });
    refused("ascend",
            [&](Map&, SparseRows& r) { r.indices[at] = r.indices[at + 1]; });
    refused("component", [&](Map&, SparseRows& r) { r.values[at] = 0; });
    refused("landmarks", [&](Map&, SparseRows& r) { r.values[at] = -1; });
    for (float bad : {NAN, HUGE_VALF}) {
        refused("landmark", [&](Map&, SparseRows& r) { r.values[at] = bad; });
    }
    refused("indptr",
            [&](Map&, SparseRows& r) { r.indptr[1] = r.indptr.back() + 1; });
    refused("indptr", [&](Map&, SparseRows& r) { r.indptr[1] = -1; });
    refused("do not match", [&](Map&, SparseRows& r) { r.indptr[0] = 1; });
    refused("landmark", [&](Map&, SparseRows& r) { r.indptr.back()++; });
    refused("landmark", [&](Map&, SparseRows& r) { r.indptr.back() = -1; });
    refused("landmark", [&](Map&, SparseRows& r) { r.values.pop_back(); });
    refused("landmark", [&](Map&, SparseRows& r) { r.indices.pop_back(); });
    refused("inconsistent",
            [&](Map&, SparseRows& r) { r.indptr.insert(r.indptr.begin(), 0); });
    refused("", [&](Map&, SparseRows& r) { r = SparseRows(); });
    refused("inconsistent", [&](Map& m, SparseRows&) { m.p = 39; });
}

namespace {

/// At most 8 bytes of each component and row, the numbers of a projection and
/// of each eigenvalue, and 4 kB for the rest.
void expect_small(const faiss::VectorTransform& transform, size_t nnz, int p) {
    EXPECT_LT(
            bytes_of(transform).size(),
            8 * (nnz + p + 1) + 4 * size_t(p) * (transform.d_out + 16 + 1) +
                    4096);
}

} // namespace

// Columns have no effect but their order. A dense vector would take 8 GB.
TEST(SparseLandmarks, WideVectors) {
    const Rows x = vectors(400, 1), q = vectors(60, 2);
    for (auto [dim, step] :
         {std::pair(10'000'000, 30'000), {widest, 7'000'000}}) {
        const Rows wide_x = spread(x, dim, step), wide_q = spread(q, dim, step);
        for (const std::string parameters :
             {"(jaccard,p=100)",
              "(gaussian,p=100)",
              "(laplacian,p=100)",
              "(expchi2,p=100)",
              "(cosine,p=100,scale=3)"}) {
            SCOPED_TRACE(parameters);
            std::vector<std::unique_ptr<Transform>> narrow, wide;
            narrow.push_back(make_map("KPCA16" + parameters));
            narrow.push_back(make_hash("KLSH64" + parameters));
            wide.push_back(make_map("KPCA16" + parameters, dim));
            wide.push_back(make_hash("KLSH64" + parameters, dim));
            for (size_t i = 0; i < narrow.size(); i++) {
                narrow[i]->train_sparse(x.get());
                wide[i]->train_sparse(wide_x.get());
                const Floats expected = applied(*narrow[i], q);
                EXPECT_TRUE(same_bits(applied(*wide[i], wide_q), expected));
                expect_small(*wide[i], x.indices.size(), 100);
                const auto read = reread(*wide[i]);
                EXPECT_TRUE(same_bits(
                        applied(dynamic_cast<Transform&>(*read), wide_q),
                        expected));
            }
        }
        const std::string text = "KLSH64(js,p=40,rank=auto,scale=auto)";
        const auto narrow = make_hash(text), wide = make_hash(text, dim);
        narrow->train_sparse(x.get());
        wide->train_sparse(wide_x.get());
        EXPECT_EQ(narrow->map.rank, wide->map.rank);
        EXPECT_EQ(narrow->map.scale, wide->map.scale);
        EXPECT_TRUE(same_bits(applied(*narrow, q), applied(*wide, wide_q)));
    }
    EXPECT_LT(peak_bytes(), 2e9);
}

// All candidates are compared exactly.
TEST(SparseLandmarks, WideIndexes) {
    const Rows x = spread(draw(400, d, 6, true, 1), widest, 7'000'000);
    const Rows q = spread(draw(20, d, 6, true, 2), widest, 7'000'000);
    const auto found_in = [&](const faiss::Index& index) {
        return found_by<float>(q.n(), 5, [&](float* distances, idx_t* labels) {
            search(index, q.get(), 5, distances, labels);
        });
    };
    const std::string exact = "KFlat(jaccard,store=sparse)";
    const auto flat = index_factory(widest, exact.c_str());
    add(*flat, x.get());
    const auto expected = found_in(*flat);
    for (const std::string text :
         {"KPCA16(jaccard,p=100),KIVF8(nprobe=8),Refine(",
          "KPCA16(jaccard,p=100),Flat,Refine(",
          "KLSH64(jaccard,p=100),BFlat,Refine("}) {
        SCOPED_TRACE(text);
        const auto index = index_factory(widest, (text + exact + ")").c_str());
        train(*index, x.get());
        add(*index, x.get());
        dynamic_cast<faiss::IndexRefine&>(*index).k_factor = 80;
        expect_same(found_in(*index), expected);
        const auto copy = clone_index(index.get());
        expect_same(found_in(*copy), expected);
    }
    EXPECT_LT(peak_bytes(), 2e9);
}

// Distances have a relative error of 1e-5, and gamma is at most the inverse of
// their square.
TEST(SparseBandwidth, EqualsThatOfDenseVectors) {
    const Rows x = vectors(300, 1);
    for (const std::string text :
         {"gaussian",
          "laplacian",
          "matern(nu=1.5)",
          "expchi2",
          "normalized(gaussian)",
          "exponential(laplacian,scale=2)",
          "gaussian(neighbor=3,sample_queries=40)",
          "laplacian(sample_points=50)"}) {
        SCOPED_TRACE(text);
        const auto gamma_of = [](const Kernel& kernel) {
            const Kernel* inner = &kernel;
            while (const auto* outer =
                           dynamic_cast<const WrappedKernel*>(inner)) {
                inner = outer->kernel.get();
            }
            return dynamic_cast<const BandwidthKernel&>(*inner).gamma;
        };
        const auto dense = kernel_factory(text), sparse = kernel_factory(text),
                   wide = kernel_factory(text);
        dense->train(x.n(), x.dense().data(), d);
        sparse->train_sparse(x.get());
        EXPECT_TRUE(sparse->is_trained);
        const double expected = gamma_of(*dense);
        EXPECT_NEAR(gamma_of(*sparse), expected, 4.1e-5 * expected);
        wide->train_sparse(spread(x, widest, 7'000'000).get());
        EXPECT_EQ(gamma_of(*wide), gamma_of(*sparse));
    }
    // components whose squares are too small or too large for float
    for (float factor : {1e-25f, 1e25f}) {
        Rows scaled = x;
        for (float& v : scaled.values) {
            v *= factor;
        }
        const Floats all = scaled.dense();
        const double expected =
                mean_neighbor_distance(false, x.n(), all.data(), d);
        EXPECT_NEAR(
                mean_neighbor_distance(false, scaled.get()),
                expected,
                2.1e-5 * expected);
    }
}

TEST(SparseBandwidth, Errors) {
    const Rows x = vectors(30, 1);
    Rows same{d, {0}, {}, {}}, empty = same, negative = x;
    for (int i = 0; i < 5; i++) {
        same.add({{3, 1.0f}});
        empty.add({});
    }
    negative.values[0] = -1;
    const auto train = [](const char* text, const SparseVectors& given) {
        return [text, given] { kernel_factory(text)->train_sparse(given); };
    };
    expect_throws(
            {{train("gaussian", x.get().slice(0, 1)), "1 vectors"},
             {train("gaussian", same.get()), "all the same"},
             {train("expchi2", empty.get()), "all the same"},
             {train("expchi2", negative.get()), "of vector 0"}});
    // a kernel without parameters takes anything
    kernel_factory("chi2")->train_sparse(negative.get());
}

// Indexes and schemes with a bandwidth are trained in any dimension.
TEST(SparseBandwidth, WideIndexes) {
    const Rows x = spread(vectors(300, 1), widest, 7'000'000);
    for (const char* text :
         {"KFlat(gaussian,store=sparse)",
          "SIK64(gaussian,proj=generated),BFlat",
          "SIK64(laplacian,proj=generated),BFlat",
          "RFF16(gaussian,proj=generated),Flat"}) {
        SCOPED_TRACE(text);
        const auto index = index_factory(widest, text);
        train(*index, x.get());
        EXPECT_TRUE(index->is_trained);
        add(*index, x.get());
        float distance;
        idx_t label;
        search(*index, x.get().slice(7, 8), 1, &distance, &label);
        EXPECT_EQ(distance, 0);
    }
    EXPECT_LT(peak_bytes(), 2e9);
}
