// SPDX-License-Identifier: MIT
#include "core/mapped_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/errors.h"

namespace faiss_ext {

MappedFile::MappedFile(const std::string& path) : path(path) {
    // opening a pipe would block
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    map();
}

MappedFile::MappedFile(int file, const std::string& path) : path(path) {
    descriptor = fcntl(file, F_DUPFD_CLOEXEC, 0);
    map();
}

void MappedFile::check(bool good) {
    if (!good) {
        const int error = errno;
        close_all();
        FAISS_EXT_THROW_FMT(
                "cannot map the file '%s': %s", path.c_str(), strerror(error));
    }
}

void MappedFile::map() {
    check(descriptor >= 0);
    struct stat status;
    check(fstat(descriptor, &status) == 0);
    if (!S_ISREG(status.st_mode) || status.st_size == 0) {
        const bool is_regular = S_ISREG(status.st_mode);
        close_all();
        FAISS_EXT_THROW_FMT(
                "cannot map the file '%s': it is %s",
                path.c_str(),
                is_regular ? "empty" : "not a regular file");
    }
    num_bytes = status.st_size;
    time = int64_t(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
    for (void** view : {&ordered, &scattered}) {
        void* mapped =
                mmap(nullptr, num_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
        check(mapped != MAP_FAILED);
        *view = mapped;
    }
    // hints; a failure only makes reading slower
    madvise(ordered, num_bytes, MADV_SEQUENTIAL);
    madvise(scattered, num_bytes, MADV_RANDOM);
}

MappedFile::~MappedFile() {
    close_all();
}

void MappedFile::close_all() {
    for (void* view : {ordered, scattered}) {
        if (view) {
            munmap(view, num_bytes);
        }
    }
    if (descriptor >= 0) {
        ::close(descriptor);
    }
}

bool MappedFile::is_resident(size_t at) const {
    char byte;
    const iovec to = {&byte, 1};
    return preadv2(descriptor, &to, 1, off_t(at), RWF_NOWAIT) >= 0 ||
            errno != EAGAIN;
}

void MappedFile::prefetch(size_t begin, size_t end) const {
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t first = begin / page * page;
    madvise(static_cast<char*>(scattered) + first, end - first, MADV_WILLNEED);
}

} // namespace faiss_ext
