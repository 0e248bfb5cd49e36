// SPDX-License-Identifier: MIT
// Fields of FAISS's classes that are elsewhere in the loaded FAISS. The C++
// tests are linked with the FAISS of the headers, so fields are where the
// compiler has them, until a test moves one.

#include <cstddef>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFAdditiveQuantizerFastScan.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexIVFPQR.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/ProductQuantizer.h>

#include <faiss_ext/indexes/loaded_fields.h>

#include "indexes/ivf_fields.h"
#include "testing.h"

namespace faiss_ext {
namespace {

#define EXPECT_AT_PLACE_OF_HEADERS(CLASS, FIELD)                           \
    {                                                                      \
        const faiss::CLASS object{};                                       \
        EXPECT_EQ(&(object.*loaded<&faiss::CLASS::FIELD>), &object.FIELD); \
    }

TEST(LoadedFields, AreWhereTheHeadersHaveThem){
        FAISS_EXT_MOVABLE_FIELDS(EXPECT_AT_PLACE_OF_HEADERS)}

TEST(LoadedFields, AreReadWhereTheyWereMoved) {
    faiss::IndexFlatL2 quantizer(4);
    faiss::IndexIVFPQR index(&quantizer, 4, 2, 2, 8, 2, 8);
    index.nprobe = 3;
    index.max_codes = 70;
    const ptrdiff_t distance = reinterpret_cast<char*>(&index.max_codes) -
            reinterpret_cast<char*>(&index.nprobe);
    faiss::IndexIVF& base = index;
    move_field("IndexIVFFlat::nprobe", distance);
    EXPECT_EQ(nprobe_of(index), 70);
    EXPECT_EQ(nprobe_of(base), 70);
    EXPECT_EQ(max_codes_of(base), 70);
    move_field("IndexIVFFlat::nprobe", -distance);
    EXPECT_EQ(nprobe_of(index), 3);
    EXPECT_EQ(nprobe_of(base), 3);
}

TEST(LoadedFields, OnlyFieldsThatAreUsedByTheirPlaceMove) {
    EXPECT_THROW(move_field("IndexIVFFlat::nlist", 8), faiss::FaissException);
    EXPECT_THROW(move_field("", 8), faiss::FaissException);
}

} // namespace
} // namespace faiss_ext
