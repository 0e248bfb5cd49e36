// SPDX-License-Identifier: MIT
#include "indexes/supported_calls.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include <faiss/IndexAdditiveQuantizerFastScan.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexFlatCodes.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexLattice.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPQFastScan.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>
#include <faiss/invlists/BlockInvertedLists.h>
#include <faiss/utils/random.h>

#include <faiss_ext/core/Transform.h>

#include <faiss_ext/indexes/loaded_fields.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_positions.h"
#include "indexes/ivf_fields.h"
#include "indexes/search_params.h"

namespace faiss_ext {

namespace {

template <class F>
bool fails(F&& call) {
    try {
        call();
        return false;
    } catch (const faiss::FaissException&) {
        return true;
    }
}

/// Whether the lists of an index refuse search parameters. IndexIVF::search
/// would find out only in a search of vectors, some of it in a parallel loop,
/// which ends the process.
bool lists_refuse(const AnyIndex& index, const faiss::SearchParameters* given) {
    const auto* lists = index.as<faiss::IndexIVF>();
    const auto* params = dynamic_cast<const faiss::SearchParametersIVF*>(given);
    if (!lists || !params) {
        return false;
    }
    const auto has_no_scanner = [&](const faiss::IDSelector* sel) {
        return fails(
                [&] { delete lists->get_InvertedListScanner(false, sel); });
    };
    if (params->sel && has_no_scanner(params->sel) &&
        !has_no_scanner(nullptr)) {
        return true;
    }
    const auto fails_with = [&](const faiss::SearchParametersIVF* params) {
        const std::vector<float> x(lists->d);
        float coarse = 0, distance;
        idx_t list = 0, label;
        return fails([&] {
            lists->search_preassigned(
                    0,
                    x.data(),
                    1,
                    &list,
                    &coarse,
                    &distance,
                    &label,
                    false,
                    params);
        });
    };
    return fails_with(params) && !fails_with(nullptr);
}

/// Whether an index refuses to be searched with search parameters.
bool refuses(const AnyIndex& index, const faiss::SearchParameters* params) {
    if (lists_refuse(index, params)) {
        return true;
    }
    return fails([&] {
        index.visit([&](const auto& i) {
            using Component =
                    typename std::remove_cvref_t<decltype(i)>::component_t;
            using Distance =
                    typename std::remove_cvref_t<decltype(i)>::distance_t;
            const std::vector<Component> x(i.d);
            Distance distance;
            idx_t label;
            i.search(0, x.data(), 1, &distance, &label, params);
        });
    });
}

bool refuses_range_search(const AnyIndex& index) {
    return fails([&] {
        index.visit([&](const auto& i) {
            using Component =
                    typename std::remove_cvref_t<decltype(i)>::component_t;
            const std::vector<Component> x(i.d);
            faiss::RangeSearchResult result(0);
            i.range_search(0, x.data(), 1, &result);
        });
    });
}

/// Whether FAISS is to be asked.
bool is_of_faiss(const AnyIndex& index) {
    return index && !facts_of(index).checks_calls.value_or(false) &&
            index.visit([](const auto& i) { return i.is_trained; });
}

/// The innermost part that refuses a call.
template <class Refuses>
AnyIndex refusing_part(const AnyIndex& index, const Refuses& refuses) {
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && is_of_faiss(part.index) &&
            refuses(part.index)) {
            return refusing_part(part.index, refuses);
        }
    }
    return index;
}

[[noreturn]] void throw_unsupported_by(
        const AnyIndex& part,
        const std::string& what,
        const std::string& advice,
        const char* where) {
    throw UnsupportedError(format_message(
            "%s: %s does not support %s in FAISS %d.%d; %s",
            where,
            part.class_name().c_str(),
            what.c_str(),
            FAISS_VERSION_MAJOR,
            FAISS_VERSION_MINOR,
            advice.c_str()));
}

[[noreturn]] void throw_params_unsupported(
        const AnyIndex& part,
        const faiss::SearchParameters& params,
        const char* where) {
    if (params.sel) {
        throw_unsupported_by(
                part,
                "filters",
                part.binary
                        ? "use BFlat or BIVF, or put Refine(KFlat(...)) behind the hash"
                        : "put Refine(KFlat(...)) behind it",
                where);
    }
    throw_unsupported_by(
            part,
            is_plain(&params)
                    ? "search parameters"
                    : "search parameters of class " + type_name(typeid(params)),
            "set the parameters of the index with faiss_ext.set_index_parameter",
            where);
}

} // namespace

void check_params_supported(
        const AnyIndex& index,
        const faiss::SearchParameters* params,
        const char* where) {
    if (!params || !is_of_faiss(index) || !refuses(index, params)) {
        return;
    }
    // parameters of another class, or with other values, may be supported
    const auto own = params_for_selected(index, 1);
    own->sel = params->sel;
    const auto refuses_own = [&](const AnyIndex& each) {
        return refuses(each, own.get());
    };
    if (refuses_own(index) && !refuses(index, nullptr)) {
        throw_params_unsupported(
                refusing_part(index, refuses_own), *params, where);
    }
}

bool takes_params_with_vectors(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where) {
    if (!is_of_faiss(index)) {
        return true;
    }
    const auto refuses_both = [&](const faiss::SearchParameters* params) {
        return fails([&] {
            std::vector<float> x(index.d), vectors(index.d);
            float distance;
            idx_t label;
            index.search_and_reconstruct(
                    0, x.data(), 1, &distance, &label, vectors.data(), params);
        });
    };
    if (refuses_both(nullptr)) {
        if (!refuses(index, nullptr)) { // lists of fast scans, since 1.8
            throw_unsupported_by(
                    index, "search_and_reconstruct", "use search", where);
        }
        return true;
    }
    return !params || !refuses_both(params) || refuses(index, params);
}

void check_range_search_supported(const AnyIndex& index, const char* where) {
    if (is_of_faiss(index) && refuses_range_search(index) &&
        !refuses(index, nullptr)) {
        throw_unsupported_by(
                refusing_part(index, refuses_range_search),
                "range_search",
                "use search, which finds the k nearest vectors",
                where);
    }
}

void check_inverse_supported(
        const faiss::VectorTransform& vt,
        const char* where) {
    if (dynamic_cast<const Transform*>(&vt)) {
        return; // it says so itself
    }
    const std::vector<float> y(vt.d_out);
    std::vector<float> x(vt.d_in);
    if (fails([&] { vt.reverse_transform(0, y.data(), x.data()); })) {
        throw UnsupportedError(format_message(
                "%s: vectors cannot be reconstructed, because %s has no inverse",
                where,
                type_name(typeid(vt)).c_str()));
    }
}

namespace {

struct DimensionAndMetric {
    int d;
    faiss::MetricType metric;

    explicit DimensionAndMetric(const AnyIndex& index) {
        index.visit([&](const auto& i) {
            d = i.d;
            metric = i.metric_type;
        });
    }
};

/// FAISS does not compare them, or its error does not say that they differ.
void check_same_dimension_and_metric(
        const AnyIndex& index,
        const AnyIndex& other) {
    const DimensionAndMetric to(index), from(other);
    FAISS_EXT_THROW_IF_NOT_FMT(
            to.d == from.d,
            "cannot merge: %s has %d dimensions, and the other %s %d; expected the same number",
            index.class_name().c_str(),
            to.d,
            other.class_name().c_str(),
            from.d);
    FAISS_EXT_THROW_IF_NOT_FMT(
            to.metric == from.metric,
            "cannot merge: the metric of %s is %s, and of the other %s %s; expected the same",
            index.class_name().c_str(),
            metric_name(to.metric).c_str(),
            other.class_name().c_str(),
            metric_name(from.metric).c_str());
}

const faiss::IndexPreTransform* plain_chain(const faiss::Index& index) {
    return typeid(index) == typeid(faiss::IndexPreTransform)
            ? static_cast<const faiss::IndexPreTransform*>(&index)
            : nullptr;
}

/// The index as a flat one, null if it is none or of a class derived from it
/// that stores more.
const faiss::IndexFlat* plain_flat(const faiss::Index& index) {
    for (const auto* type :
         {&typeid(faiss::IndexFlat),
          &typeid(faiss::IndexFlatL2),
          &typeid(faiss::IndexFlatIP)}) {
        if (typeid(index) == *type) {
            return static_cast<const faiss::IndexFlat*>(&index);
        }
    }
    return nullptr;
}

/// Whether both are flat indexes, or the same transformations and flat indexes.
bool are_flat_alike(const faiss::Index& index, const faiss::Index& other) {
    const auto *chain = plain_chain(index), *others = plain_chain(other);
    if (!chain || !others) {
        return plain_flat(index) && plain_flat(other);
    }
    return chain->chain.size() == others->chain.size() && !fails([&] {
               for (size_t i = 0; i < chain->chain.size(); i++) {
                   chain->chain[i]->check_identical(*others->chain[i]);
               }
           }) &&
            are_flat_alike(*chain->index, *others->index);
}

/// Whether codes of both stand for the same vectors. Decodes some.
bool are_decoded_alike(
        const faiss::IndexFlatCodes& index,
        const faiss::IndexFlatCodes& other) {
    constexpr size_t n = 16;
    const size_t size = index.code_size, d = index.d;
    if (other.code_size != size || index.is_trained != other.is_trained) {
        return false;
    }
    std::vector<uint8_t> codes(n * size);
    faiss::byte_rand(codes.data(), codes.size(), 1);
    std::vector<float> ours(n * d), theirs(n * d);
    index.sa_decode(n, codes.data(), ours.data());
    other.sa_decode(n, codes.data(), theirs.data());
    return std::memcmp(ours.data(), theirs.data(), n * d * sizeof(float)) == 0;
}

/// Whether two indexes of the same class of FAISS have learnt the same codes.
/// FAISS does not compare the tables of flat indexes.
bool have_same_codes(const AnyIndex& index, const AnyIndex& other) {
    if (const auto* fast = index.as<faiss::IndexPQFastScan>()) {
        const auto centroids = loaded<&faiss::ProductQuantizer::centroids>;
        return fast->pq.*centroids ==
                other.as<faiss::IndexPQFastScan>()->pq.*centroids;
    }
    using AdditiveFastScan = faiss::IndexAdditiveQuantizerFastScan;
    if (const auto* fast = index.as<AdditiveFastScan>()) {
        return fast->aq->codebooks ==
                other.as<AdditiveFastScan>()->aq->codebooks;
    }
    const auto* codes = index.as<faiss::IndexFlatCodes>();
    return !codes ||
            are_decoded_alike(*codes, *other.as<faiss::IndexFlatCodes>());
}

/// FAISS's lists of blocks in an index, such as those of `IVF,PQx4fs`.
std::vector<const faiss::BlockInvertedLists*> block_lists(
        const AnyIndex& index) {
    std::vector<const faiss::BlockInvertedLists*> found;
    for_lists(index, [&](const auto& lists) {
        using Blocks = faiss::BlockInvertedLists;
        const faiss::InvertedLists* all = invlists_of(lists);
        if (const auto* blocks = dynamic_cast<const Blocks*>(all)) {
            found.push_back(blocks);
        }
    });
    return found;
}

/// Throws UnsupportedError if FAISS would write behind the memory of a list of
/// blocks: BlockInvertedLists::add_entries compares the number of its vectors
/// with the bytes of a block.
void check_blocks_take(const AnyIndex& index, const AnyIndex& other) {
    const auto all_to = block_lists(index);
    const auto all_from = block_lists(other);
    for (size_t i = 0; i < std::min(all_to.size(), all_from.size()); i++) {
        const auto &to = *all_to[i], &from = *all_from[i];
        for (size_t l = 0; l < std::min(to.nlist, from.nlist); l++) {
            const size_t size = to.list_size(l);
            if (size > 0 && size % to.block_size == 0 && from.list_size(l)) {
                throw UnsupportedError(format_message(
                        "cannot merge: list %zu of %s has %zu vectors, a multiple of %zu, to which FAISS cannot append without overwriting memory; add the vectors of both to one index, or use KIVF",
                        l,
                        index.class_name().c_str(),
                        size,
                        to.block_size));
            }
        }
    }
}

} // namespace

void check_merge(const AnyIndex& index, const AnyIndex& other) {
    check_trained_for_merge(index, other);
    const bool is_same =
            index.floats == other.floats && index.binary == other.binary;
    if (!is_same && index.floats && other.floats &&
        are_flat_alike(*index.floats, *other.floats)) {
        check_same_dimension_and_metric(index, other);
        return;
    }
    const auto check = [&](const AnyIndex& with) {
        index.visit([&](const auto& i) {
            using IndexT = std::remove_cvref_t<decltype(i)>;
            const auto* same = with.as<std::conditional_t<
                    std::is_base_of_v<faiss::Index, IndexT>,
                    faiss::Index,
                    faiss::IndexBinary>>();
            i.check_compatible_for_merge(*same);
        });
    };
    const bool explains = !type_name(index.type()).starts_with("faiss::");
    if (explains) {
        check(other);
        return;
    }
    check_not_itself(is_same);
    check_lists_not_mapped(index, "merge_from");
    check_lists_not_mapped(other, "merge_from");
    if (index.type() == other.type()) {
        check_same_dimension_and_metric(index, other);
    }
    const bool have_other_codes =
            index.type() == other.type() && !have_same_codes(index, other);
    if (have_other_codes || fails([&] { check(other); })) {
        const std::string name = index.class_name();
        if (fails([&] { check(index); })) {
            throw UnsupportedError(format_message(
                    "cannot merge: %s does not support merge_from; add the vectors of both to one index",
                    name.c_str()));
        }
        const bool have_maps = has_direct_map(index) || has_direct_map(other);
        FAISS_EXT_THROW_FMT(
                "cannot merge: %s cannot take the vectors of %s; expected another %s with the same parameters and training%s",
                name.c_str(),
                other.class_name().c_str(),
                name.c_str(),
                have_maps ? ", and no direct map in either of them" : "");
    }
    check_blocks_take(index, other);
}

namespace {

void check_parts_take(const AnyIndex& index, const char* where) {
    if (index.as<faiss::IndexLattice>()) {
        throw UnsupportedError(format_message(
                "%s: IndexLattice only encodes vectors and cannot hold any; a string such as SQ8 or PQ16 makes an index that does",
                where));
    }
    if (index.as<faiss::IndexNSG>() && index.ntotal() > 0) {
        throw UnsupportedError(format_message(
                "%s: %s takes all vectors in one call, and has %" PRId64
                "; reset it and add all of them together, or use HNSW",
                where,
                index.class_name().c_str(),
                int64_t(index.ntotal())));
    }
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && part.index) {
            check_parts_take(part.index, where);
        }
    }
}

} // namespace

void check_addition(const AnyIndex& index, idx_t n, const char* where) {
    if (n != 0) {
        check_lists_not_mapped(index, where);
        check_parts_take(index, where);
    }
}

std::unique_ptr<faiss::SearchParameters> params_of_its_class(
        const AnyIndex& index,
        const faiss::SearchParameters* params) {
    if (!is_plain(params) || !is_of_faiss(index) || !refuses(index, params)) {
        return nullptr;
    }
    auto own = params_for_selected(index, 1);
    own->sel = params->sel;
    return own;
}

void merge_and_empty(faiss::Index& index, faiss::Index& other, idx_t add_id) {
    if (add_id != 0 || !are_flat_alike(index, other)) {
        index.merge_from(other, add_id);
    } else if (const faiss::IndexFlat* flat = plain_flat(other)) {
        index.add(flat->ntotal, flat->get_xb());
        other.reset();
    } else {
        auto& to = static_cast<faiss::IndexPreTransform&>(index);
        merge_and_empty(
                *to.index,
                *static_cast<faiss::IndexPreTransform&>(other).index);
        to.ntotal = to.index->ntotal;
    }
    faiss::Index* from = &other;
    while (auto* chain = dynamic_cast<faiss::IndexPreTransform*>(from)) {
        chain->ntotal = 0;
        from = chain->index;
    }
}

void merge_and_empty(
        faiss::IndexBinary& index,
        faiss::IndexBinary& other,
        idx_t add_id) {
    index.merge_from(other, add_id);
}

} // namespace faiss_ext
