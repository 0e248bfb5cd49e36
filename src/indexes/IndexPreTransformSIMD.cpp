// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <limits>
#include <typeinfo>
#include <utility>

#include <faiss/IndexFlat.h>
#include <faiss/IndexFlatCodes.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVF.h>

#include <faiss_ext/core/Transform.h>
#include <faiss_ext/maps/HomogeneousKernelMap.h>
#include <faiss_ext/projections/DenseProjection.h>

#include "core/cache_sizes.h"
#include "core/check.h"
#include "core/errors.h"
#include "core/one_blas_thread.h"
#include "core/parallel.h"
#include "core/sample.h"
#include "core/scratch.h"
#include "core/slices.h"
#include "indexes/batch_calls.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/ivf_fields.h"
#include "indexes/ivf_search.h"
#include "indexes/search_params.h"
#include "indexes/supported_calls.h"
#include "maps/homogeneous_sparse.h"
#include "projections/principal_components.h"
#include "simd/projection.h"

namespace faiss_ext {

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() &&
            std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A faiss::LinearTransform with its matrix packed.
struct PackedMatrix {
    const faiss::LinearTransform* transform;
    DenseProjection matrix;
    std::vector<float> bias; ///< empty: none
    std::vector<float> A;    ///< to be compared with; else empty

    PackedMatrix(const faiss::LinearTransform& t, bool keeps_matrix)
            : transform(&t),
              matrix(t.d_in, t.d_out, t.A.data()),
              bias(bias_of(t)) {
        if (keeps_matrix) {
            A = t.A;
        }
    }

    static bool can_pack(const faiss::LinearTransform& t) {
        return t.is_trained && t.d_in > 0 && t.d_out > 0 &&
                t.A.size() == size_t(t.d_in) * t.d_out &&
                (!t.have_bias || t.b.size() == size_t(t.d_out));
    }

    static std::vector<float> bias_of(const faiss::LinearTransform& t) {
        return t.have_bias ? t.b : std::vector<float>();
    }

    /// @param compares  whether to compare all numbers, or only sizes
    bool is_current(const faiss::LinearTransform& t, bool compares) const {
        return &t == transform && t.d_in == matrix.d_in &&
                t.d_out == matrix.d_out && can_pack(t) &&
                (!compares ||
                 (same_bits(t.A, A) && same_bits(bias_of(t), bias)));
    }

    void apply(size_t n, const float* x, float* y) const {
        matrix.apply(n, x, y);
        add_bias(n, y);
    }

    void apply_sparse(const SparseVectors& x, float* y) const {
        matrix.apply_sparse(x, y);
        add_bias(x.n, y);
    }

   private:
    void add_bias(size_t n, float* y) const {
        for (size_t i = 0; i < (bias.empty() ? 0 : n); i++) {
            for (int j = 0; j < matrix.d_out; j++) {
                y[i * matrix.d_out + j] += bias[j];
            }
        }
    }
};

const faiss::LinearTransform* as_matrix(const faiss::VectorTransform* vt) {
    const auto* linear = dynamic_cast<const faiss::LinearTransform*>(vt);
    return linear && PackedMatrix::can_pack(*linear) ? linear : nullptr;
}

const Transform* as_ours(const faiss::VectorTransform* vt) {
    return dynamic_cast<const Transform*>(vt);
}

} // namespace

/// The packed matrices of a chain; null if a step is not a matrix.
struct PackedChain {
    std::vector<std::unique_ptr<PackedMatrix>> steps;

    PackedChain(
            const std::vector<faiss::VectorTransform*>& chain,
            bool keeps_matrices) {
        for (const auto* vt : chain) {
            const auto* linear = as_matrix(vt);
            steps.push_back(
                    linear ? std::make_unique<PackedMatrix>(
                                     *linear, keeps_matrices)
                           : nullptr);
        }
    }

    bool is_current(
            const std::vector<faiss::VectorTransform*>& chain,
            bool compares) const {
        bool current = steps.size() == chain.size();
        for (size_t i = 0; current && i < steps.size(); i++) {
            const auto* linear = as_matrix(chain[i]);
            current = bool(linear) == bool(steps[i]) &&
                    (!linear || steps[i]->is_current(*linear, compares));
        }
        return current;
    }
};

namespace {

using Chain = std::vector<faiss::VectorTransform*>;

/// Throws unless each transformation, and the index at the end, takes the
/// dimension that the one before it returns. Users may set all of them.
void check_dimensions(const IndexPreTransformSIMD& index, const char* where) {
    int dimension = index.d;
    const auto check = [&](const char* part, const void* at, int expected) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                at && expected == dimension,
                "IndexPreTransformSIMD::%s: %s takes %d dimensions, but gets vectors of %d",
                where,
                at ? part : "no index or transformation",
                expected,
                dimension);
    };
    for (const auto* vt : index.chain) {
        check("a transformation", vt, vt ? vt->d_in : 0);
        dimension = vt->d_out;
    }
    check("an index", index.index, index.index ? index.index->d : 0);
}

/// Returns the position of the last transform of this library from `begin` up
/// to `end`, or `begin`. From there on vectors are transformed block by block.
/// The transforms before it get the whole batch, so that error messages number
/// vectors in the batch.
size_t first_in_blocks(const Chain& chain, size_t begin, size_t end) {
    size_t first = begin;
    for (size_t i = begin; i < end; i++) {
        if (as_ours(chain[i])) {
            first = i;
        }
    }
    return first;
}

/// Returns how many of n vectors to transform together. At their longest they
/// fill at most half a cache.
idx_t block_of(const Chain& chain, size_t first, size_t count, idx_t n) {
    constexpr idx_t multiple = 16;
    idx_t longest = 1;
    for (size_t i = first; i < count; i++) {
        longest = std::max<idx_t>(longest, chain[i]->d_out);
    }
    const idx_t block = idx_t(cache::half_l2) / longest / multiple * multiple;
    const Transform* ours = as_ours(chain[first]);
    return std::max(
            ours ? std::min(block, ours->rows_per_block(n)) : block, multiple);
}

/// Not for a class derived from it, which may map otherwise.
const HomogeneousKernelMap* as_homogeneous(const faiss::VectorTransform* vt) {
    return typeid(*vt) == typeid(HomogeneousKernelMap)
            ? dynamic_cast<const HomogeneousKernelMap*>(vt)
            : nullptr;
}

/// Applies a map and then a matrix to the components of a vector that are not
/// 0. The results are the same as of all components, bit for bit. Returns
/// false, and does nothing, if too few components are 0 for this to pay.
bool apply_to_components(
        const HomogeneousKernelMap& map,
        const PackedMatrix& matrix,
        const float* x,
        float* y) {
    const size_t d = map.d_in;
    thread_local SparseRows some; // room for the next vector
    some.values.resize(std::max(d, some.values.size()));
    some.indices.resize(some.values.size());
    const size_t count =
            simd::take_nonzero(d, x, some.indices.data(), some.values.data());
    if (count > d / 4 * 3) {
        return false;
    }
    some.d = d;
    some.indptr = {0, int64_t(count)};
    matrix.apply_sparse(map_to_sparse(map, some.get()).get(), y);
    return true;
}

/// Applies chain[first .. count) to a block.
void apply_block(
        const Chain& chain,
        const PackedChain& packed,
        size_t first,
        size_t count,
        idx_t n,
        const float* x,
        float* xt) {
    size_t longest = 0;
    for (size_t i = first; i < count; i++) {
        longest = std::max<size_t>(longest, chain[i]->d_out);
    }
    const Scratch even(n * longest), odd(n * longest);
    const auto room_after = [&](size_t i) {
        return i + 1 == count ? xt : i % 2 ? odd.get() : even.get();
    };
    const float* from = x;
    for (size_t i = first; i < count; i++) {
        float* to = room_after(i);
        const bool is_before_matrix =
                i + 1 < count && packed.steps[i + 1] != nullptr;
        const auto* map =
                n == 1 && is_before_matrix ? as_homogeneous(chain[i]) : nullptr;
        if (map &&
            apply_to_components(
                    *map, *packed.steps[i + 1], from, room_after(i + 1))) {
            i++; // the matrix, too
            to = room_after(i);
        } else if (packed.steps[i]) {
            packed.steps[i]->apply(n, from, to);
        } else if (const Transform* ours = as_ours(chain[i])) {
            ours->map(n, from, to); // first in the block: it was checked
        } else {
            chain[i]->apply_noalloc(n, from, to);
        }
        from = to;
    }
}

/// Throws for a PCA that no vectors can train.
void check_pca(const faiss::VectorTransform& transform) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !dynamic_cast<const faiss::PCAMatrix*>(&transform) ||
                    transform.d_out <= transform.d_in,
            "IndexPreTransformSIMD::train: the PCA has %d output dimensions, expected at most %d, the number of input dimensions",
            transform.d_out,
            transform.d_in);
}

void train_pca(faiss::PCAMatrix& pca, idx_t n, const float* x) {
    const idx_t d = pca.d_in;
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= pca.d_out,
            "IndexPreTransformSIMD::train: %" PRId64
            " vectors, expected at least %d, one for each output dimension of the PCA",
            int64_t(n),
            pca.d_out);
    FAISS_EXT_THROW_IF_NOT_MSG(
            all_finite(n * d, x),
            "IndexPreTransformSIMD::train: the vectors that reach the PCA are not finite");
    auto found = principal_components(n, x, d, pca.d_out, pca.have_bias);
    faiss::PCAMatrix trained = pca;
    trained.mean = std::move(found.mean);
    trained.eigenvalues = std::move(found.values);
    trained.PCAMat = std::move(found.vectors);
    {
        const OneBlasThread one_thread;
        trained.prepare_Ab();
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            all_finite(trained.A.size(), trained.A.data()),
            "IndexPreTransformSIMD::train: the whitening PCA keeps more dimensions than the vectors vary in; keep fewer");
    // FAISS's class has no move assignment, and a copy may fail half-way
    pca.mean = std::move(trained.mean);
    pca.eigenvalues = std::move(trained.eigenvalues);
    pca.PCAMat = std::move(trained.PCAMat);
    pca.A = std::move(trained.A);
    pca.b = std::move(trained.b);
    pca.is_orthonormal = trained.is_orthonormal;
    pca.is_trained = true;
}

/// Restores a transformation that was not trained.
struct Untrained {
    faiss::VectorTransform* const transform;
    std::unique_ptr<Transform> before; ///< if it is one of ours
    std::vector<float> A,
            b; ///< of FAISS's matrices; OPQ starts from them

    explicit Untrained(faiss::VectorTransform* transform)
            : transform(transform) {
        if (const Transform* ours = as_ours(transform)) {
            before = ours->copy_transform();
        } else if (auto* matrix = as_matrix()) {
            A = matrix->A;
            b = matrix->b;
        }
    }

    faiss::LinearTransform* as_matrix() const {
        return dynamic_cast<faiss::LinearTransform*>(transform);
    }

    void restore() {
        if (before) {
            dynamic_cast<Transform&>(*transform).assign_transform(*before);
            return;
        }
        transform->is_trained = false;
        if (auto* matrix = as_matrix()) {
            matrix->A.swap(A);
            matrix->b.swap(b);
        }
    }
};

/// Returns the number of vectors that train_pca needs.
idx_t pca_sample(const faiss::PCAMatrix& pca) {
    const idx_t d = pca.d_in;
    return std::min<idx_t>(
            std::max<idx_t>(20000, 10 * d), pca.max_points_per_d * d);
}

/// Throws unless two chains are equal.
void check_same_chain(
        const std::vector<faiss::VectorTransform*>& chain,
        const std::vector<faiss::VectorTransform*>& other) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            chain.size() == other.size(),
            "cannot merge: one index has %zu transformations, the other %zu",
            chain.size(),
            other.size());
    for (size_t i = 0; i < chain.size(); i++) {
        bool are_identical = true;
        try {
            chain[i]->check_identical(*other[i]);
        } catch (const faiss::FaissException&) {
            are_identical = false;
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                are_identical,
                "cannot merge: the transformations differ at position %zu; train one index, and make the others as copies of it",
                i);
    }
}

/// Throws if a transformation of FAISS cannot be inverted.
void check_inverses(
        const std::vector<faiss::VectorTransform*>& chain,
        const char* where) {
    for (const faiss::VectorTransform* transform : chain) {
        check_inverse_supported(*transform, where);
    }
}

faiss::Index* not_null(faiss::Index* index) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            index, "IndexPreTransformSIMD: the index is null");
    return index;
}

/// Returns the search parameters for the index behind the transformations.
const faiss::SearchParameters* params_behind(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where) {
    using Params = faiss::SearchParametersPreTransform;
    const auto* pre = dynamic_cast<const Params*>(params);
    // FAISS passes on only the index_params of the inner ones
    for (const auto* inner = pre; inner;
         inner = dynamic_cast<const Params*>(inner->index_params)) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                !inner->sel,
                "%s: a selector in SearchParametersPreTransform has no effect; give it in index_params",
                where);
    }
    params = pre ? pre->index_params : params;
    check_params_for(index, params, where);
    check_params_supported(index, params, where);
    return params;
}

/// The search parameters for the index behind the transformations.
struct ParamsBehind {
    std::unique_ptr<faiss::SearchParameters> own;
    const faiss::SearchParameters* params;

    ParamsBehind(
            const faiss::Index& index,
            const faiss::SearchParameters* given,
            const char* where)
            : params(params_behind(index, given, where)) {
        // FAISS's lists and graphs take no plain parameters
        own = params_of_its_class(index, params);
        params = own ? own.get() : params;
    }

    /// Whether the caller leaves it to the index how many lists to visit.
    bool chooses_lists() const {
        const auto* lists =
                dynamic_cast<const faiss::SearchParametersIVF*>(own.get());
        return lists && lists->max_codes == 0;
    }
};

void check_positions(const faiss::Index& index, idx_t i0, idx_t ni) {
    check_all_counts(index);
    if (!keeps_ids(index)) {
        check_ids(i0, ni, index.ntotal, "IndexPreTransformSIMD::reconstruct");
    }
}

/// Finds the vector with an id in lists without a direct map.
void find_in_lists(const faiss::IndexIVF& lists, idx_t key, float* recons) {
    for (size_t list = 0; list < lists.nlist; list++) {
        faiss::InvertedLists::ScopedIds ids(invlists_of(lists), list);
        const auto* bytes = reinterpret_cast<const uint8_t*>(ids.get());
        const size_t size = invlists_of(lists)->list_size(list);
        for (size_t offset = 0; offset < size; offset++) {
            idx_t id; // in files ids may be unaligned
            std::memcpy(&id, bytes + offset * sizeof(id), sizeof(id));
            if (id == key) {
                lists.reconstruct_from_offset(list, offset, recons);
                return;
            }
        }
    }
    FAISS_EXT_THROW_FMT(
            "IndexPreTransformSIMD::reconstruct: there is no vector with id %" PRId64,
            int64_t(key));
}

} // namespace

IndexPreTransformSIMD::IndexPreTransformSIMD(faiss::Index* index)
        : IndexPreTransform(not_null(index)) {}

IndexPreTransformSIMD::IndexPreTransformSIMD() = default;
IndexPreTransformSIMD::~IndexPreTransformSIMD() = default;

std::shared_ptr<const PackedChain> IndexPreTransformSIMD::packed_chain() const {
    const std::lock_guard lock(mutex);
    if (!packed || !packed->is_current(chain, verify_chain)) {
        packed = std::make_shared<const PackedChain>(chain, verify_chain);
    }
    return packed;
}

void IndexPreTransformSIMD::prepend_transform(
        faiss::VectorTransform* transform) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            transform,
            "IndexPreTransformSIMD::prepend_transform: the transformation is null");
    verify_chain = true;
    IndexPreTransform::prepend_transform(transform);
}

void IndexPreTransformSIMD::check_compatible_for_merge(
        const faiss::Index& other) const {
    check_not_itself(&other == this);
    check_before_merge(*this, other);
    check_counts_with(*this, index);
    check_counts(other);
    const auto* source = dynamic_cast<const IndexPreTransform*>(&other);
    FAISS_EXT_THROW_IF_NOT_FMT(
            source,
            "cannot merge: expected another index with the same transformations, got one of class %s",
            AnyIndex(other).class_name().c_str());
    check_same_chain(chain, source->chain);
    check_merge(*index, *source->index);
}

void IndexPreTransformSIMD::merge_from(faiss::Index& other, idx_t add_id) {
    check_compatible_for_merge(other);
    auto* source = dynamic_cast<IndexPreTransform*>(&other);
    if (add_id != 0 || !dynamic_cast<const faiss::IndexFlat*>(index)) {
        check_no_blocks(*this, "IndexPreTransformSIMD::merge_from");
    }
    merge_and_empty(*index, *source->index, add_id);
    ntotal = index->ntotal;
    source->ntotal = source->index->ntotal;
}

std::vector<float> IndexPreTransformSIMD::transformed(
        idx_t n,
        const float* x,
        size_t count) const {
    if (count > 0) {
        check_faiss_input(*chain[0], n, x, "IndexPreTransformSIMD::apply");
    }
    return transformed(n, x, 0, count);
}

std::vector<float> IndexPreTransformSIMD::transformed(
        const SparseVectors& x,
        size_t count) const {
    constexpr idx_t most_floats = 1 << 24;
    const auto& first = dynamic_cast<const Transform&>(*chain[0]);
    const idx_t d_to = chain[count - 1]->d_out;
    std::vector<float> xt(x.n * d_to);
    const idx_t block = std::max<idx_t>(1, most_floats / first.d_out);
    for_batches(x.n, block, [&](idx_t begin, idx_t end) {
        std::vector<float> mapped((end - begin) * first.d_out);
        with_numbers_from(begin, [&] {
            first.apply_sparse(x.slice(begin, end), mapped.data());
        });
        if (count > 1) {
            mapped = transformed(end - begin, mapped.data(), 1, count);
        }
        std::copy(mapped.begin(), mapped.end(), &xt[begin * d_to]);
    });
    return xt;
}

std::vector<float> IndexPreTransformSIMD::transformed(
        idx_t n,
        const float* x,
        size_t start,
        size_t count) const {
    std::vector<float> whole;
    const size_t first = first_in_blocks(chain, start, count);
    for (size_t i = start; i < first; i++) {
        std::vector<float> next(n * chain[i]->d_out);
        chain[i]->apply_noalloc(n, i == start ? x : whole.data(), next.data());
        whole = std::move(next);
    }
    const float* from = first == start ? x : whole.data();
    if (count == start) {
        return std::vector<float>(x, x + n * d);
    }
    if (const Transform* ours = as_ours(chain[first])) {
        if (!ours->is_trained) { // describing it takes microseconds
            check_trained(false, ours->description().c_str());
        }
        ours->check_input(n, from, "IndexPreTransformSIMD");
    }
    const auto matrices = packed_chain();
    const size_t d_from = chain[first]->d_in, d_to = chain[count - 1]->d_out;
    std::vector<float> xt(n * d_to);
    parallel_blocks(
            "mapping",
            n,
            block_of(chain, first, count, n),
            [&](idx_t begin, idx_t end) {
                apply_block(
                        chain,
                        *matrices,
                        first,
                        count,
                        end - begin,
                        from + begin * d_from,
                        &xt[begin * d_to]);
            });
    return xt;
}

const float* IndexPreTransformSIMD::transformed_for_index(
        const VectorBatch& x,
        const char* where,
        std::vector<float>& room) const {
    check_dimensions(*this, where);
    std::string behind = std::string("IndexPreTransformSIMD::") + where;
    const float* xt = x.dense;
    if (!chain.empty()) {
        room = x.is_sparse ? transformed(x.sparse, chain.size())
                           : transformed(x.n, x.dense, chain.size());
        xt = room.data();
        behind += ", transformed";
    }
    check_faiss_input(*index, x.n, xt, behind.c_str());
    return xt;
}

bool IndexPreTransformSIMD::takes_sparse() const {
    return !chain.empty() && as_ours(chain[0]);
}

/// Checks all vectors, as some transforms train on a sample.
void IndexPreTransformSIMD::check_input(const VectorBatch& x) const {
    constexpr const char* where = "IndexPreTransformSIMD::train";
    const Transform* first = chain.empty() ? nullptr : as_ours(chain[0]);
    if (x.is_sparse) {
        first->check_sparse_input(CanonicalVectors(x.sparse, "train"), "train");
    } else if (first) {
        first->check_input(x.n, x.dense, "train");
    } else if (!chain.empty()) {
        check_faiss_input(*chain[0], x.n, x.dense, where);
    }
}

void IndexPreTransformSIMD::train(idx_t n, const float* x) {
    train_batch({n, x, d});
}

void IndexPreTransformSIMD::train_batch(const VectorBatch& x) {
    constexpr uint64_t seed = 1234;
    const idx_t n = x.n;
    check_training(*index, n, "IndexPreTransformSIMD::train");
    check_input(x);
    const auto before = [&](const VectorBatch& y, size_t i) {
        return y.is_sparse ? transformed(y.sparse, i)
                           : transformed(y.n, y.dense, i);
    };
    std::vector<Untrained> untrained;
    for (faiss::VectorTransform* transform : chain) {
        if (!transform->is_trained) {
            check_pca(*transform);
            untrained.emplace_back(transform);
        }
    }
    try {
        for (size_t i = 0; i < chain.size(); i++) {
            if (chain[i]->is_trained) {
                continue;
            }
            if (auto* pca = dynamic_cast<faiss::PCAMatrix*>(chain[i])) {
                const auto ids = sample_ids(n, pca_sample(*pca), seed);
                const GatheredVectors sample(x, ids);
                const auto number = [&](idx_t j) {
                    return size_t(j) < ids.size() ? ids[j] : j;
                };
                rethrow_with_index(number, [&] {
                    train_pca(*pca, ids.size(), before(sample.get(), i).data());
                });
            } else if (i > 0) {
                const std::vector<float> xt = before(x, i);
                check_faiss_input(
                        *chain[i], n, xt.data(), "train, transformed");
                chain[i]->train(n, xt.data());
            } else if (x.is_sparse) {
                dynamic_cast<Transform&>(*chain[0]).train_sparse(x.sparse);
            } else {
                chain[0]->train(n, x.dense);
            }
            forget_packed();
        }
        if (!index->is_trained) {
            std::vector<float> room;
            index->train(n, transformed_for_index(x, "train", room));
        }
    } catch (...) {
        for (Untrained& u : untrained) {
            u.restore();
        }
        forget_packed();
        throw;
    }
    is_trained = true;
}

void IndexPreTransformSIMD::forget_packed() {
    const std::lock_guard lock(mutex);
    packed = nullptr;
}

void IndexPreTransformSIMD::add(idx_t n, const float* x) {
    add_batch({n, x, d});
}

void IndexPreTransformSIMD::add_batch(const VectorBatch& x) {
    check_counts_with(*this, index);
    check_trained(is_trained, "IndexPreTransformSIMD::add");
    std::vector<float> room;
    const float* xt = transformed_for_index(x, "add", room);
    check_addition(*index, x.n, "IndexPreTransformSIMD::add");
    if (x.n > 0) { // FAISS's fast scan fails if n is 0
        index->add(x.n, xt);
    }
    ntotal = index->ntotal;
}

void IndexPreTransformSIMD::add_with_ids(
        idx_t n,
        const float* x,
        const idx_t* xids) {
    check_trained(is_trained, "IndexPreTransformSIMD::add_with_ids");
    check_new_ids(n, xids, "IndexPreTransformSIMD::add_with_ids");
    check_counts_with(*this, index);
    check_addition(*index, n, "IndexPreTransformSIMD::add_with_ids");
    std::vector<float> room;
    index->add_with_ids(
            n, transformed_for_index({n, x, d}, "add_with_ids", room), xids);
    ntotal = index->ntotal;
}

void IndexPreTransformSIMD::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search_batch({n, x, d}, k, distances, labels, params);
}

void IndexPreTransformSIMD::search_batch(
        const VectorBatch& x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const idx_t n = x.n;
    check_trained(is_trained, "IndexPreTransformSIMD::search");
    check_counts_with(*this, index);
    check_k(k, "IndexPreTransformSIMD::search");
    const ParamsBehind behind(*index, params, "IndexPreTransformSIMD::search");
    std::vector<float> room;
    const float* xt = transformed_for_index(x, "search", room);
    if (index->ntotal == 0) { // FAISS's flat indexes do not write results
        constexpr float worst = std::numeric_limits<float>::max();
        std::fill_n(
                distances,
                n * k,
                metric_type == faiss::METRIC_INNER_PRODUCT ? -worst : worst);
        std::fill_n(labels, n * k, -1);
        return;
    }
    const faiss::IDSelector* sel = selector_inside(behind.params);
    if (sel && behind.chooses_lists()) {
        const auto& lists = dynamic_cast<const faiss::IndexIVF&>(*index);
        search_selected(lists, *sel, n, xt, k, distances, labels);
        return;
    }
    index->search(n, xt, k, distances, labels, behind.params);
    if (sel && dynamic_cast<const faiss::IndexFlat*>(index)) {
        // for k = 1, FAISS 1.7.3 returns a vector if none is selected
        for (idx_t i = 0; i < n * k; i++) {
            labels[i] = labels[i] >= 0 && sel->is_member(labels[i]) ? labels[i]
                                                                    : -1;
        }
    }
}

void IndexPreTransformSIMD::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    range_search_batch({n, x, d}, radius, result, params);
}

void IndexPreTransformSIMD::range_search_batch(
        const VectorBatch& x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    check_trained(is_trained, "IndexPreTransformSIMD::range_search");
    check_counts_with(*this, index);
    const ParamsBehind behind(
            *index, params, "IndexPreTransformSIMD::range_search");
    check_range_search_supported(*index, "IndexPreTransformSIMD::range_search");
    std::vector<float> room;
    const float* xt = transformed_for_index(x, "range_search", room);
    index->range_search(x.n, xt, radius, result, behind.params);
}

void IndexPreTransformSIMD::search_and_reconstruct(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) const {
    check_all_counts(*this);
    const ParamsBehind behind(
            *index, params, "IndexPreTransformSIMD::search_and_reconstruct");
    check_decodes(*this, "IndexPreTransformSIMD::search_and_reconstruct");
    check_inverses(chain, "IndexPreTransformSIMD::search_and_reconstruct");
    if (!takes_params_with_vectors(
                *index,
                behind.params,
                "IndexPreTransformSIMD::search_and_reconstruct")) {
        IndexPreTransformSIMD::search(n, x, k, distances, labels, params);
        for (idx_t i = 0; i < n * k; i++) {
            float* to = recons + i * d;
            if (labels[i] == -1) { // as FAISS does
                std::fill_n(to, d, std::numeric_limits<float>::quiet_NaN());
            } else {
                IndexPreTransformSIMD::reconstruct(labels[i], to);
            }
        }
        return;
    }
    IndexPreTransform::search_and_reconstruct(
            n, x, k, distances, labels, recons, behind.params);
}

size_t IndexPreTransformSIMD::remove_ids(const faiss::IDSelector& sel) {
    check_removal(*this, sel, "IndexPreTransformSIMD::remove_ids");
    check_counts_with(*this, index);
    return IndexPreTransform::remove_ids(sel);
}

faiss::DistanceComputer* IndexPreTransformSIMD::get_distance_computer() const {
    check_all_counts(*this);
    return IndexPreTransform::get_distance_computer();
}

void IndexPreTransformSIMD::reconstruct(idx_t key, float* recons) const {
    check_counts_with(*this, index);
    check_positions(*index, key, 1);
    check_inverses(chain, "IndexPreTransformSIMD::reconstruct");
    check_decodes(*this, "IndexPreTransformSIMD::reconstruct");
    const auto* lists = dynamic_cast<const faiss::IndexIVF*>(index);
    if (lists && direct_map_of(*lists).no()) {
        if (chain.empty()) {
            find_in_lists(*lists, key, recons);
            return;
        }
        std::vector<float> inside(index->d);
        find_in_lists(*lists, key, inside.data());
        reverse_chain(1, inside.data(), recons);
    } else {
        IndexPreTransform::reconstruct(key, recons);
    }
}

void IndexPreTransformSIMD::reconstruct_n(idx_t i0, idx_t ni, float* recons)
        const {
    check_counts_with(*this, index);
    check_positions(*index, i0, ni);
    check_inverses(chain, "IndexPreTransformSIMD::reconstruct_n");
    check_decodes(*this, "IndexPreTransformSIMD::reconstruct_n");
    IndexPreTransform::reconstruct_n(i0, ni, recons);
}

void IndexPreTransformSIMD::sa_decode(idx_t n, const uint8_t* bytes, float* x)
        const {
    check_decodes(*this, "IndexPreTransformSIMD::sa_decode");
    IndexPreTransform::sa_decode(n, bytes, x);
}

} // namespace faiss_ext
