// SPDX-License-Identifier: MIT
#include "io/binary_flat_files.h"

#include <cstring>
#include <string_view>

#include <faiss/IndexIDMap.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include "core/aligned_arrays.h"
#include "core/errors.h"
#include "core/field_files.h"
#include "core/io_fields.h"
#include "io/io_compat.h"

namespace faiss_ext {

namespace {

using faiss::IndexBinary;
using faiss::IndexBinaryIDMap;
using faiss::IndexBinaryIDMap2;
using faiss::IOReader;
using faiss::IOWriter;

constexpr size_t name_size = 4;
constexpr std::string_view flat = "IBxF", id_map = "IBMp", id_map_2 = "IBM2";

void write_header(const IndexBinary& index, IOWriter* f) {
    write_value(f, int32_t(index.d));
    write_value(f, int32_t(index.code_size));
    write_value(f, int64_t(index.ntotal));
    write_value(f, index.is_trained);
    write_value(f, int32_t(index.metric_type));
}

void read_header(IndexBinary& index, IOReader* f) {
    index.d = read_value_in<int32_t>(f, "d", 8, 1 << 24);
    index.code_size = read_value_in<int32_t>(f, "code_size", 0, index.d / 8);
    FAISS_EXT_THROW_IF_NOT_FMT( // IDMap of FAISS 1.7.3 has 0
            index.code_size * 8 == index.d || index.code_size == 0,
            "%s is damaged: a code has %d bytes, expected those of %d bits",
            name_of(*f).c_str(),
            int(index.code_size),
            index.d);
    index.ntotal = read_value_in<int64_t>(f, "ntotal", 0, int64_t(1) << 36);
    index.is_trained = read_value<bool>(f, "is_trained");
    index.metric_type = faiss::MetricType(read_value_in<int32_t>(
            f, "metric_type", faiss::METRIC_L2, faiss::METRIC_L2));
}

void check_size(uint64_t n, uint64_t expected, const char* what, IOReader* f) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            n == expected,
            "%s is damaged: %s has %" PRIu64 " elements, expected %" PRIu64,
            name_of(*f).c_str(),
            what,
            n,
            expected);
}

std::unique_ptr<IndexBinary> read_flat(IOReader* f) {
    auto index = std::make_unique<IndexBinaryFlatSIMD>();
    read_header(*index, f);
    check_size(index->code_size * 8, index->d, "a code", f);
    const auto size = read_value<uint64_t>(f, "codes");
    check_size(size, index->ntotal * index->code_size, "codes", f);
    if (auto range = map_items(f, size, 1, 1, "codes")) {
        index->mapped = *std::move(range);
    }
    return index;
}

template <class Map>
std::unique_ptr<IndexBinary> read_id_map(IOReader* f) {
    const Nesting nesting(f->name);
    auto index = std::make_unique<Map>();
    index->own_fields = true;
    read_header(*index, f);
    index->index = read_mapped_flat(f).release();
    if (!index->index) {
        return nullptr;
    }
    read_vector(f, index->id_map, index->ntotal, "id_map");
    check_size(index->index->ntotal, index->ntotal, "the index inside", f);
    check_size(index->index->d, index->d, "a vector of the index inside", f);
    if constexpr (std::is_same_v<Map, IndexBinaryIDMap2>) {
        index->construct_rev_map();
    }
    return index;
}

} // namespace

std::unique_ptr<IndexBinary> read_mapped_flat(IOReader* f) {
    const auto* mapping = dynamic_cast<const MapsArrays*>(f);
    if (!mapping) {
        return nullptr;
    }
    const uint64_t begin = mapping->position();
    char name[name_size] = {};
    std::unique_ptr<IndexBinary> index;
    if ((*f)(name, 1, name_size) == name_size) {
        const std::string_view read(name, name_size);
        index = read == flat       ? read_flat(f)
                : read == id_map   ? read_id_map<IndexBinaryIDMap>(f)
                : read == id_map_2 ? read_id_map<IndexBinaryIDMap2>(f)
                                   : nullptr;
    }
    if (!index) {
        step_back(f, mapping->position() - begin);
    }
    return index;
}

bool write_mapped_flat(const IndexBinary& index, IOWriter* f) {
    const auto* map = dynamic_cast<const IndexBinaryIDMap*>(&index);
    const IndexBinary* inside = &index;
    while (const auto* outer = dynamic_cast<const IndexBinaryIDMap*>(inside)) {
        inside = outer->index;
    }
    const auto* codes = dynamic_cast<const IndexBinaryFlatSIMD*>(inside);
    if (!codes || !codes->mapped) {
        return false;
    }
    const std::string_view name = !map                    ? flat
            : dynamic_cast<const IndexBinaryIDMap2*>(map) ? id_map_2
                                                          : id_map;
    write_bytes(f, name.data(), name_size);
    write_header(index, f);
    if (map) {
        write_mapped_flat(*map->index, f);
        write_vector(f, map->id_map);
    } else {
        write_value(f, uint64_t(codes->mapped.size));
        write_bytes(f, codes->mapped.in_order, codes->mapped.size);
    }
    return true;
}

} // namespace faiss_ext
