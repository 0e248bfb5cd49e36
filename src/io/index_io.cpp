// SPDX-License-Identifier: MIT
#include <faiss_ext/io/index_io.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <faiss/IndexBinaryIVF.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#include <faiss/invlists/OnDiskInvertedLists.h>

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/indexes/IndexFileKernel.h>
#include <faiss_ext/indexes/IndexIDTable.h>
#include <faiss_ext/indexes/index_ids.h>
#include <faiss_ext/maps/FeatureMap.h>

#include "core/errors.h"
#include "core/field_files.h"
#include "core/io_fields.h"
#include "core/parallel.h"
#include "indexes/fast_scan.h"
#include "indexes/index_facts.h"
#include "indexes/index_parts.h"
#include "indexes/index_steps.h"
#include "indexes/ivf_fields.h"
#include "io/binary_flat_files.h"
#include "io/frame.h"
#include "io/index_codecs.h"
#include "io/io_compat.h"
#include "io/nested_io.h"

namespace faiss_ext {

namespace {

namespace fs = std::filesystem;

using faiss::Index;
using faiss::IndexBinary;
using faiss::IOReader;
using faiss::IOWriter;
using faiss::VectorTransform;

// Traits of the three kinds of objects in a file, and FAISS's functions for
// them.

template <class T>
struct Kind;

/// The lists of an index that are in a file, or null.
const faiss::OnDiskInvertedLists* lists_in_file(const AnyIndex& index) {
    const faiss::InvertedLists* lists = nullptr;
    if (const auto* ivf = index.as<faiss::IndexIVF>()) {
        lists = invlists_of(*ivf);
    } else if (const auto* codes = index.as<faiss::IndexBinaryIVF>()) {
        lists = codes->invlists;
    }
    return dynamic_cast<const faiss::OnDiskInvertedLists*>(lists);
}

/// Throws for mapped lists. FAISS 1.7.3 writes them without the name of their
/// file and cannot read the result.
void check_lists_are_writable(const AnyIndex& index) {
    for_all_parts(index, [](const AnyIndex& part) {
        const auto* lists = lists_in_file(part);
        FAISS_EXT_THROW_IF_NOT_MSG(
                !lists || !lists->filename.empty(),
                "an index whose lists are mapped from a file cannot be written; read it without IO_FLAG_MMAP");
    });
}

/// Throws if an index or one of its parts reads vectors or lists from a file
/// that is to be written.
void check_not_read_from(const fs::path& target, const AnyIndex& index) {
    for_all_parts(index, [&](const AnyIndex& part) {
        const auto* vectors = part.as<IndexFileKernel>();
        const auto* lists = lists_in_file(part);
        const std::string read_from = vectors ? vectors->path
                : lists                       ? lists->filename
                                              : "";
        std::error_code error; // an empty path is equivalent to none
        FAISS_EXT_THROW_IF_NOT_FMT(
                !fs::equivalent(read_from, target, error),
                "cannot write '%s': the index reads its vectors from this file; write it to another file",
                target.c_str());
    });
}

void check_not_read_from(const fs::path&, const VectorTransform&) {}

template <>
struct Kind<Index> {
    static constexpr const char* magic = "FxIx";
    static constexpr const char* reader_name = "read_index";
    static void check(const Index& index) {
        check_lists_are_writable(index);
        check_all_counts(index);
    }
    template <class To>
    static void faiss_write(const Index* index, To to) {
        faiss::write_index(index, to);
    }
    template <class From>
    static Index* faiss_read(From from, int io_flags) {
        return faiss::read_index(from, io_flags);
    }
};

template <>
struct Kind<IndexBinary> {
    static constexpr const char* magic = "FxIB";
    static constexpr const char* reader_name = "read_index_binary";
    static void check(const IndexBinary& index) {
        check_lists_are_writable(index);
        check_all_counts(index);
    }
    template <class To>
    static void faiss_write(const IndexBinary* index, To to) {
        if (!write_where_faiss_fails(*index, to)) {
            faiss::write_index_binary(index, to);
        }
    }
    template <class From>
    static IndexBinary* faiss_read(From from, int io_flags) {
        if (auto mapped = read_mapped_flat(from)) {
            return with_simd_hamming(std::move(mapped)).release();
        }
        return with_simd_hamming(
                       std::unique_ptr<IndexBinary>(
                               faiss::read_index_binary(from, io_flags)))
                .release();
    }
};

template <>
struct Kind<VectorTransform> {
    static constexpr const char* magic = "FxVT";
    static constexpr const char* reader_name = "read_VectorTransform";
    static void check(const VectorTransform&) {}
    template <class To>
    static void faiss_write(const VectorTransform* vt, To to) {
        faiss::write_VectorTransform(vt, to);
    }
    template <class From>
    static VectorTransform* faiss_read(From from, int) {
        return faiss::read_VectorTransform(from);
    }
};

template <class IndexT>
void write_body(const IndexT* index, IOWriter* f) {
    const auto codec = find_codec<IndexT>(*index);
    FAISS_EXT_THROW_IF_NOT_FMT(
            codec,
            "an index of class %s cannot be written with an object of this library inside",
            type_name(typeid(*index)).c_str());
    write_string(f, codec->name);
    codec->write(index, f);
}

void write_body(const VectorTransform* vt, IOWriter* f) {
    const auto& transform = dynamic_cast<const Transform&>(*vt);
    const auto* hash = dynamic_cast<const KernelHash*>(vt);
    write_string(
            f,
            hash ? class_table<KernelHash>().find(*hash).name
                 : class_table<FeatureMap>()
                            .find(dynamic_cast<const FeatureMap&>(*vt))
                            .name);
    write_value(f, int32_t(vt->d_in));
    write_value(f, int32_t(vt->d_out));
    write_value(f, vt->is_trained);
    write_fields(transform, f);
}

template <class T>
using Reader = std::function<std::unique_ptr<T>(IOReader*, int io_flags)>;

/// Returns the function that reads an object of a class. It is not inlined
/// because nested objects are read recursively and the stack is small.
template <class IndexT>
[[gnu::noinline]] Reader<IndexT> reader_of_class(IOReader* f) {
    const std::string name = read_string(f, "class");
    const auto codec = find_codec<IndexT>(name);
    FAISS_EXT_THROW_IF_NOT_FMT(
            codec,
            "%s holds an index of an unknown class, '%s'; it may come from a newer version of faiss_ext, or the class must be registered first (register_index)",
            name_of(*f).c_str(),
            printable(name).c_str());
    return codec->read;
}

std::unique_ptr<Transform> make_transform(const std::string& name) {
    if (const auto hash = class_table<KernelHash>().find(name)) {
        return hash->make();
    }
    const auto map = class_table<FeatureMap>().find(name);
    return map ? map->make() : nullptr;
}

std::unique_ptr<VectorTransform> read_transform(
        const std::string& name,
        IOReader* f) {
    auto transform = make_transform(name);
    FAISS_EXT_THROW_IF_NOT_FMT(
            transform,
            "%s holds a hash or map of an unknown class, '%s'; register the class first (register_hash, register_map)",
            name_of(*f).c_str(),
            printable(name).c_str());
    const auto d_in = read_value_in<int32_t>(f, "d_in", 1, INT32_MAX);
    const auto d_out = read_value_in<int32_t>(f, "d_out", 1, INT32_MAX);
    transform->set_dimensions(d_in, d_out);
    transform->is_trained = read_value<bool>(f, "is_trained");
    read_fields(*transform, f);
    FAISS_EXT_THROW_IF_NOT_FMT(
            transform->d_out == d_out,
            "%s is damaged: its output dimension is %d, expected %d from its parameters",
            name_of(*f).c_str(),
            d_out,
            transform->d_out);
    return transform;
}

template <>
Reader<VectorTransform> reader_of_class<VectorTransform>(IOReader* f) {
    const std::string name = read_string(f, "class");
    return [name](IOReader* f, int) { return read_transform(name, f); };
}

/// Returns four bytes that were already read from f, then reads f itself.
struct ReaderWithHead : IOReader {
    IOReader* f;
    char head[magic_size];
    size_t position = 0;

    size_t operator()(void* ptr, size_t size, size_t nitems) override {
        auto* to = static_cast<char*>(ptr);
        const size_t wanted = size * nitems;
        const size_t n = std::min(wanted, magic_size - position);
        if (n > 0) { // `to` may be null for no bytes
            std::memcpy(to, head + position, n);
        }
        position += n;
        const size_t rest = n == wanted ? 0 : (*f)(to + n, 1, wanted - n);
        return size == 0 ? 0 : (n + rest) / size;
    }
};

template <class T>
std::unique_ptr<T> read_content(IOReader* f, int io_flags) {
    const Nesting nesting(f->name);
    return reader_of_class<T>(f)(f, io_flags);
}

/// Throws for an object of ours of another kind than expected.
template <class... T>
void check_other_kinds(const ReaderWithHead& reader) {
    const auto check = [&](const char* magic, const char* function) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                std::memcmp(reader.head, magic, magic_size) != 0,
                "%s holds an object of another kind; read it with %s",
                name_of(reader).c_str(),
                function);
    };
    (check(Kind<T>::magic, Kind<T>::reader_name), ...);
}

template <class T>
std::unique_ptr<T> read_any(IOReader* f, int io_flags) {
    FAISS_EXT_THROW_IF_NOT_MSG(f, "the reader is null");
    const std::unique_ptr<IOReader> mapping =
            asks_for_mapping(io_flags) ? mapping_reader(f) : nullptr;
    if (mapping) {
        f = mapping.get();
    }
    ReaderWithHead reader;
    reader.f = f;
    reader.name = f->name;
    read_bytes(f, reader.head, magic_size, "the first field");
    if (std::memcmp(reader.head, Kind<T>::magic, magic_size) == 0) {
        std::unique_ptr<T> object;
        read_frame(reader.head, f, io_flags, [&](IOReader* content) {
            object = read_content<T>(content, io_flags);
        });
        return object;
    }
    check_other_kinds<Index, IndexBinary, VectorTransform>(reader);
    // pass the file itself, since FAISS may map it
    if (step_back(f, magic_size)) {
        return std::unique_ptr<T>(Kind<T>::faiss_read(f, io_flags));
    }
    return std::unique_ptr<T>(
            Kind<T>::faiss_read(static_cast<IOReader*>(&reader), io_flags));
}

template <class T>
std::unique_ptr<T> read_file(const char* fname, int io_flags) {
    FAISS_EXT_THROW_IF_NOT_MSG(fname, "the file name is null");
    const std::unique_ptr<IOReader> f = open_file(fname, io_flags);
    try {
        return read_any<T>(f.get(), io_flags);
    } catch (const Error&) {
        throw; // names the file
    } catch (const faiss::FaissException&) {
        rethrow_with_prefix(std::string(fname) + ": ");
    }
}

AnyIndex as_index(const AnyIndex& index) {
    return index;
}

AnyIndex as_index(const VectorTransform&) {
    return AnyIndex();
}

template <class T>
void write_any(const T* object, IOWriter* f) {
    FAISS_EXT_THROW_IF_NOT_MSG(object, "the object to write is null");
    FAISS_EXT_THROW_IF_NOT_MSG(f, "the writer is null");
    const LongReadingStep step(as_index(*object));
    check_sound(object, name_of(*f));
    if (!holds_faiss_ext(object)) {
        Kind<T>::faiss_write(object, f);
        return;
    }
    const Nesting nesting(f->name);
    write_frame(
            Kind<T>::magic,
            [&](IOWriter* content) { write_body(object, content); },
            f);
}

[[noreturn]] void fail_to_write(const std::string& name, int error) {
    FAISS_EXT_THROW_FMT(
            "cannot write the file '%s': %s", name.c_str(), strerror(error));
}

/// Writes to a file like FAISS's writer and checks for interrupts.
struct InterruptibleWriter : IOWriter {
    FILE* const f;

    InterruptibleWriter(FILE* f, const std::string& file) : f(f) {
        name = file;
    }

    size_t operator()(const void* ptr, size_t size, size_t nitems) override {
        constexpr size_t most = 1 << 22;
        const char* bytes = static_cast<const char*>(ptr);
        for (size_t at = 0, n = size * nitems; at < n; at += most) {
            check_interrupt();
            const size_t piece = std::min(most, n - at);
            if (fwrite(bytes + at, 1, piece, f) != piece) {
                return at / size;
            }
        }
        return nitems;
    }
};

/// A file that is being written. On errors it is closed silently.
struct OpenFile {
    std::string name; ///< for messages
    FILE* f;

    OpenFile(FILE* f, const std::string& name) : name(name), f(f) {
        check(f);
    }

    ~OpenFile() {
        if (f) {
            fclose(f);
        }
    }

    template <class T>
    void write(const T* object) const {
        InterruptibleWriter writer(f, name);
        write_any(object, static_cast<IOWriter*>(&writer));
    }

    void close() {
        check(fflush(f) == 0 && (fsync(fileno(f)) == 0 || errno == EINVAL));
        FILE* closing = f;
        f = nullptr;
        check(fclose(closing) == 0);
    }

    void check(bool good) const {
        if (!good) {
            fail_to_write(name, errno);
        }
    }
};

using Status = struct stat;

/// Returns the status of a file, following symbolic links; none if there is no
/// file.
std::optional<Status> status_of(const char* fname) {
    Status status;
    if (stat(fname, &status) == 0) {
        return status;
    }
    if (errno != ENOENT || *fname == '\0') {
        fail_to_write(fname, errno);
    }
    return std::nullopt;
}

/// Resolves symbolic links; the target need not exist.
fs::path behind_links(const char* fname) {
    constexpr int most = 40; // as in Linux
    fs::path target = fname;
    std::error_code error;
    for (int i = 0; fs::is_symlink(target, error); i++) {
        if (i == most) {
            fail_to_write(fname, ELOOP);
        }
        target = target.parent_path() / fs::read_symlink(target, error);
    }
    return target;
}

/// A new file in the directory of the file to be replaced. It is deleted unless
/// it replaces that file.
struct TemporaryFile {
    std::string name; ///< of the file to be replaced, for messages
    fs::path path;
    int file = -1;

    /// The file is private to its owner until it gets the old file's
    /// permissions.
    TemporaryFile(
            const std::string& name,
            const fs::path& target,
            const std::optional<Status>& old)
            : name(name) {
        constexpr int most_attempts = 100;
        const mode_t mode = old ? 0600 : 0666; // less the umask
        std::random_device random;
        for (int i = 0; file < 0; i++) {
            path = target.parent_path() /
                    (".faiss_ext_" + std::to_string(random()) + "_" +
                     std::to_string(random()));
            file =
                    open(path.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                         mode);
            if (file < 0 && (errno != EEXIST || i == most_attempts)) {
                fail_to_write(name, errno);
            }
        }
    }

    ~TemporaryFile() {
        if (!path.empty()) {
            unlink(path.c_str());
        }
    }

    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    void rename_to(const fs::path& target) {
        if (rename(path.c_str(), target.c_str()) != 0) {
            fail_to_write(name, errno);
        }
        path.clear();
    }
};

/// Gives a new file the owner and the permissions of an old one, as far as this
/// process is allowed to.
void make_alike(int file, const Status& old) {
    Status now;
    if (fstat(file, &now) != 0) {
        return;
    }
    mode_t mode = old.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    if ((now.st_uid != old.st_uid || now.st_gid != old.st_gid) &&
        fchown(file, old.st_uid, old.st_gid) != 0 &&
        fchown(file, -1, old.st_gid) != 0) {
        // a different group gets the permissions of others
        mode &= ~S_IRWXG | ((mode & S_IRWXO) << 3);
    }
    if (fchmod(file, mode) != 0) {
        return; // some file systems have no permissions
    }
}

template <class T>
void write_file(const T* object, const char* fname) {
    FAISS_EXT_THROW_IF_NOT_MSG(fname, "the file name is null");
    FAISS_EXT_THROW_IF_NOT_MSG(object, "the object to write is null");
    const std::optional<Status> old = status_of(fname);
    // write directly to a pipe, for example
    if (old && !S_ISREG(old->st_mode)) {
        OpenFile file(fopen(fname, "wb"), fname);
        file.write(object);
        file.close();
        return;
    }
    if (old && access(fname, W_OK) != 0) {
        fail_to_write(fname, errno);
    }
    const fs::path target = behind_links(fname);
    check_not_read_from(target, *object);
    TemporaryFile temporary(fname, target, old);
    OpenFile file(fdopen(temporary.file, "wb"), fname);
    file.write(object);
    if (old) {
        make_alike(fileno(file.f), *old);
    }
    file.close();
    check_interrupt_now();
    temporary.rename_to(target);
}

/// Returns whether a nested object is written in our format although FAISS's
/// format could hold it. From FAISS's format, an index could not take ids, a
/// table would forget the ids of removed vectors, and flat codes could not be
/// mapped, because they are not aligned.
bool has_codec_inside(const Index* index) {
    return dynamic_cast<const HasIds<Index>*>(index);
}

bool has_codec_inside(const VectorTransform*) {
    return false;
}

bool has_codec_inside(const IndexBinary* index) {
    if (dynamic_cast<const IndexBinaryIDTable*>(index)) {
        return true;
    }
    const auto* map = dynamic_cast<const faiss::IndexBinaryIDMap*>(index);
    return map ? has_codec_inside(map->index) : index && find_codec(*index);
}

/// Precedes an object of FAISS's inside one of ours.
constexpr char faiss_magic[] = "Fais";

template <class T>
void write_for_faiss(const T* object, IOWriter* f) {
    write_bytes(f, faiss_magic, magic_size);
    write_with_length(
            [&](IOWriter* part) { Kind<T>::faiss_write(object, part); }, f);
}

void check_ours(const VectorTransform* vt, const std::string& file) {
    const auto check = [&](const char* field, int value) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                value >= 1,
                "%s: a transformation whose %s is %d cannot be written, expected a positive number",
                file.c_str(),
                field,
                value);
    };
    check("d_in", vt->d_in);
    check("d_out", vt->d_out);
    const auto& transform = dynamic_cast<const Transform&>(*vt);
    check_fields_in_file(transform, file);
    const auto copy = transform.copy_transform();
    try {
        copy->restore();
    } catch (const faiss::FaissException&) {
        rethrow_with_prefix(file + ": a transformation cannot be written: ");
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            copy->d_out == vt->d_out,
            "%s: a transformation with the output dimension of %d cannot be written, expected %d",
            file.c_str(),
            vt->d_out,
            copy->d_out);
}

template <class IndexT>
void check_ours(const IndexT* index, const std::string& file) {
    for (const VectorTransform* vt : transforms_of(index)) {
        check_sound(vt, file);
    }
    for (const IndexPart& part : parts_of(index)) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                part.index, "the %s of the object to write is null", part.name);
        part.index.visit(
                [&](const auto& inside) { check_sound(&inside, file); });
    }
    if (const auto codec = find_codec<IndexT>(*index)) {
        codec->check(index, file);
        if (id_table_of(*index)) {
            Kind<IndexT>::check(*index);
        }
    } // otherwise write_body reports it
}

} // namespace

template <class T>
void check_sound(const T* object, const std::string& file) {
    FAISS_EXT_THROW_IF_NOT_MSG(object, "a part of the object to write is null");
    const Nesting nesting(file);
    if (holds_faiss_ext(object) || has_codec_inside(object)) {
        check_ours(object, file);
    } else {
        Kind<T>::check(*object);
    }
}

template <class T>
void write_nested(const T* object, IOWriter* f) {
    FAISS_EXT_THROW_IF_NOT_MSG(object, "a part of the object to write is null");
    if (holds_faiss_ext(object) || has_codec_inside(object)) {
        const Nesting nesting(f->name);
        write_bytes(f, Kind<T>::magic, magic_size);
        write_body(object, f);
    } else {
        write_for_faiss(object, f);
    }
}

template <class IndexT>
void write_without_ids(const IndexT* index, IOWriter* f) {
    const auto codec = find_codec_without_ids(*index);
    if (codec) {
        const Nesting nesting(f->name);
        write_bytes(f, Kind<IndexT>::magic, magic_size);
        write_string(f, codec->name);
        codec->write(index, f);
    } else {
        write_for_faiss(index, f);
    }
}

template <class T>
std::unique_ptr<T> read_nested(IOReader* f, int io_flags) {
    char magic[magic_size];
    read_bytes(f, magic, magic_size, "the first field of a part");
    if (std::memcmp(magic, Kind<T>::magic, magic_size) == 0) {
        return read_content<T>(f, io_flags);
    }
    FAISS_EXT_THROW_IF_NOT_FMT(
            std::memcmp(magic, faiss_magic, magic_size) == 0,
            "%s is damaged: a part begins with '%s', expected '%s' or '%s'",
            name_of(*f).c_str(),
            printable(std::string(magic, magic_size)).c_str(),
            Kind<T>::magic,
            faiss_magic);
    std::unique_ptr<T> object;
    read_with_length(f, [&](IOReader* part) {
        object.reset(Kind<T>::faiss_read(part, io_flags));
    });
    return object;
}

template void check_sound(const Index* object, const std::string& file);
template void check_sound(const IndexBinary* object, const std::string& file);
template void check_sound(
        const VectorTransform* object,
        const std::string& file);
template void write_nested(const Index* object, IOWriter* f);
template void write_without_ids(const Index* index, IOWriter* f);
template void write_without_ids(const IndexBinary* index, IOWriter* f);
template void write_nested(const IndexBinary* object, IOWriter* f);
template void write_nested(const VectorTransform* object, IOWriter* f);
template std::unique_ptr<Index> read_nested(IOReader* f, int io_flags);
template std::unique_ptr<IndexBinary> read_nested(IOReader* f, int io_flags);
template std::unique_ptr<VectorTransform> read_nested(
        IOReader* f,
        int io_flags);

namespace {

bool holds_ours(const AnyIndex& index) {
    if (!index) {
        return false;
    }
    const ReadingStep step(index);
    const auto chain = transforms_of(index);
    const auto parts = parts_of(index);
    return id_table_of(index) ||
            facts_of(index).is_foreign_to_faiss.value_or(false) ||
            std::any_of(
                    chain.begin(),
                    chain.end(),
                    [](const VectorTransform* vt) {
                        return holds_faiss_ext(vt);
                    }) ||
            std::any_of(parts.begin(), parts.end(), [](const IndexPart& part) {
                return holds_ours(part.index);
            });
}

} // namespace

bool holds_faiss_ext(const Index* index) {
    return holds_ours(index);
}

bool holds_faiss_ext(const IndexBinary* index) {
    return holds_ours(index);
}

bool holds_faiss_ext(const VectorTransform* vt) {
    return dynamic_cast<const Transform*>(vt);
}

void write_index(const Index* index, const char* fname) {
    write_file(index, fname);
}

void write_index(const Index* index, IOWriter* f) {
    write_any(index, f);
}

std::unique_ptr<Index> read_index(const char* fname, int io_flags) {
    return read_file<Index>(fname, io_flags);
}

std::unique_ptr<Index> read_index(IOReader* f, int io_flags) {
    return read_any<Index>(f, io_flags);
}

void write_index_binary(const IndexBinary* index, const char* fname) {
    write_file(index, fname);
}

void write_index_binary(const IndexBinary* index, IOWriter* f) {
    write_any(index, f);
}

std::unique_ptr<IndexBinary> read_index_binary(
        const char* fname,
        int io_flags) {
    return read_file<IndexBinary>(fname, io_flags);
}

std::unique_ptr<IndexBinary> read_index_binary(IOReader* f, int io_flags) {
    return read_any<IndexBinary>(f, io_flags);
}

void write_VectorTransform(const VectorTransform* vt, const char* fname) {
    write_file(vt, fname);
}

void write_VectorTransform(const VectorTransform* vt, IOWriter* f) {
    write_any(vt, f);
}

std::unique_ptr<VectorTransform> read_VectorTransform(const char* fname) {
    return read_file<VectorTransform>(fname, 0);
}

std::unique_ptr<VectorTransform> read_VectorTransform(IOReader* f) {
    return read_any<VectorTransform>(f, 0);
}

} // namespace faiss_ext
