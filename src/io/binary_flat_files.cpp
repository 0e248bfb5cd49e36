// SPDX-License-Identifier: MIT
#include "io/binary_flat_files.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexIDMap.h>
#include <faiss/index_io.h>
#include <faiss/utils/hamming.h>

#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>

#include "core/aligned_arrays.h"
#include "core/errors.h"
#include "core/field_files.h"
#include "core/io_fields.h"
#include "indexes/with_ids.h"
#include "io/io_compat.h"

namespace faiss_ext {

namespace {

using faiss::IndexBinary;
using faiss::IndexBinaryIDMap;
using faiss::IndexBinaryIDMap2;
using faiss::IndexBinaryMultiHash;
using faiss::IOReader;
using faiss::IOWriter;

constexpr size_t name_size = 4;
constexpr std::string_view flat = "IBxF", id_map = "IBMp", id_map_2 = "IBM2",
                           multi_hash = "IBHm";

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
    FAISS_EXT_THROW_IF_NOT_FMT( // 0: IDMap of FAISS 1.7.3
            index.code_size * 8 == index.d || index.code_size == 0,
            "%s is damaged: codes of %d bits need %d bytes, the file has %d",
            name_of(*f).c_str(),
            index.d,
            index.d / 8,
            int(index.code_size));
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
    auto index = make_with_ids<IndexBinaryFlatSIMD>();
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

/// Returns the number of bits in which FAISS writes the ids of vectors and the
/// sizes of buckets.
int bits_of_ids(size_t ntotal) {
    return int(std::bit_width(ntotal == 0 ? 0 : ntotal - 1));
}

/// Returns whether the size of a bucket does not fit into FAISS's bits, so that
/// its reader takes the bucket for empty.
bool loses_bucket(const IndexBinaryMultiHash& index) {
    const size_t most = (size_t(1) << bits_of_ids(index.ntotal)) - 1;
    return std::any_of(
            index.maps.begin(), index.maps.end(), [&](const auto& map) {
                return std::any_of(
                        map.begin(), map.end(), [&](const auto& bucket) {
                            return bucket.second.size() > most;
                        });
            });
}

/// Writes with one bit more than FAISS uses. The file contains the number of
/// bits.
void write_multi_hash(const IndexBinaryMultiHash& index, IOWriter* f) {
    write_bytes(f, multi_hash.data(), name_size);
    write_header(index, f);
    faiss::write_index_binary(index.storage, f);
    write_value(f, index.b);
    write_value(f, index.nhash);
    write_value(f, index.nflip);
    const int id_bits = bits_of_ids(index.ntotal) + 1;
    for (const auto& map : index.maps) {
        write_value(f, id_bits);
        write_value(f, uint64_t(map.size()));
        const size_t bits =
                map.size() * (index.b + id_bits) + index.ntotal * id_bits;
        std::vector<uint8_t> bytes((bits + 7) / 8);
        faiss::BitstringWriter writer(bytes.data(), bytes.size());
        for (const auto& [hash, ids] : map) {
            writer.write(hash, index.b);
            writer.write(ids.size(), id_bits);
            for (idx_t id : ids) {
                writer.write(id, id_bits);
            }
        }
        write_vector(f, bytes);
    }
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

bool write_where_faiss_fails(const IndexBinary& index, IOWriter* f) {
    const auto* map = dynamic_cast<const IndexBinaryIDMap*>(&index);
    const IndexBinary* inside = &index;
    while (const auto* outer = dynamic_cast<const IndexBinaryIDMap*>(inside)) {
        inside = outer->index;
    }
    const auto* codes = dynamic_cast<const IndexBinaryFlatSIMD*>(inside);
    const auto* tables = dynamic_cast<const IndexBinaryMultiHash*>(inside);
    const bool is_mapped = codes && codes->mapped;
    if (!is_mapped && !(tables && loses_bucket(*tables))) {
        return false;
    }
    if (map) {
        const auto name =
                dynamic_cast<const IndexBinaryIDMap2*>(map) ? id_map_2 : id_map;
        write_bytes(f, name.data(), name_size);
        write_header(index, f);
        write_where_faiss_fails(*map->index, f);
        write_vector(f, map->id_map);
    } else if (is_mapped) {
        write_bytes(f, flat.data(), name_size);
        write_header(index, f);
        write_value(f, uint64_t(codes->mapped.size));
        write_bytes(f, codes->mapped.sequential, codes->mapped.size);
    } else {
        write_multi_hash(*tables, f);
    }
    return true;
}

} // namespace faiss_ext
