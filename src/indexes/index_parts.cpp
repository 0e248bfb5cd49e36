// SPDX-License-Identifier: MIT
#include "indexes/index_parts.h"

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <numeric>
#include <string>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexIVFAdditiveQuantizerFastScan.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexIVFPQR.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/invlists/BlockInvertedLists.h>

#include <faiss_ext/core/Transform.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>

#include "core/check.h"
#include "core/errors.h"
#include "indexes/index_compat.h"
#include "indexes/index_facts.h"
#include "indexes/index_positions.h"
#include "indexes/ivf_fields.h"
#include "indexes/list_moves.h"
#include "indexes/mapped_lists.h"
#include "indexes/search_params.h"

namespace faiss_ext {

namespace {

bool are_below(const std::vector<idx_t>& ids, idx_t limit) {
    return std::all_of(ids.begin(), ids.end(), [&](idx_t id) {
        return id >= 0 && id < limit;
    });
}

/// Returns whether every position is the id of a vector.
bool are_all_positions(std::vector<idx_t> ids) {
    std::sort(ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); i++) {
        if (ids[i] != idx_t(i)) {
            return false;
        }
    }
    return true;
}

/// Finds the first part whose number of vectors differs.
struct UnequalCount {
    idx_t expected;
    std::string text; ///< empty if there is none

    void see(const char* part, idx_t count) {
        if (count != expected && text.empty()) {
            text = "the index has " + std::to_string(expected) +
                    " vectors, and its " + part + " " + std::to_string(count);
        }
    }

    /// The index takes the ids of a part for positions.
    void see_positions(const char* part, const AnyIndex& index) {
        const idx_t next = next_new_id(index);
        if (next != index.ntotal() && text.empty()) {
            text = "the " + std::string(part) + " has " +
                    std::to_string(index.ntotal()) +
                    " vectors, but its next id is " + std::to_string(next) +
                    ": it has ids of its own, or vectors have been removed; call reset() and add the vectors again";
        }
    }
};

/// Whether ids are `first` and the next ones.
bool are_from(idx_t first, const std::vector<idx_t>& ids) {
    for (const idx_t id : ids) {
        if (id != first++) {
            return false;
        }
    }
    return true;
}

} // namespace

void check_free_ids(idx_t next, idx_t n, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n <= std::numeric_limits<idx_t>::max() - next,
            "%s: the number of new vectors is %" PRId64
            ", expected at most %" PRId64 ": ids up to %" PRId64
            " have been given; use add_with_ids",
            where,
            int64_t(n),
            int64_t(std::numeric_limits<idx_t>::max() - next),
            int64_t(next) - 1);
}

idx_t next_new_id(const AnyIndex& index) {
    if (const AnyIndex table = id_table_of(index)) {
        return next_new_id(table);
    }
    return next_id_of_lists(index);
}

idx_t next_id_of_lists(const AnyIndex& index) {
    if (const auto& next = facts_of(index).next_id) {
        return next(index);
    }
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && part.index) {
            return next_id_of_lists(part.index);
        }
    }
    return index.ntotal();
}

idx_t shifted_id(idx_t id, idx_t add_id, const char* where) {
    idx_t sum = -1;
    FAISS_EXT_THROW_IF_NOT_FMT(
            !__builtin_add_overflow(id, add_id, &sum) && sum != -1,
            "%s: id %" PRId64 " + %" PRId64
            " is out of range, or -1, which means \"no result\" in searches",
            where,
            int64_t(id),
            int64_t(add_id));
    return sum;
}

void check_new_ids(idx_t n, const idx_t* ids, const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !ids || std::find(ids, ids + n, -1) == ids + n,
            "%s: an id is -1, which means \"no result\" in searches",
            where);
}

bool has_unmovable_lists(const AnyIndex& index) {
    bool has = false;
    for_lists(index, [&](const auto& lists) {
        has = has || !has_movable_vectors(lists);
    });
    return has && lists_keep_ids(index);
}

std::vector<idx_t> ids_for_lists(
        const AnyIndex& index,
        idx_t n,
        const idx_t* ids,
        const std::string& where) {
    check_new_ids(n, ids, where.c_str());
    std::vector<idx_t> used = index_ids(index);
    std::sort(used.begin(), used.end());
    const idx_t next = used.empty() ? 0 : std::max<idx_t>(used.back(), -1) + 1;
    std::vector<idx_t> chosen(n);
    if (!ids) {
        check_free_ids(next, n, where.c_str());
        std::iota(chosen.begin(), chosen.end(), next);
        return chosen;
    }
    std::copy_n(ids, n, chosen.begin());
    for_lists(index, [&](const auto& lists) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                !dynamic_cast<const faiss::IndexIVFPQR*>(
                        AnyIndex(lists).as<faiss::Index>()) ||
                        are_from(next, chosen),
                "%s: IndexIVFPQR takes ids for positions; expected the ids from %" PRId64
                " on, in this order, as add gives them",
                where.c_str(),
                int64_t(next));
    });
    std::vector<idx_t> sorted = chosen;
    std::sort(sorted.begin(), sorted.end());
    for (idx_t i = 0; i < n; i++) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                !std::binary_search(used.begin(), used.end(), ids[i]),
                "%s: id %" PRId64 " is already in use",
                where.c_str(),
                int64_t(ids[i]));
        FAISS_EXT_THROW_IF_NOT_FMT(
                i == 0 || sorted[i] != sorted[i - 1],
                "%s: id %" PRId64 " is given twice",
                where.c_str(),
                int64_t(sorted[i]));
    }
    return chosen;
}

void check_ids_of_merge(
        const AnyIndex& index,
        const AnyIndex& other,
        idx_t add_id,
        const std::string& where) {
    std::vector<idx_t> used = index_ids(index);
    std::sort(used.begin(), used.end());
    for (const idx_t id : index_ids(other)) {
        const idx_t moved = shifted_id(id, add_id, where.c_str());
        FAISS_EXT_THROW_IF_NOT_FMT(
                !std::binary_search(used.begin(), used.end(), moved),
                "%s: id %" PRId64
                " is already in use; give an add_id that is added to the ids of the other index",
                where.c_str(),
                int64_t(moved));
    }
}

void check_no_blocks(const AnyIndex& index, const char* where) {
    if (removes_from_blocks) {
        return;
    }
    const auto* ivf = dynamic_cast<const faiss::IndexIVF*>(index.floats);
    if (ivf &&
        dynamic_cast<const faiss::BlockInvertedLists*>(invlists_of(*ivf))) {
        throw UnsupportedError(
                std::string(where) +
                ": this version of FAISS can only add to the lists of " +
                index.class_name() +
                " and search them; build the index again, or use IVF,PQ or KIVF");
    }
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_searched && part.index) {
            check_no_blocks(part.index, where);
        }
    }
}

namespace {

/// Whether inverted lists have the quantizer that decodes their vectors. FAISS
/// does not set the one of fast-scan lists when it reads a file, and lets a
/// clone use the original's.
bool has_decoder([[maybe_unused]] const faiss::IndexIVF& ivf) {
#if FAISS_EXT_HAS_FINE_QUANTIZER
    using PQ = faiss::IndexIVFPQFastScan;
    using RQ = faiss::IndexIVFResidualQuantizerFastScan;
    using Additive = faiss::IndexIVFAdditiveQuantizerFastScan;
    const faiss::Quantizer* own = nullptr;
    if (const auto* pq = dynamic_cast<const PQ*>(&ivf)) {
        own = &(pq->*loaded<&PQ::pq>);
    } else if (const auto* additive = dynamic_cast<const Additive*>(&ivf)) {
        own = additive->*loaded<&RQ::aq>;
    } else {
        return true;
    }
    const auto& fast = dynamic_cast<const faiss::IndexIVFFastScan&>(ivf);
    return fast.*loaded<&PQ::fine_quantizer> == own;
#else
    return true;
#endif
}

} // namespace

void check_decodes(const AnyIndex& index, const char* where) {
    check_no_blocks(index, where);
    for_lists(index, [&](const auto& lists) {
        const auto* ivf = AnyIndex(lists).template as<faiss::IndexIVF>();
        if (ivf && !has_decoder(*ivf)) {
            throw UnsupportedError(format_message(
                    "%s: %s cannot decode its vectors after it was read from a file or cloned, because FAISS does not restore its fine_quantizer; decode them before that, or use KIVF",
                    where,
                    AnyIndex(lists).class_name().c_str()));
        }
    });
}

void check_lists_not_mapped(const AnyIndex& index, const char* where) {
    for_lists(index, [&](const auto& lists) {
        check_not_mapped(is_mapped(lists), where);
    });
}

bool has_direct_map(const AnyIndex& index) {
    bool has_map = false;
    for_lists(index, [&](const auto& lists) {
        has_map = has_map || !direct_map_of(lists).no();
    });
    return has_map;
}

void make_direct_maps(const AnyIndex& index) {
    for_lists(index, [](const auto& lists) {
        using Lists = std::remove_cvref_t<decltype(lists)>;
        const_cast<Lists&>(lists).make_direct_map(true);
    });
}

void forget_direct_maps(const AnyIndex& index) {
    for_lists(index, [](const auto& lists) {
        using Lists = std::remove_cvref_t<decltype(lists)>;
        const_cast<Lists&>(lists).make_direct_map(false);
    });
}

void check_removal(
        const AnyIndex& index,
        const faiss::IDSelector& sel,
        const char* where) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            !is_from_id_map(sel) || !keeps_ids(index),
            "%s: an IndexIDMap in front of an index that keeps ids itself would return wrong ids after a removal; use add_with_ids and remove_ids of the index inside, without the IndexIDMap",
            where);
    check_lists_not_mapped(index, where);
    check_no_blocks(index, where);
    for_lists(index, [&](const auto& lists) {
        if (dynamic_cast<const faiss::IndexIVFPQR*>(
                    AnyIndex(lists).as<faiss::Index>())) {
            throw UnsupportedError(
                    std::string(where) +
                    ": IndexIVFPQR cannot remove vectors; build the index again without them");
        }
    });
}

void check_trained_for_merge(const AnyIndex& index, const AnyIndex& other) {
    const auto is_trained = [](const auto& i) { return i.is_trained; };
    FAISS_EXT_THROW_IF_NOT_MSG(
            index.visit(is_trained),
            "cannot merge: the index is not trained; call train first");
    FAISS_EXT_THROW_IF_NOT_MSG(
            other.visit(is_trained),
            "cannot merge: the other index is not trained; train one index, and make the others as copies of it");
}

bool ids_are_positions(const AnyIndex& index) {
    if (!lists_keep_ids(index)) {
        return true;
    }
    try {
        return next_id_of_lists(index) == index.ntotal() &&
                are_all_positions(index_ids(index));
    } catch (const UnsupportedError&) {
        return false;
    }
}

bool part_has_table(const AnyIndex& index) {
    const auto parts = parts_of(index);
    return std::any_of(parts.begin(), parts.end(), [](const IndexPart& part) {
        return part.index &&
                (id_table_of(part.index) || part_has_table(part.index));
    });
}

bool labels_are_below(const AnyIndex& index, idx_t limit) {
    if (!index) {
        return true;
    }
    const auto& ids = facts_of(index).ids;
    if (ids || id_table_of(index)) {
        const std::vector<idx_t> own = *ids_of(index);
        return are_below(own, limit) &&
                (index.ntotal() != limit || are_all_positions(own));
    }
    const auto parts = parts_of(index);
    return std::all_of(parts.begin(), parts.end(), [&](const IndexPart& part) {
        return !part.is_searched || !part.index ||
                labels_are_below(
                        part.index,
                        part.by_position ? part.index.ntotal() : limit);
    });
}

bool graph_fits(const faiss::HNSW& hnsw, idx_t num_vertices, bool has_entry) {
    const idx_t entry = hnsw.entry_point;
    return hnsw.offsets.size() == size_t(num_vertices) + 1 &&
            hnsw.levels.size() >= size_t(num_vertices) &&
            hnsw.neighbors.size() == hnsw.offsets.back() &&
            (!has_entry ||
             (entry >= 0 && entry < num_vertices &&
              hnsw.levels[entry] == hnsw.max_level + 1));
}

namespace {

/// @param where  for messages; null: the class of the index
void check_itself(const AnyIndex& index, const char* where) {
    if (const auto& check = facts_of(index).check) {
        try {
            check(index);
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix((where ? where : index.class_name()) + ": ");
        }
    }
}

} // namespace

void check_faiss_input(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        const char* where) {
    if (facts_of(index).checks_calls.value_or(false)) {
        return;
    }
    check_counts(index);
    check_itself(index, where);
    bool is_passed_on = false;
    if (!facts_of(index).transforms) {
        for (const IndexPart& part : parts_of(index)) {
            if (part.is_searched && part.index.floats) {
                check_faiss_input(*part.index.floats, n, x, where);
                is_passed_on = true;
            }
        }
    }
    if (!is_passed_on) {
        check_norms(n, x, index.d, where);
    }
}

void check_faiss_input(
        const faiss::VectorTransform& vt,
        idx_t n,
        const float* x,
        const char* where) {
    if (dynamic_cast<const Transform*>(&vt)) {
        return;
    }
    const bool squares =
            !dynamic_cast<const faiss::RemapDimensionsTransform*>(&vt);
    (squares ? check_norms : check_finite)(n, x, vt.d_in, where);
}

void check_training(const AnyIndex& index, idx_t n, const char* where) {
    const bool is_ours = facts_of(index).checks_calls.value_or(false);
    const bool is_trained =
            index.visit([](const auto& i) { return i.is_trained; });
    FAISS_EXT_THROW_IF_NOT_FMT(
            n > 0 || is_trained || is_ours,
            "%s: there are no vectors to train %s with",
            where,
            index.class_name().c_str());
    const idx_t least = is_ours ? 0 : least_training(index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            n >= least,
            "%s: the training of %s needs at least %" PRId64
            " vectors, one for each inverted list, got %" PRId64,
            where,
            index.class_name().c_str(),
            int64_t(least),
            int64_t(n));
}

void check_params_for(
        const faiss::Index& index,
        const faiss::SearchParameters* params,
        const char* where) {
    if (!params && facts_of(index).checks_calls.value_or(false)) {
        return; // the index checks its own values; a cast takes longer
    }
    if (const auto* graph = dynamic_cast<const faiss::IndexHNSW*>(&index)) {
        const auto* given =
                known_params<faiss::SearchParametersHNSW>(params, where);
        check_ef(
                given ? given->efSearch : graph->hnsw.efSearch,
                "efSearch",
                where);
    } else if (!params) {
        return;
    } else if (
            dynamic_cast<const faiss::IndexFlat*>(&index) ||
            dynamic_cast<const faiss::IndexScalarQuantizer*>(&index)) {
        known_params(params, where);
    } else if (dynamic_cast<const faiss::IndexIVF*>(&index)) {
        known_params<faiss::SearchParametersIVF>(params, where);
    }
}

void check_params_for(
        const faiss::IndexBinary& index,
        const faiss::SearchParameters* params,
        const char* where) {
    if (dynamic_cast<const faiss::IndexBinaryFlat*>(&index)) {
        known_params(params, where);
    }
}

std::string unequal_counts(const AnyIndex& index) {
    const IndexFacts& facts = facts_of(index);
    UnequalCount unequal{index.ntotal(), ""};
    if (facts.counts) {
        for (const auto& [name, count] : facts.counts(index)) {
            unequal.see(name.c_str(), count);
        }
    }
    const bool is_divided = divides_vectors(index);
    idx_t sum = 0;
    std::string names;
    for (const IndexPart& part : parts_of(index)) {
        if (part.is_quantizer || !part.index) {
            continue;
        }
        if (is_divided) {
            sum += part.index.ntotal();
            names = std::string(part.name) + "s together";
        } else {
            unequal.see(part.name, part.index.ntotal() - part.num_removed);
        }
        if (part.by_position) {
            unequal.see_positions(part.name, part.index);
        }
    }
    if (is_divided && !names.empty()) {
        unequal.see(names.c_str(), sum);
    }
    return unequal.text;
}

void check_counts(const AnyIndex& index) {
    const std::string unequal = unequal_counts(index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            unequal.empty(),
            "%s: its parts do not match: %s, expected the same number: vectors were added to or removed from only one of them; %s",
            index.class_name().c_str(),
            unequal.c_str(),
            facts_of(index)
                    .remedy
                    .value_or("reset the index and add the vectors again")
                    .c_str());
}

void check_all_counts(const AnyIndex& index) {
    check_counts(index);
    check_itself(index, nullptr);
    for (const IndexPart& part : parts_of(index)) {
        if (part.index) {
            check_all_counts(part.index);
        }
    }
}

void check_computes_distances(const faiss::Index& index) {
    if (index.ntotal == 0 || dynamic_cast<const IndexFlatKernel*>(&index)) {
        return;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            are_all_positions(ids_of(index).value_or(std::vector<idx_t>())),
            "its ids are not the positions of its vectors");
    const std::vector<float> query(index.d);
    const std::unique_ptr<faiss::DistanceComputer> distance(
            index.get_distance_computer());
    distance->set_query(query.data());
    (*distance)(0);
}

} // namespace faiss_ext
