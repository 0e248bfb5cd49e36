// SPDX-License-Identifier: MIT
// Strings that a fuzzer makes up, for every grammar. The first byte says which,
// the second the dimension.

#include <cstdint>
#include <memory>
#include <string>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/hashes/hash_registry.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/kernel_registry.h>
#include <faiss_ext/maps/FeatureMap.h>

using namespace faiss_ext;

namespace {

/// Large numbers ask for as much memory, which they are given.
bool asks_for_much(const std::string& text) {
    size_t digits = 0;
    for (char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (digits > 4) {
            return true;
        }
    }
    return false;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) {
        return -1;
    }
    const int d = 1 + data[1] % 64;
    const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
    if (asks_for_much(text)) {
        return -1;
    }
    try {
        switch (data[0] % 5) {
            case 0:
                // what is not ours is FAISS's
                if (is_faiss_ext_string(text)) {
                    index_factory(d, text);
                }
                break;
            case 1:
                if (is_faiss_ext_string(text)) {
                    index_binary_factory(8 * d, text);
                }
                break;
            case 2:
                kernel_factory(text);
                break;
            case 3:
                kernel_hash_factory(d, text);
                break;
            case 4:
                map_factory(d, text);
                break;
        }
    } catch (const faiss::FaissException&) {
    }
    return 0;
}
