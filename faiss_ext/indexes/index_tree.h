// SPDX-License-Identifier: MIT
// The tree of an index: the indexes inside it, and a description of each class.
// Factory strings, texts, search parameters, kernel values, files and checks
// walk this tree. A class is described once, by register_index_class.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexBinary.h>
#include <faiss/VectorTransform.h>

#include <faiss_ext/core/SparseVectors.h>
#include <faiss_ext/core/VectorBatch.h>
#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/PlaceMoves.h>
#include <faiss_ext/kernels/Kernel.h>

namespace faiss_ext {

struct KernelExceptions;

/// A float or binary index, or none. It owns nothing.
struct AnyIndex {
    const faiss::Index* floats = nullptr;
    const faiss::IndexBinary* binary = nullptr;

    AnyIndex() = default;
    AnyIndex(const faiss::Index* index) : floats(index) {}
    AnyIndex(const faiss::IndexBinary* index) : binary(index) {}
    AnyIndex(const faiss::Index& index) : floats(&index) {}
    AnyIndex(const faiss::IndexBinary& index) : binary(&index) {}

    explicit operator bool() const {
        return floats || binary;
    }

    /// The index as an object of class C, or null.
    template <class C>
    const C* as() const {
        return floats ? dynamic_cast<const C*>(floats)
                      : dynamic_cast<const C*>(binary);
    }

    /// Calls f with the index, which must not be none.
    template <class F>
    decltype(auto) visit(F&& f) const {
        return floats ? f(*floats) : f(*binary);
    }

    /// The class of the index, not of the wrapper that adds a table of ids.
    const std::type_info& type() const;
    /// As in Python: `IndexBinaryIDMap2`.
    std::string class_name() const;
    idx_t ntotal() const;
};

/// An index directly inside another one.
struct IndexPart {
    const char* name; ///< for messages: "storage"; a literal
    AnyIndex index;
    /// A search of the index searches this part.
    bool is_searched = false;
    /// Distances of the index are distances of this part.
    bool compares = false;
    /// The index uses labels of this part as positions of its own vectors.
    bool by_position = false;
    /// The part is a quantizer: it finds inverted lists and holds no vectors.
    bool is_quantizer = false;
    /// The index returns what this part returns for the transformed vectors; if
    /// by_position, with its own ids instead of the positions.
    bool answers = false;
    /// The number of vectors that the index has removed, but the part has not.
    idx_t num_removed = 0;
    /// The part gets vectors of another kind: the index takes packed bits, and
    /// the part's hash gets them as vectors.
    bool is_of_other_kind = false;
};

/// How the distances of an index tell kernel values.
enum class DistanceKind {
    other,      ///< not at all
    kernel,     ///< values or squared distances under kernel_of, by the metric
    scaled,     ///< squared distances under kernel_of, times 2^29
    hamming,    ///< between codes of the hash that vectors pass
    asymmetric, ///< IndexAsymmetricHash's, between queries and such codes
};

/// A number by which an index trades speed for quality.
struct SearchParameter {
    /// Where the number is stored.
    struct Member {
        std::function<double()> get;
        std::function<void(double)> set;
    };

    std::string name;
    bool is_integer;
    double least, most;
    std::vector<double> values; ///< worth trying, ascending
    /// One, or one for each of the parts of Shards or Replicas.
    std::vector<Member> members;

    double get() const;           ///< of the first member
    void set(double value) const; ///< of all members, without checks

    /// The values that it can have, in words: "an integer from 1 to 64".
    std::string expected() const;
};

namespace internal {

template <class IndexT>
using Owned = std::vector<std::unique_ptr<IndexT>>;

template <class C>
struct OwnedPartsOf {
    using type = Owned<std::conditional_t<
            std::is_base_of_v<faiss::Index, C>,
            faiss::Index,
            faiss::IndexBinary>>;
};

template <>
struct OwnedPartsOf<const AnyIndex> {
    using type = std::variant<Owned<faiss::Index>, Owned<faiss::IndexBinary>>;
};

} // namespace internal

/// Parts for an index of class C: a vector of std::unique_ptr<faiss::Index>, or
/// of std::unique_ptr<faiss::IndexBinary> if C is binary.
template <class C>
using OwnedParts = typename internal::OwnedPartsOf<C>::type;

/** A function that computes a fact from an index of class I, or no function. It
 * is stored as a function of any index, so that all classes of indexes share
 * one type. Otherwise the compiler would make hundreds of types.
 */
template <class Signature>
struct IndexFunction;

template <class R, class... Args>
struct IndexFunction<R(const AnyIndex&, Args...)>
        : std::function<R(const AnyIndex&, Args...)> {
    using std::function<R(const AnyIndex&, Args...)>::function;
};

template <class R, class I, class... Args>
struct IndexFunction<R(I&, Args...)> {
    IndexFunction<R(const AnyIndex&, Args...)> on_any;

    IndexFunction() = default;

    template <class F>
    requires std::is_invocable_r_v<R, F&, I&, Args...> IndexFunction(F f)
            : on_any([f](const AnyIndex& index, Args... args) -> R {
                  const auto* own = index.as<std::remove_const_t<I>>();
                  return f(const_cast<I&>(*own), args...);
              }) {}

    operator const IndexFunction<R(const AnyIndex&, Args...)>&() const {
        return on_any;
    }
};

/// The same for a function that takes parts of the index's own kind.
template <class I, class IndexT>
struct IndexFunction<void(I&, internal::Owned<IndexT>)> {
    IndexFunction<void(const AnyIndex&, OwnedParts<const AnyIndex>)> on_any;

    IndexFunction() = default;

    template <class F>
    requires std::is_invocable_v<F&, I&, internal::Owned<IndexT>> IndexFunction(
            F f)
            : on_any([f](const AnyIndex& index,
                         OwnedParts<const AnyIndex> parts) {
                  f(const_cast<I&>(*index.as<I>()),
                    std::get<internal::Owned<IndexT>>(std::move(parts)));
              }) {}

    operator const IndexFunction<
            void(const AnyIndex&, OwnedParts<const AnyIndex>)>&() const {
        return on_any;
    }
};

/** The description of the indexes of class C. All members are optional. If you
 * omit a member, the base class's member is used. If no base class has it, the
 * default is none, unless the member names another one.
 */
template <class C>
struct IndexClass {
    IndexFunction<std::vector<IndexPart>(const C&)> parts;

    /** Makes an index of a registered class (register_index) the owner of its
     * parts, after its fields were set by a string or read from a file. From
     * then on, `parts` must list them in this order. Throws if the parts do not
     * match; the index is then destroyed.
     *
     * The function receives as many parts as `parts` lists, even if these are
     * null. If `parts` lists none, the function must check their number. No
     * part that it receives is null. All have the dimension and the metric of
     * the index. Each has ntotal vectors, or, if divides_vectors, their counts
     * add up to ntotal.
     *
     * Files contain the parts of such a class behind its fields. If it has one
     * part, `NAME(...),<index>` makes it in factories.
     */
    IndexFunction<void(C&, OwnedParts<C>)> take_parts;

    /// The transformations that vectors pass on their way to the parts, such as
    /// a hash.
    IndexFunction<std::vector<const faiss::VectorTransform*>(const C&)>
            transforms;

    /// The kernel under which the index itself compares vectors.
    IndexFunction<const Kernel*(const C&)> kernel;

    /// How the distances that the index itself computes tell kernel values. By
    /// default not at all.
    std::optional<DistanceKind> distance_kind;

    /// The settings that a text shows after the parts, such as `nprobe=8`.
    IndexFunction<std::vector<std::string>(const C&)> settings;

    /// The search parameters of the index without its parts. Parameters of
    /// parts are found through them.
    IndexFunction<std::vector<SearchParameter>(C&)> parameters;

    /// The factory string; empty if there is none. By default it is made from
    /// the fields of a registered class (register_index).
    IndexFunction<std::string(const C&)> string;

    /// The ids that reconstruct takes, in any order, if they are not positions.
    IndexFunction<std::vector<idx_t>(const C&)> ids;

    /// Converts ids of the index to ids of a part; -1 if the part does not have
    /// the vector. By default they are the same.
    IndexFunction<std::vector<
            idx_t>(const C&, size_t part, const std::vector<idx_t>& ids)>
            ids_in_part;

    /// Vectors as the parts see them. By default they are the same. Sparse ones
    /// come only if the index takes them.
    IndexFunction<std::vector<float>(const C&, const VectorBatch& x)>
            transformed;

    /// The id that add gives to its next vector. If omitted, the searched part
    /// is asked. Without such a part, it is ntotal.
    IndexFunction<idx_t(const C&)> next_id;

    /// Other counts that must equal ntotal, with their names.
    IndexFunction<std::vector<std::pair<std::string, idx_t>>(const C&)> counts;

    /// Holds exceptions that a kernel has thrown inside FAISS's loops.
    IndexFunction<KernelExceptions*(const C&)> exceptions;

    /// Throws if members were changed in a way that FAISS would not notice.
    IndexFunction<void(const C&)> check;

    /// Bytes of memory that n vectors like the stored ones need, in addition to
    /// their size in a file. If omitted, it is the sum over the searched parts,
    /// or 0 if there are none.
    IndexFunction<double(const C&, idx_t n)> extra_memory;

    /// Prepares the removal of vectors by their places: the last vectors take
    /// the places of removed ones. Ids that equal places change with them.
    /// Throws if the index cannot be changed. Returns a function that makes the
    /// change and does not fail, or null if a part cannot remove by places. The
    /// moves must outlive this function. They may move vectors that are added
    /// before it is called.
    IndexFunction<std::function<void()>(C&, const PlaceMoves&)> prepare_moves;

    /// Approximate unused capacity, in vectors. If omitted, it is the capacity
    /// of the only part if that part is searched, and 0 otherwise.
    IndexFunction<idx_t(const C&)> unused_places;

    /// Frees the memory that removed vectors still need, in the index without
    /// its parts. Ids stay as they are.
    IndexFunction<void(C&)> compact;

    /// The number of vectors in each inverted list. If omitted, the lists of
    /// the searched part are counted, unless the parts divide the vectors.
    IndexFunction<std::vector<idx_t>(const C&)> list_sizes;

    /// Whether the index takes ids and keeps them after a removal. If omitted,
    /// the searched part is asked. Without such a part, it is false.
    std::optional<bool> keeps_ids;

    /// Whether searches return only selected vectors if plain search parameters
    /// have a selector. If omitted, the searched parts are asked. Without such
    /// parts, it is false.
    std::optional<bool> selects;

    /// Returns search parameters for a filtered search with about the same
    /// recall as without a filter. The argument is the selected share of the
    /// vectors, from 0 to 1. If omitted, the part is asked that gets the
    /// parameters of a search. Without such a part, the result is plain
    /// parameters.
    IndexFunction<
            std::unique_ptr<faiss::SearchParameters>(const C&, double selected)>
            params_for_selected;

    /// Whether all functions check their input and the sizes of the parts. If
    /// omitted, it is true for registered classes (register_index) without
    /// take_parts.
    std::optional<bool> checks_calls;

    /// Whether each vector is in one of the parts. By default it is in all of
    /// them.
    std::optional<bool> divides_vectors;

    /// Whether FAISS's own functions cannot write, read or copy the index,
    /// whatever is inside. If omitted, it is true for registered classes
    /// (register_index).
    std::optional<bool> is_foreign_to_faiss;

    /// Whether merge_from takes as long as adding the vectors. By default as
    /// for the parts that are searched.
    std::optional<bool> merges_slowly;

    /// The number of vectors that an untrained index needs for its training. By
    /// default the most that a part that is searched needs.
    IndexFunction<idx_t(const C&)> least_training;

    /// Advice for the error message if the parts hold different numbers of
    /// vectors.
    std::optional<std::string> remedy;
};

/** Describes a class of indexes, of this library or another one. C derives from
 * faiss::Index or faiss::IndexBinary. Describe base classes first. Throws if C
 * is described already.
 */
template <class C>
void register_index_class(const IndexClass<C>& facts);

// The functions below take indexes of this library and of FAISS.

/// The indexes directly inside an index.
std::vector<IndexPart> parts_of(const AnyIndex& index);

/// The parts that texts show: all except flat quantizers, which are the usual
/// ones.
std::vector<IndexPart> shown_parts(const AnyIndex& index);

std::vector<const faiss::VectorTransform*> transforms_of(const AnyIndex& index);

/// n vectors as the parts of an index see them.
std::vector<float> transformed(const AnyIndex& index, idx_t n, const float* x);

/// The same for sparse vectors and an index that transforms them.
std::vector<float> transformed(
        const faiss::Index& index,
        const SparseVectors& x);

/// The kernel under which an index itself compares vectors, or null.
const Kernel* kernel_of(const AnyIndex& index);

/// How the distances that an index itself computes tell kernel values.
DistanceKind distance_kind(const AnyIndex& index);

/// Whether merge_from of an index takes as long as adding the vectors.
bool merges_slowly(const AnyIndex& index);

/// The part whose distances an index returns, inside any number of wrappers; or
/// the index itself, if it computes them. Throws if the index is divided into
/// parts whose strings differ.
AnyIndex part_that_compares(const AnyIndex& index);

/// The part that stores the vectors, through any number of wrappers with one
/// part; the index itself if there is none.
AnyIndex part_that_stores(const AnyIndex& index);

/// The part of an index, or of its first shard, that gets vectors
/// untransformed. This is the first part with transformations, or the innermost
/// part if there is none.
AnyIndex part_in_front(const AnyIndex& index);

/// Whether an index has ids that stay as they are after a removal: in inverted
/// lists, an ID map, or a table of its own. Otherwise ids are positions.
bool keeps_ids(const AnyIndex& index);

/// The ids of all vectors of an index, in no particular order. Throws
/// UnsupportedError if only shards or hash tables have them.
std::vector<idx_t> index_ids(const AnyIndex& index);

/// The number of vectors in each inverted list of an index or of the part of it
/// that is searched. Throws UnsupportedError if there are no lists, or if each
/// of several shards has its own.
std::vector<idx_t> list_sizes(const AnyIndex& index);

/// Whether each vector is in one of the parts, and not in all of them.
bool divides_vectors(const AnyIndex& index);

/** A text that shows what is in an index, such as
 *
 *     IndexHNSWKernel(IndexFlatKernel(chi2), efSearch=16, d=64, ntotal=0)
 */
std::string index_text(const AnyIndex& index);

/// The metric of a float index in texts and commands, such as l2, ip or
/// canberra; empty for a binary index.
std::string metric_text(const AnyIndex& index);

/// The text of an index without its dimension and size.
std::string structure_text(const AnyIndex& index);

/// The transformations, kernel and settings of one index, without its parts, as
/// texts show them: `chi2`, `nlist=8`.
std::vector<std::string> settings_of(const AnyIndex& index);

/** The factory string that makes an empty index like this one.
 *
 * It includes values that training has chosen, such as the bandwidth of a
 * kernel, and search parameters that strings can have. The metric is not part
 * of it. Throws if the index or a part of it has no factory string.
 */
std::string index_string(const AnyIndex& index);

/** The search parameters of an index and of all its parts.
 *
 * Parameters of the innermost part come first. A parameter of Shards or
 * Replicas stands for the parameters of all its parts. The parameters of a
 * quantizer are called `quantizer_...`, and a name that occurs twice gets the
 * suffix `_rf`. They refer to the index, which must live longer.
 */
std::vector<SearchParameter> search_parameters(faiss::Index& index);
std::vector<SearchParameter> search_parameters(faiss::IndexBinary& index);

/// Throws if an index has no search parameter with this name, or if it cannot
/// have this value.
void check_search_parameter(
        const AnyIndex& index,
        const std::string& name,
        double value);

/// Sets a search parameter by its name. Throws like check_search_parameter, and
/// then changes nothing.
void set_search_parameter(
        faiss::Index& index,
        const std::string& name,
        double value);
void set_search_parameter(
        faiss::IndexBinary& index,
        const std::string& name,
        double value);

/// The search parameters that an index has at present.
struct SavedSearchParameters {
    explicit SavedSearchParameters(faiss::Index& index);
    explicit SavedSearchParameters(faiss::IndexBinary& index);

    /// Gives them to the index again, which must still exist.
    void apply() const;

   private:
    std::vector<std::pair<SearchParameter::Member, double>> values;
    void save(const std::vector<SearchParameter>& parameters);
};

/// Bytes of memory that n vectors like the stored ones need, in addition to
/// their size in a file.
double extra_memory(const AnyIndex& index, idx_t n);

/// The approximate unused capacity of an index, in vectors.
idx_t unused_places(const AnyIndex& index);

/// Rebuilds all graphs of an index and its parts from which vectors were
/// removed, as IndexHNSWKernel::compact does. Has no effect if there are none.
void compact(faiss::Index& index);
void compact(faiss::IndexBinary& index);

/** Computes exact kernel values of queries and stored vectors, for an index
 * whose part_that_compares is an IndexFlatKernel.
 *
 * Throws unless each id, except -1, belongs to exactly one vector.
 *
 * @param x       queries, size n * d
 * @param ids     for each query the ids of k vectors, size n * k; -1 for none
 * @param values  size n * k; 0 at id -1
 */
void compute_kernel_values(
        const faiss::Index& index,
        idx_t n,
        const float* x,
        idx_t k,
        const idx_t* ids,
        float* values);

/// The same for sparse queries and an index that takes them.
void compute_kernel_values(
        const faiss::Index& index,
        const SparseVectors& x,
        idx_t k,
        const idx_t* ids,
        float* values);

namespace internal {

// All facts of an IndexClass in their order. This is the only list of them. If
// one is missing, the compiler reports an error.
#define FAISS_EXT_FACTS                                                 \
    parts, take_parts, transforms, kernel, distance_kind, settings,     \
            parameters, string, ids, ids_in_part, transformed, next_id, \
            counts, exceptions, check, extra_memory, prepare_moves,     \
            unused_places, compact, list_sizes, keeps_ids, selects,     \
            params_for_selected, checks_calls, divides_vectors,         \
            is_foreign_to_faiss, merges_slowly, least_training, remedy

/// References to all facts of an IndexClass.
template <class Facts>
auto all_facts(Facts& facts) {
    auto& [FAISS_EXT_FACTS] = facts;
    return std::tie(FAISS_EXT_FACTS);
}

/// The same facts about any index.
template <class C>
IndexClass<const AnyIndex> on_any(const IndexClass<C>& facts) {
    const auto& [FAISS_EXT_FACTS] = facts;
    return {FAISS_EXT_FACTS};
}

#undef FAISS_EXT_FACTS

void register_index_class(
        const std::type_info& type,
        const std::function<bool(const AnyIndex&)>& matches,
        const IndexClass<const AnyIndex>& facts);

/// Called when a class gets fields.
void forget_facts();

} // namespace internal

template <class C>
void register_index_class(const IndexClass<C>& facts) {
    internal::register_index_class(
            typeid(C),
            [](const AnyIndex& index) { return index.as<C>() != nullptr; },
            internal::on_any(facts));
}

} // namespace faiss_ext
