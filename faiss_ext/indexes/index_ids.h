// SPDX-License-Identifier: MIT
// Ids of your choice, for the indexes that factory strings make.
//
// The classes of this library take ids if index_factory, index_binary_factory,
// read_index or clone_index made the index: add_with_ids works without `IDMap`
// in the string, and remove_ids leaves the ids of the other vectors as they
// are. The first of these calls gives the index a table of its ids, with the
// rules of IndexIDTable. Until then, ids are positions. To give ids to an index
// that you construct yourself, or to an index of another program, put an
// IndexIDTable around it.
//
// The virtual methods of FAISS take and return these ids. Members of the
// classes use positions: IndexFlatCodes::codes, the lists of IndexBinaryIVF and
// its search_preassigned. IndexHNSW::search_level_0 uses vertices of the graph.
// FAISS's own functions in C++, such as faiss::write_index_binary, use
// positions. A selector or a kernel that calls the index during a search gets
// positions, too.

#pragma once

#include <functional>
#include <typeinfo>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/index_tree.h>

namespace faiss_ext {

/// Replaces vectors as IndexIDTable::update_vectors does. Throws
/// UnsupportedError if the index takes no ids, or cannot replace vectors.
void update_vectors(
        faiss::Index& index,
        idx_t n,
        const idx_t* ids,
        const float* x);
void update_vectors(
        faiss::IndexBinary& index,
        idx_t n,
        const idx_t* ids,
        const uint8_t* codes);

/// Replaces the vectors whose ids exist, and adds the others. Returns the
/// number of replaced vectors.
idx_t upsert(faiss::Index& index, idx_t n, const float* x, const idx_t* ids);
idx_t upsert(
        faiss::IndexBinary& index,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids);

/// Whether an index has a table of ids of its own. Its ids are then not
/// positions.
bool has_id_table(const AnyIndex& index);

/// Tells for each of n ids whether a vector has it.
void contains(const AnyIndex& index, idx_t n, const idx_t* ids, bool* found);

/// The vectors or codes of n ids, as reconstruct returns them. Throws like it
/// for the first id without a vector.
void reconstruct_batch(
        const faiss::Index& index,
        idx_t n,
        const idx_t* ids,
        float* recons);
void reconstruct_batch(
        const faiss::IndexBinary& index,
        idx_t n,
        const idx_t* ids,
        uint8_t* recons);

/// An index that can have a table of ids.
template <class IndexT>
struct HasIds {
    virtual ~HasIds() = default;

    /// The table, or null as long as ids are positions.
    virtual IndexIDTableTemplate<IndexT>* id_table() const = 0;

    /** Changes the index by calls of the table.
     *
     * The table is made if there is none. If f throws or returns false, a new
     * table is deleted again. If the inverted lists of the index have ids other
     * than positions, as in some files, it returns false and does not call f.
     */
    virtual bool change(
            const std::function<bool(IndexIDTableTemplate<IndexT>&)>& f) = 0;

    /// Gives all vectors ids. next_id must be above all ids that were ever
    /// used.
    virtual void set_ids(std::vector<idx_t> ids, idx_t next_id) = 0;

    /// The class of the index; typeid gives one derived from it.
    virtual const std::type_info& index_class() const = 0;

    /// The index as a pointer to an object of this class.
    virtual const void* as_index_class() const = 0;
};

} // namespace faiss_ext
