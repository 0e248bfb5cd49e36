// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/loaded_fields.h>

#include <cstring>
#include <string_view>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexIVFAdditiveQuantizerFastScan.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexIVFPQR.h>
#include <faiss/impl/ProductQuantizer.h>

#include "core/errors.h"

namespace faiss_ext {

namespace {

struct MovableField {
    std::string_view name;
    void* pointer; ///< to a pointer to a member
};

#define MOVABLE_FIELD(CLASS, FIELD) \
    {#CLASS "::" #FIELD, &loaded<&faiss::CLASS::FIELD>},
const MovableField movable_fields[] = {FAISS_EXT_MOVABLE_FIELDS(MOVABLE_FIELD)};

} // namespace

void move_field(const char* name, std::ptrdiff_t distance) {
    for (const MovableField& field : movable_fields) {
        if (field.name == name) {
            // in the Itanium C++ ABI, a pointer to a member is its offset
            std::ptrdiff_t offset;
            std::memcpy(&offset, field.pointer, sizeof(offset));
            offset += distance;
            std::memcpy(field.pointer, &offset, sizeof(offset));
            return;
        }
    }
    FAISS_EXT_THROW_FMT(
            "move_field: '%s' is not one of FAISS_EXT_MOVABLE_FIELDS", name);
}

} // namespace faiss_ext
