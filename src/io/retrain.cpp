// SPDX-License-Identifier: MIT
#include <faiss_ext/io/retrain.h>

#include <algorithm>
#include <cinttypes>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>

#include <faiss_ext/hashes/FrequencyHash.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/indexes/IndexConcurrent.h>
#include <faiss_ext/indexes/IndexFileKernel.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexSparseKernel.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/indexes/index_tree.h>
#include <faiss_ext/indexes/sparse_calls.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/CallbackKernel.h>
#include <faiss_ext/maps/FrequencyMap.h>

#include "core/errors.h"
#include "core/field_strings.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "core/sample.h"
#include "indexes/batch_calls.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/index_steps.h"
#include "indexes/ivf_fields.h"

namespace faiss_ext {

namespace {

using faiss::Index;

/// The vectors that a new index is trained on.
struct Training {
    std::optional<VectorBatch> given;
    // of a sample of the stored vectors
    idx_t most = 0;
    int64_t seed = 0;
};

// The stored vectors.

/// FAISS's lists of whole vectors, or null for another index.
const faiss::IndexIVFFlat* flat_lists(const Index* index) {
    return index && typeid(*index) == typeid(faiss::IndexIVFFlat)
            ? dynamic_cast<const faiss::IndexIVFFlat*>(index)
            : nullptr;
}

/// The part of an index that keeps its vectors, or null.
const Index* part_with_vectors(const Index* index) {
    if (const auto* refine = dynamic_cast<const faiss::IndexRefine*>(index)) {
        return part_with_vectors(refine->refine_index);
    }
    if (const auto* graph = dynamic_cast<const faiss::IndexHNSW*>(index)) {
        return part_with_vectors(graph->storage) ? index : nullptr;
    }
    const auto* behind = dynamic_cast<const faiss::IndexPreTransform*>(index);
    if (behind && behind->chain.empty()) {
        return part_with_vectors(behind->index);
    }
    const bool has_vectors = dynamic_cast<const IndexFlatKernel*>(index) ||
            dynamic_cast<const faiss::IndexFlat*>(index) || flat_lists(index);
    return has_vectors && !dynamic_cast<const IndexFileKernel*>(index)
            ? index
            : nullptr;
}

/// The entries of FAISS's lists by ascending id: id and place.
std::vector<std::pair<idx_t, idx_t>> entries_of(
        const faiss::IndexIVFFlat& lists) {
    const faiss::InvertedLists& all = *invlists_of(lists);
    std::vector<std::pair<idx_t, idx_t>> entries;
    for (size_t list = 0; list < all.nlist; list++) {
        const faiss::InvertedLists::ScopedIds ids(&all, list);
        for (size_t i = 0; i < all.list_size(list); i++) {
            entries.emplace_back(ids[i], idx_t(faiss::lo_build(list, i)));
        }
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            idx_t(entries.size()) == lists.ntotal,
            "retrained: the lists hold %zu vectors, and ntotal is %" PRId64
            "; expected the same number",
            entries.size(),
            int64_t(lists.ntotal));
    std::sort(entries.begin(), entries.end());
    return entries;
}

/// Reads the vectors of an index by their positions. The positions in FAISS's
/// lists are those of the ascending ids.
struct StoredVectors {
    const Index& index;
    std::vector<idx_t> ids; ///< of lists, unless they are the positions

    explicit StoredVectors(const Index& index)
            : index(index),
              sparse(dynamic_cast<const IndexSparseKernel*>(&index)),
              lists(flat_lists(&index)),
              inside(as_index_class(index)) {
        if (!lists) {
            return;
        }
        bool are_positions = true;
        for (const auto& [id, place] : entries_of(*lists)) {
            are_positions = are_positions && id == idx_t(ids.size());
            ids.push_back(id);
            places.push_back(place);
        }
        if (are_positions) {
            ids.clear();
        }
    }

    bool are_sparse() const {
        return sparse;
    }

    VectorSample get(const std::vector<idx_t>& positions, bool as_sparse)
            const {
        VectorSample x;
        x.n = idx_t(positions.size());
        x.d = index.d;
        x.is_sparse = as_sparse;
        if (!as_sparse) {
            x.dense.resize(size_t(x.n) * x.d);
            for (idx_t i = 0; i < x.n; i++) {
                check_interrupt();
                reconstruct(positions[i], x.dense.data() + i * x.d);
            }
            return x;
        }
        x.sparse.d = x.d;
        x.sparse.indptr.push_back(0);
        for (const idx_t position : positions) {
            const size_t begin = x.sparse.values.size();
            const size_t end = begin + sparse->num_components(position);
            x.sparse.indices.resize(end);
            x.sparse.values.resize(end);
            sparse->reconstruct(
                    position,
                    x.sparse.indices.data() + begin,
                    x.sparse.values.data() + begin);
            x.sparse.indptr.push_back(int64_t(end));
        }
        return x;
    }

    /// Calls f with the vectors in blocks of up to 65,536 in 64 MB, which are
    /// sparse if `as_sparse`.
    template <class F>
    void for_blocks(bool as_sparse, F&& f) const {
        constexpr idx_t most_rows = 65536, most_floats = 1 << 24;
        const idx_t n = index.ntotal;
        const idx_t size = as_sparse
                ? most_rows
                : std::clamp<idx_t>(most_floats / index.d, 1, most_rows);
        std::optional<Progress> progress; // otherwise blocks report theirs
        if (n > size) {
            progress.emplace("encoding", n);
        }
        for (idx_t begin = 0; begin < n; begin += size) {
            check_interrupt();
            const idx_t end = std::min(n, begin + size);
            std::vector<idx_t> positions(end - begin);
            std::iota(positions.begin(), positions.end(), begin);
            f(get(positions, as_sparse).get(), begin);
            if (progress) {
                progress->at(end);
            }
        }
    }

   private:
    const IndexSparseKernel* sparse;
    const faiss::IndexIVFFlat* lists;
    std::vector<idx_t> places; ///< in the lists
    InsideStep<Index> inside;  ///< calls mean positions

    void reconstruct(idx_t position, float* x) const {
        if (lists) {
            const idx_t place = places[position];
            lists->reconstruct_from_offset(
                    faiss::lo_listno(place), faiss::lo_offset(place), x);
        } else {
            index.reconstruct(position, x);
        }
    }

    static const void* as_index_class(const Index& index) {
        const auto* own = dynamic_cast<const HasIds<Index>*>(&index);
        return own ? own->as_index_class() : &index;
    }
};

[[noreturn]] void throw_no_vectors(const Index& index) {
    const auto* refine = dynamic_cast<const faiss::IndexRefine*>(&index);
    const auto* file = dynamic_cast<const IndexFileKernel*>(
            refine ? refine->refine_index : &index);
    throw UnsupportedError(
            file ? "retrained: the index reads its vectors from the file " +
                            file->path + "; build it again from that file"
                 : "retrained: " + AnyIndex(index).class_name() +
                            " does not keep its vectors in Refine(KFlat(...)) or RFlat, and is no KFlat, Flat, IVF of Flat or graph over KFlat or Flat; train a new index and add the vectors to it");
}

/// Adds the vectors to an index, which encodes them.
void add_encoded(const StoredVectors& vectors, Index& to) {
    const bool as_sparse = vectors.are_sparse() && takes_sparse(to);
    vectors.for_blocks(as_sparse, [&](const VectorBatch& x, idx_t begin) {
        if (vectors.ids.empty()) {
            faiss_ext::add(to, x);
        } else {
            to.add_with_ids(x.n, x.dense, vectors.ids.data() + begin);
        }
    });
}

/// Adds the vectors to an empty index of the same class as they are stored.
void add_stored(const StoredVectors& vectors, Index& to) {
    const auto* from = dynamic_cast<const IndexFlatKernel*>(&vectors.index);
    if (from && !vectors.are_sparse()) {
        const IndexFlatKernel::Rows rows = from->rows("retrained");
        dynamic_cast<IndexFlatKernel&>(to).add_sa_codes(
                from->ntotal, rows.sequential, nullptr);
    } else { // floats
        add_encoded(vectors, to);
    }
}

void add_all(const StoredVectors& vectors, Index& to) {
    if (auto* refine = dynamic_cast<faiss::IndexRefine*>(&to)) {
        add_encoded(vectors, *refine->base_index);
        add_stored(vectors, *refine->refine_index);
        refine->ntotal = vectors.index.ntotal;
    } else if (dynamic_cast<const faiss::IndexHNSW*>(&to)) {
        add_encoded(vectors, to);
    } else {
        add_stored(vectors, to);
    }
}

// The new index.

/// The string of an index before its training, with stand-ins for given
/// frequencies and functions.
std::string string_before_training(const Index& index) {
    const StringsBeforeTraining before;
    try {
        return index_string(index);
    } catch (const faiss::FaissException& e) {
        throw UnsupportedError(
                "retrained: " + message_of(e) +
                "; train a new index and add the vectors to it");
    }
}

/// A copy of a transformation with given frequencies; null for others.
std::unique_ptr<Transform> copy_of_given(const faiss::VectorTransform* vt) {
    const bool is_given = dynamic_cast<const FrequencyMap*>(vt) ||
            dynamic_cast<const FrequencyHash*>(vt);
    return is_given ? dynamic_cast<const Transform*>(vt)->copy_transform()
                    : nullptr;
}

/// Replaces the drawn frequencies among the transformations of an index.
/// @param all  transformations of another index in the same places
void take_frequencies(
        const AnyIndex& index,
        const faiss::VectorTransform* const* all) {
    const auto hash_of_given = [&] {
        return std::unique_ptr<KernelHash>(
                dynamic_cast<KernelHash*>(copy_of_given(*all).release()));
    };
    if (const auto* pre = index.as<faiss::IndexPreTransform>()) {
        for (auto*& vt : const_cast<faiss::IndexPreTransform*>(pre)->chain) {
            if (auto given = copy_of_given(*all++)) {
                delete std::exchange(vt, given.release());
            }
        }
    } else if (const auto* codes = index.as<IndexKernelHash>()) {
        if (auto given = hash_of_given()) {
            auto& hash = const_cast<IndexKernelHash*>(codes)->hash;
            delete std::exchange(hash, given.release());
        }
    } else if (const auto* flat = index.as<IndexAsymmetricHash>()) {
        if (auto given = hash_of_given()) {
            const_cast<IndexAsymmetricHash*>(flat)->hash = std::move(given);
        }
    }
}

/// Puts the frequencies and functions that a user gave for one index in the
/// places of those that stand in for them in another one.
void take_given(const AnyIndex& from, const AnyIndex& to) {
    std::vector<const faiss::VectorTransform*> transforms;
    std::vector<const Kernel*> kernels; // of KFlat
    for_all_parts(from, [&](const AnyIndex& index) {
        const auto more = transforms_of(index);
        transforms.insert(transforms.end(), more.begin(), more.end());
        if (const auto* exact = index.as<IndexFlatKernel>()) {
            kernels.push_back(exact->kernel.get());
        }
    });
    const auto* transform = transforms.data();
    auto kernel = kernels.begin();
    for_all_parts(to, [&](const AnyIndex& index) {
        take_frequencies(index, transform);
        transform += transforms_of(index).size();
        if (const auto* exact = index.as<IndexFlatKernel>()) {
            if (dynamic_cast<const CallbackKernel*>(*kernel)) {
                const_cast<IndexFlatKernel*>(exact)->kernel =
                        (*kernel)->clone();
            }
            ++kernel;
        }
    });
}

/// An index like another one before its training, without vectors.
/// @param is_shared  whether it was behind Concurrent, where FAISS's indexes
///                   take ids
std::unique_ptr<Index> made_again(const Index& index, bool is_shared) {
    const std::string string = string_before_training(index);
    std::unique_ptr<Index> made;
    if (is_shared) {
        const auto outer = index_factory(
                index.d, "Concurrent," + string, index.metric_type);
        auto& shared = dynamic_cast<IndexConcurrent&>(*outer);
        shared.own_fields = false;
        made.reset(shared.index);
    } else {
        made = index_factory(index.d, string, index.metric_type);
    }
    take_given(index, *made);
    return made;
}

/// Copies a member, for indexes of class C.
template <class C, class F>
void copy_option(const AnyIndex& from, const AnyIndex& to, F&& member) {
    const C *source = from.as<C>(), *target = to.as<C>();
    if (source && target) {
        member(const_cast<C&>(*target)) = member(*source);
    }
}

/// Copies options of FAISS's classes that strings do not have, in an index and
/// its parts.
void copy_options(const AnyIndex& from, const AnyIndex& to) {
    const auto graph = [](auto& i) {
        return std::tie(
                i.hnsw.efConstruction,
                i.hnsw.check_relative_distance,
                i.hnsw.search_bounded_queue);
    };
    const auto clustering = [](auto& i) -> auto& {
        return i.cp;
    };
    const auto metric_arg = [](auto& i) -> auto& {
        return i.metric_arg;
    };
    copy_option<Index>(from, to, metric_arg);
    copy_option<faiss::IndexHNSW>(from, to, graph);
    copy_option<faiss::IndexBinaryHNSW>(from, to, graph);
    copy_option<faiss::IndexIVF>(from, to, clustering);
    copy_option<faiss::IndexBinaryIVF>(from, to, clustering);
    const std::vector<IndexPart> parts = parts_of(from), others = parts_of(to);
    for (size_t i = 0; i < std::min(parts.size(), others.size()); i++) {
        if (parts[i].index && others[i].index) {
            copy_options(parts[i].index, others[i].index);
        }
    }
}

void copy_search_parameters(const Index& from, Index& to) {
    const auto all = search_parameters(const_cast<Index&>(from)); // only read
    for (const SearchParameter& parameter : search_parameters(to)) {
        for (const SearchParameter& other : all) {
            if (other.name == parameter.name) {
                parameter.set(other.get());
            }
        }
    }
}

void train(const Training& training, const Index* vectors, Index& index) {
    if (training.given) {
        faiss_ext::train(index, *training.given);
    } else if (!index.is_trained) {
        FAISS_EXT_THROW_IF_NOT_MSG(
                vectors && vectors->ntotal > 0,
                "retrained: the index has no vectors to draw a sample from; give training vectors");
        const StoredVectors stored(*vectors);
        const bool as_sparse = stored.are_sparse() && takes_sparse(index);
        constexpr idx_t most_floats = 1 << 28;
        const idx_t most = as_sparse
                ? training.most
                : std::clamp<idx_t>(most_floats / index.d, 1, training.most);
        auto numbers = sample_ids(vectors->ntotal, most, training.seed);
        std::sort(numbers.begin(), numbers.end());
        faiss_ext::train(index, stored.get(numbers, as_sparse).get());
    }
}

/// An index of class Wrapper that owns the one inside.
template <class Wrapper, class... Args>
std::unique_ptr<Index> wrapped(std::unique_ptr<Index> inside, Args&&... args) {
    auto made = std::make_unique<Wrapper>(
            inside.get(), std::forward<Args>(args)...);
    static_cast<void>(inside.release());
    made->own_fields = true;
    return made;
}

/// For an index that neither wraps another one in its own ids nor shares it.
std::unique_ptr<Index> retrained_inside(
        const Index& index,
        const Training& training,
        bool is_shared) {
    if (divides_vectors(index) ||
        dynamic_cast<const faiss::IndexReplicas*>(&index)) {
        throw UnsupportedError(
                "retrained: " + AnyIndex(index).class_name() +
                " holds other indexes; call retrained for each of them, with the same training vectors");
    }
    const Index* vectors = part_with_vectors(&index);
    if (!vectors && (index.ntotal > 0 || !training.given)) {
        throw_no_vectors(index);
    }
    auto made = made_again(index, is_shared);
    copy_options(index, *made);
    copy_search_parameters(index, *made);
    train(training, vectors, *made);
    if (index.ntotal > 0) {
        add_all(StoredVectors(*vectors), *made);
    }
    const auto* lists = flat_lists(&index);
    if (auto* new_lists = dynamic_cast<faiss::IndexIVFFlat*>(made.get());
        new_lists && lists) {
        new_lists->set_direct_map_type(direct_map_of(*lists).type);
    }
    if (const AnyIndex own = id_table_of(index)) {
        const auto& table = *own.as<IndexIDTable>();
        dynamic_cast<HasIds<Index>&>(*made).set_ids(
                table.id_map, table.next_id);
    }
    return made;
}

std::unique_ptr<Index> retrained(
        const Index& index,
        const Training& training,
        bool is_shared = false) {
    if (const auto* shared = dynamic_cast<const IndexConcurrent*>(&index)) {
        const LongReadingStep step(index);
        return wrapped<IndexConcurrent>(
                retrained(*shared->index, training, true));
    }
    check_all_counts(index);
    if (const auto* map = dynamic_cast<const faiss::IndexIDMap*>(&index)) {
        const auto* table = dynamic_cast<const IndexIDTable*>(map);
        return wrapped<IndexIDTable>(
                retrained(*map->index, training),
                std::vector<idx_t>(map->id_map.begin(), map->id_map.end()),
                table ? table->next_id : 0);
    }
    return retrained_inside(index, training, is_shared);
}

} // namespace

std::unique_ptr<Index> retrained(const Index& index, idx_t n, const float* x) {
    return retrained(index, Training{VectorBatch(n, x, index.d)});
}

std::unique_ptr<Index> retrained(const Index& index, const SparseVectors& x) {
    return retrained(index, Training{VectorBatch(x)});
}

std::unique_ptr<Index> retrained_on_sample(
        const Index& index,
        idx_t n,
        int64_t seed) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n > 0 && seed >= 0,
            "retrained: a sample of %" PRId64 " vectors with the seed %" PRId64
            ", expected at least one vector and a seed of at least 0",
            int64_t(n),
            int64_t(seed));
    return retrained(index, Training{std::nullopt, n, seed});
}

} // namespace faiss_ext
