// SPDX-License-Identifier: MIT
// Files that a fuzzer makes up. The first byte says of which kind, whether the
// rest is a whole file or a content, which then gets checksums that fit, and
// whether it is mapped into memory.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/indexes/IndexBinaryKernelHash.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>
#include <faiss_ext/io/index_io.h>

#include "core/io_fields.h"
#include "io/frame.h"

using namespace faiss_ext;

namespace {

constexpr const char* magics[] = {"FxIx", "FxIB", "FxVT"};

/// Objects of FAISS's are read by FAISS, which is not what is tested here.
bool has_faiss_part(const std::string& content) {
    return content.find("Fais") != std::string::npos;
}

std::vector<uint8_t> framed(const char* magic, const std::string& content) {
    faiss::VectorIOWriter writer;
    write_frame(
            magic,
            [&](faiss::IOWriter* f) {
                write_bytes(f, content.data(), content.size());
            },
            &writer);
    return writer.data;
}

/// A file that is in memory only.
struct MemoryFile {
    const int descriptor = memfd_create("fuzzed", MFD_CLOEXEC);
    const std::string name = "/proc/self/fd/" + std::to_string(descriptor);

    explicit MemoryFile(const std::vector<uint8_t>& data) {
        if (descriptor < 0 ||
            write(descriptor, data.data(), data.size()) !=
                    ssize_t(data.size())) {
            std::abort();
        }
    }
    ~MemoryFile() {
        close(descriptor);
    }
};

template <class IndexT>
void change(IndexT& index) {
    try {
        index.remove_ids(faiss::IDSelectorRange(1, 3));
    } catch (const faiss::FaissException&) {
        // not every class removes
    }
}

void use(faiss::Index& index) {
    if (index.is_trained && index.d <= 1000 && index.ntotal <= 10000) {
        const std::vector<float> x(index.d, 0.25f);
        float distances[3];
        idx_t labels[3];
        index.search(1, x.data(), 3, distances, labels);
        change(index);
        index.search(1, x.data(), 3, distances, labels);
    }
}

void use(faiss::IndexBinary& index) {
    if (index.is_trained && index.d <= 100000 && index.ntotal <= 10000 &&
        typeid(index) != typeid(IndexBinaryKernelHash)) {
        const std::vector<uint8_t> x(index.code_size, 0x5a);
        int32_t distances[3];
        idx_t labels[3];
        index.search(1, x.data(), 3, distances, labels);
        change(index);
        index.search(1, x.data(), 3, distances, labels);
    }
}

void use(faiss::VectorTransform& vt) {
    if (vt.is_trained && vt.d_in <= 1000 && vt.d_out <= 10000) {
        const std::vector<float> x(vt.d_in, 0.25f);
        std::vector<float> y(vt.d_out);
        vt.apply_noalloc(1, x.data(), y.data());
    }
}

} // namespace

/// Objects of one input in those of another: what stands behind one of its
/// magics, which is where objects begin that are the last fields of others.
extern "C" size_t LLVMFuzzerCustomCrossOver(
        const uint8_t* data1,
        size_t size1,
        const uint8_t* data2,
        size_t size2,
        uint8_t* out,
        size_t most,
        unsigned seed) {
    if (size1 < 1 || size2 < 1 || ((data1[0] | data2[0]) & 128)) {
        return 0; // checksums would not fit
    }
    const std::string to(reinterpret_cast<const char*>(data1), size1);
    const std::string from(reinterpret_cast<const char*>(data2), size2);
    const auto places = [](const std::string& text) {
        std::vector<size_t> found;
        for (const char* magic : magics) {
            for (size_t at = text.find(magic); at != std::string::npos;
                 at = text.find(magic, at + 1)) {
                found.push_back(at);
            }
        }
        return found;
    };
    const auto at1 = places(to), at2 = places(from);
    if (at1.empty()) {
        return 0;
    }
    const std::string kept = to.substr(0, at1[seed % at1.size()]);
    const size_t which = seed / 64 % (at2.size() + 1);
    const std::string taken = which < at2.size()
            ? from.substr(at2[which])
            : magics[data2[0] % 3] + from.substr(1);
    const std::string made = kept + taken;
    if (made.size() > most) {
        return 0;
    }
    std::copy(made.begin(), made.end(), out);
    return made.size();
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    IndexBinaryPermuted::max_gb_read = 0.02; // sorted in less than a second
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) {
        return -1;
    }
    const int kind = data[0] % 3;
    std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
    faiss::VectorIOReader reader;
    if (data[0] & 128) {
        content.resize(std::max<size_t>(content.size(), 4));
        std::memcpy(content.data(), magics[kind], 4);
        reader.data.assign(content.begin(), content.end());
    } else if (has_faiss_part(content)) {
        return -1;
    } else {
        reader.data = framed(magics[kind], content);
    }
    try {
        if ((data[0] & 64) && kind < 2) {
            const MemoryFile file(reader.data);
            if (kind == 0) {
                use(*faiss_ext::read_index(
                        file.name.c_str(), faiss::IO_FLAG_MMAP));
            } else {
                use(*faiss_ext::read_index_binary(
                        file.name.c_str(), faiss::IO_FLAG_MMAP));
            }
        } else if (kind == 0) {
            use(*faiss_ext::read_index(&reader));
        } else if (kind == 1) {
            use(*faiss_ext::read_index_binary(&reader));
        } else {
            use(*faiss_ext::read_VectorTransform(&reader));
        }
    } catch (const faiss::FaissException&) {
    }
    return 0;
}
