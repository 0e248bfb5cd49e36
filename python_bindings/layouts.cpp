// SPDX-License-Identifier: MIT
// Writes the Python module _layouts: the layouts of FAISS's classes in the
// headers that faiss_ext is compiled with. check_layouts.py compares them with
// the FAISS that is loaded.
//
//   faiss_layouts FILE
//
// Lists the classes that faiss_ext derives from, constructs or reads, and the
// fields that it uses. Fields of FAISS_EXT_MOVABLE_FIELDS may be elsewhere. A
// class that Python cannot construct is listed by a class derived from it. The
// program uses constants only, so it is not linked with FAISS.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include <faiss/IndexAdditiveQuantizerFastScan.h>
#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVFAdditiveQuantizerFastScan.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexIVFPQR.h>
#include <faiss/IndexPQFastScan.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/HNSW.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/ProductQuantizer.h>
#include <faiss/impl/ResidualQuantizer.h>
#include <faiss/impl/io.h>
#include <faiss/invlists/BlockInvertedLists.h>
#include <faiss/invlists/OnDiskInvertedLists.h>
#include <faiss/utils/random.h>

#include <faiss_ext/indexes/loaded_fields.h>

namespace faiss {
struct IndexRefineSearchParameters; // defined since 1.8.0
}

namespace {

std::FILE* out;

// Declares a virtual function after those of T.
template <class T>
struct OneMore : T {
    virtual void one_more() = 0;
};

// Returns how many virtual functions T has. In the Itanium C++ ABI, a pointer
// to a virtual function contains its place in the table.
template <class T>
size_t count_virtual_functions() {
    if constexpr (std::is_polymorphic_v<T>) {
        const auto function = &OneMore<T>::one_more;
        uintptr_t place;
        std::memcpy(&place, &function, sizeof(place));
        return place / sizeof(void*); // without the lowest bit, a flag
    }
    return 0;
}

/// The sizes that a class of the loaded FAISS may have.
struct Sizes {
    size_t least, most;
};

/// Of classes that this library makes in memory that it allocates, with
/// constructors that are compiled here.
template <class T>
constexpr Sizes exact = {sizeof(T), sizeof(T)};

/// Of classes that FAISS's own constructors and destructor make and destroy in
/// memory that this library allocates.
template <class T, size_t room = 0>
constexpr Sizes up_to = {0, sizeof(T) + room};

/// Of classes that only FAISS makes.
constexpr Sizes any = {0, std::numeric_limits<size_t>::max()};

std::string class_name; // that is being written

template <class T>
void begin_class(const char* name, Sizes sizes = exact<T>) {
    class_name = name;
    std::fprintf(
            out,
            "    \"%s\": Layout(%zu, %zu, %zu, {\n",
            name,
            sizes.least,
            sizes.most,
            count_virtual_functions<T>());
}

bool is_movable(const std::string& field) {
#define IS_FIELD(CLASS, FIELD) field == #CLASS "::" #FIELD ||
    return FAISS_EXT_MOVABLE_FIELDS(IS_FIELD) false;
}

void write_field(const char* name, size_t offset, size_t size) {
    std::fprintf(
            out,
            "        \"%s\": Field(%zu, %zu, %s),\n",
            name,
            offset,
            size,
            is_movable(class_name + "::" + name) ? "True" : "False");
}

void end_class() {
    std::fputs("    }),\n", out);
}

#define FIELD(F) write_field(#F, offsetof(T, F), sizeof(T::F));
// for fields that some versions of FAISS do not have, inside templates
#define FIELD_OF_SOME_VERSIONS(F)                       \
    if constexpr (requires(T & object) { object.F; }) { \
        FIELD(F)                                        \
    }

// FIELD of each argument, up to 16
#define FIELDS(...) __VA_OPT__(SCAN(FIRST_FIELD(__VA_ARGS__)))
#define FIRST_FIELD(F, ...) \
    FIELD(F) __VA_OPT__(OTHER_FIELDS PARENTHESES(__VA_ARGS__))
#define OTHER_FIELDS() FIRST_FIELD
#define PARENTHESES ()
#define SCAN(...) SCAN_4(SCAN_4(SCAN_4(SCAN_4(__VA_ARGS__))))
#define SCAN_4(...) SCAN_1(SCAN_1(SCAN_1(SCAN_1(__VA_ARGS__))))
#define SCAN_1(...) __VA_ARGS__

// CLASS(name, field, ...)
#define CLASS(NAME, ...) SIZED_CLASS(NAME, exact<T>, __VA_ARGS__)
#define SIZED_CLASS(NAME, SIZES, ...) \
    {                                 \
        using T = faiss::NAME;        \
        begin_class<T>(#NAME, SIZES); \
        FIELDS(__VA_ARGS__)           \
        end_class();                  \
    }
#define INDEX_FIELDS d, ntotal, verbose, is_trained, metric_type
#define BINARY_FIELDS INDEX_FIELDS, code_size
#define TRANSFORM_FIELDS d_in, d_out, is_trained

template <class T>
void write_fast_lists(const char* name) {
    begin_class<T>(name, any);
    FIELD_OF_SOME_VERSIONS(fine_quantizer)
    FIELD(pq)
    end_class();
}

void write_indexes() {
    CLASS(IndexFlatL2, INDEX_FIELDS, code_size, codes)
    SIZED_CLASS(IndexHNSW, up_to<T>, INDEX_FIELDS, hnsw, own_fields, storage)
    CLASS(IndexPreTransform, INDEX_FIELDS, chain, index, own_fields)
    CLASS(IndexRefine,
          INDEX_FIELDS,
          base_index,
          refine_index,
          own_fields,
          own_refine_index,
          k_factor)
    CLASS(IndexIDMap, INDEX_FIELDS, index, own_fields, id_map)
    SIZED_CLASS(
            IndexIVFFlat,
            any,
            INDEX_FIELDS,
            quantizer,
            nlist,
            quantizer_trains_alone,
            own_fields,
            cp,
            nprobe,
            max_codes,
            invlists,
            direct_map)
    SIZED_CLASS(IndexIVFPQR, any, k_factor)
    write_fast_lists<faiss::IndexIVFPQFastScan>("IndexIVFPQFastScan");
    SIZED_CLASS(IndexIVFResidualQuantizerFastScan, any, aq)
    SIZED_CLASS(IndexPQFastScan, any, pq)
    SIZED_CLASS(IndexResidualQuantizerFastScan, any, aq)
}

void write_binary_indexes() {
    CLASS(IndexBinaryFlat, BINARY_FIELDS, xb)
    SIZED_CLASS(
            IndexBinaryHNSW, up_to<T>, BINARY_FIELDS, hnsw, own_fields, storage)
    SIZED_CLASS(
            IndexBinaryIVF,
            (up_to<T, faiss_ext::room_for_fields>),
            BINARY_FIELDS,
            invlists,
            own_invlists,
            nprobe,
            max_codes,
            direct_map,
            quantizer,
            nlist,
            own_fields,
            cp,
            clustering_index)
    CLASS(IndexBinaryIDMap, BINARY_FIELDS, index, own_fields, id_map)
    CLASS(IndexBinaryHash, BINARY_FIELDS, invlists, b)
    CLASS(IndexBinaryMultiHash, BINARY_FIELDS, storage, maps, nhash, b, nflip)
}

void write_parts() {
    CLASS(HNSW,
          assign_probas,
          cum_nneighbor_per_level,
          levels,
          offsets,
          neighbors,
          entry_point,
          rng,
          max_level,
          efConstruction,
          efSearch,
          check_relative_distance,
          search_bounded_queue)
    CLASS(HNSWStats, n1, ndis)
    CLASS(RandomGenerator)
    SIZED_CLASS(
            ClusteringParameters, any, niter, nredo, max_points_per_centroid)
    CLASS(ArrayInvertedLists, nlist, code_size, codes, ids)
    CLASS(OnDiskInvertedLists, read_only)
    SIZED_CLASS(BlockInvertedLists, any, nlist, block_size)
    CLASS(DirectMap, type, array)
    SIZED_CLASS(ProductQuantizer, any, centroids)
    SIZED_CLASS(ResidualQuantizer, any, codebooks)
    CLASS(PCAMatrix,
          TRANSFORM_FIELDS,
          A,
          b,
          have_bias,
          is_orthonormal,
          eigen_power,
          random_rotation,
          max_points_per_d,
          mean,
          eigenvalues,
          PCAMat)
    CLASS(OPQMatrix, TRANSFORM_FIELDS, M)
    CLASS(NormalizationTransform, TRANSFORM_FIELDS, norm)
}

void write_arguments() {
    CLASS(SearchParameters, sel)
    CLASS(SearchParametersIVF, sel, nprobe, max_codes, quantizer_params)
    CLASS(SearchParametersPreTransform, sel, index_params)
    CLASS(RangeSearchResult, nq, lims, labels, distances)
    CLASS(IDSelectorRange, imin, imax)
    CLASS(IDSelectorArray, n, ids)
    CLASS(IDSelectorBatch)
    CLASS(IDSelectorBitmap, n, bitmap)
    CLASS(VectorIOReader, data)
    CLASS(VectorIOWriter, data)
    CLASS(FileIOReader, f, need_close)
}

template <class T>
void write_graph_parameters() {
    begin_class<T>("SearchParametersHNSW");
    FIELD(sel)
    FIELD(efSearch)
    FIELD(check_relative_distance)
    FIELD_OF_SOME_VERSIONS(bounded_queue)
    end_class();
}

template <class T>
void write_refine_parameters() {
    if constexpr (requires { sizeof(T); }) {
        begin_class<T>("IndexRefineSearchParameters");
        FIELD(sel)
        FIELD(k_factor)
        FIELD(base_index_params)
        end_class();
    }
}

template <class T>
void write_group(const char* name) {
    begin_class<T>(name);
    FIELD_OF_SOME_VERSIONS(own_fields)
    FIELD_OF_SOME_VERSIONS(own_indices)
    end_class();
}

} // namespace

int main(int, char** argv) {
    out = std::fopen(argv[1], "w");
    if (!out) {
        std::perror(argv[1]);
        return 1;
    }
    std::fputs(
            "# SPDX-License-Identifier: MIT\n"
            "\"\"\"Layouts of FAISS's classes, written by layouts.cpp.\"\"\"\n\n"
            "from collections import namedtuple\n\n"
            "# offsets and sizes in bytes\n"
            "Field = namedtuple(\"Field\", \"offset size is_movable\")\n"
            "# fields by their names\n"
            "Layout = namedtuple(\n"
            "    \"Layout\", \"least_size most_size virtual_functions fields\")\n\n"
            "LAYOUTS = {\n",
            out);
    write_indexes();
    write_binary_indexes();
    write_parts();
    write_arguments();
    write_graph_parameters<faiss::SearchParametersHNSW>();
    write_refine_parameters<faiss::IndexRefineSearchParameters>();
    write_group<faiss::IndexShards>("IndexShards");
    write_group<faiss::IndexReplicas>("IndexReplicas");
    std::fputs("}\n", out);
    return std::fclose(out) == 0 ? 0 : 1;
}
