// SPDX-License-Identifier: MIT
// Hashes whose number of bits is not a multiple of 8, and indexes of their
// codes.

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/IndexAsymmetricHash.h>
#include <faiss_ext/io/clone_index.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>

#include "testing.h"
#include "testing_strings.h"

using namespace faiss_ext;
using namespace faiss_ext_test;
using testing_strings::d;
using testing_strings::hashes;
using testing_strings::HashRow;

namespace {

constexpr idx_t n = 200, nq = 12;

/// Histograms, which all kernels take.
const Floats x = normalized_histograms(n, d, 1);
const Floats q = normalized_histograms(nq, d, 2);

std::unique_ptr<faiss::Index> filled(const std::string& string) {
    auto index = faiss_ext::index_factory(d, string);
    index->train(n, x.data());
    index->add(n, x.data());
    return index;
}

struct EachHash : testing::TestWithParam<HashRow> {};

INSTANTIATE_TEST_SUITE_P(
        All,
        EachHash,
        testing::ValuesIn(hashes),
        testing_strings::name_of_row);

} // namespace

// The bits are the signs of the margins, and the last byte is filled with
// zeros.
TEST_P(EachHash, TheLastByteIsFilledWithZeros) {
    for (int nbits : {1, 7, 12, 61, 300}) {
        SCOPED_TRACE(nbits);
        const auto hash = kernel_hash_factory(d, GetParam().with_bits(nbits));
        hash->train(n, x.data());
        const size_t size = hash->code_size();
        EXPECT_EQ(hash->nbits, nbits);
        ASSERT_EQ(size, size_t((nbits + 7) / 8));
        for (int64_t target : targets()) {
            const Target guard(target);
            const Floats margins = applied(*hash, q);
            ASSERT_EQ(margins.size(), size_t(nq * nbits));
            const Bytes codes = codes_of(*hash, q);
            for (idx_t i = 0; i < nq; i++) {
                for (int j = 0; j < int(8 * size); j++) {
                    ASSERT_EQ(
                            codes[i * size + j / 8] >> j % 8 & 1,
                            j < nbits && margins[i * nbits + j] >= 0);
                }
            }
            // batches and threads do not matter
            const Threads threads(3);
            EXPECT_EQ(codes_of(*hash, q), codes);
            EXPECT_EQ(
                    codes_of(*hash, rows(q, d, 5, 6)), rows(codes, size, 5, 6));
        }
        const auto read = reread(*hash);
        EXPECT_EQ(
                codes_of(dynamic_cast<const KernelHash&>(*read), q),
                codes_of(*hash, q));
    }
}

// Distances are the numbers of bits that differ, whatever stores the codes.
TEST(AnyNumberOfBits, Storages) {
    for (const std::string storage :
         {"BFlat", "BIVF1", "BHNSW32", "BPerm(M=40,B=200)"}) {
        for (const std::string scheme :
             {"SIK61(gaussian,gamma=300)",
              "RHBE13(center=1)",
              "KLSH300(chi2,p=50)"}) {
            SCOPED_TRACE(scheme + "," + storage);
            const auto index = filled(scheme + "," + storage);
            const auto hash = kernel_hash_factory(d, scheme);
            hash->train(n, x.data());
            const Bytes codes = codes_of(*hash, x),
                        queries = codes_of(*hash, q);
            const size_t size = hash->code_size();
            const auto found = search(*index, q, 5);
            for (idx_t i = 0; i < nq; i++) {
                std::vector<float> all(n);
                for (idx_t j = 0; j < n; j++) {
                    all[j] = float(hamming(
                            &queries[i * size], &codes[j * size], size));
                    ASSERT_LE(all[j], hash->nbits);
                }
                for (idx_t r = 0; r < 5; r++) {
                    const size_t at = i * 5 + r;
                    EXPECT_EQ(found.distances[at], all[found.labels[at]]);
                }
                std::nth_element(all.begin(), all.begin() + 4, all.end());
                EXPECT_EQ(found.distances[i * 5 + 4], all[4]);
            }
            const auto read = reread(*index);
            expect_same(search(*read, q, 5), found);
        }
    }
}

// D = nbits sum |w_j| [bit j differs] / sum |w_j|, up to the rounding of the
// weights.
TEST(AnyNumberOfBits, AsymmetricDistances) {
    for (int nbits : {1, 5, 61, 300}) {
        SCOPED_TRACE(nbits);
        const std::string scheme = "RHBE" + std::to_string(nbits);
        const auto index = filled(scheme + ",AFlat");
        const auto hash = kernel_hash_factory(d, scheme);
        const Bytes codes = codes_of(*hash, x);
        const Floats weights = applied(*hash, q);
        const auto found = search(*index, q, n);
        for (idx_t i = 0; i < nq; i++) {
            const float* w = &weights[i * nbits];
            for (idx_t r = 0; r < n; r++) {
                const idx_t id = found.labels[i * n + r];
                double sum = 0, differing = 0;
                for (int j = 0; j < nbits; j++) {
                    const bool is_set =
                            codes[id * hash->code_size() + j / 8] >> j % 8 & 1;
                    sum += std::abs(w[j]);
                    differing += is_set == (w[j] >= 0) ? 0 : std::abs(w[j]);
                }
                EXPECT_NEAR(
                        found.distances[i * n + r],
                        nbits * differing / sum,
                        0.03 * nbits);
            }
        }
    }
    // a query of zeros has the margins 0, and all bits the same weight
    const auto index = filled("RHBE13,AFlat");
    const Floats zeros(d);
    const Bytes codes = codes_of(*kernel_hash_factory(d, "RHBE13"), x);
    const auto found = search(*index, zeros, n);
    const Bytes ones = {0xff, 0x1f};
    for (idx_t r = 0; r < n; r++) {
        EXPECT_EQ(
                found.distances[r],
                float(hamming(&codes[2 * found.labels[r]], ones.data(), 2)));
    }
}

// Bits that no margin belongs to would count in distances.
TEST(AnyNumberOfBits, OnesBeyondTheCodeAreRefused) {
    const auto index = faiss_ext::index_binary_factory(d, "RHBE13,BFlat");
    const Bytes good = {0xff, 0x1f}, bad = {0, 0, 0xff, 0x20};
    index->add(1, good.data());
    int32_t distance;
    idx_t label;
    EXPECT_TRUE(throws(
            [&] { index->add(2, bad.data()); }, "add: code 1", "13 bits"));
    EXPECT_TRUE(
            throws([&] { index->search(1, &bad[2], 1, &distance, &label); },
                   "search: code 0",
                   "3 high bits"));
    EXPECT_EQ(index->ntotal, 1);
    index->search(1, good.data(), 1, &distance, &label);
    EXPECT_EQ(std::pair(distance, label), std::pair(0, idx_t(0)));
}

TEST(AnyNumberOfBits, Strings) {
    EXPECT_EQ(filled("SIK300(gaussian),BFlat")->d, d);
    for (const std::string text :
         {"SIK0(gaussian)",
          "SIK-3(gaussian)",
          "SIK67108865(gaussian)",
          "SIK3.5(gaussian)"}) {
        EXPECT_TRUE(
                throws([&] { kernel_hash_factory(d, text); }, "number of bits"))
                << text;
    }
    const auto index = faiss_ext::index_binary_factory(d, "RHBE300,BFlat");
    EXPECT_EQ(index->d, 304);
    EXPECT_EQ(index->code_size, 38);
}
