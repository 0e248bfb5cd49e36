// SPDX-License-Identifier: MIT
// Functions of newer C libraries, for libraries that older_libraries.py links.
// They are hidden in the library that they are linked into.

struct stat; // (its header would declare the functions of the new C library)

// How old C libraries number the layout of struct stat.
#ifdef __x86_64__
enum { stat_version = 1 };
#else
enum { stat_version = 0 };
#endif

int __xstat(int version, const char* name, struct stat* result);
int __lxstat(int version, const char* name, struct stat* result);
int __fxstat(int version, int file, struct stat* result);

int stat(const char* name, struct stat* result) {
    return __xstat(stat_version, name, result);
}

int lstat(const char* name, struct stat* result) {
    return __lxstat(stat_version, name, result);
}

int fstat(int file, struct stat* result) {
    return __fxstat(stat_version, file, result);
}

// False, as nothing old tells: reference counts are always atomic.
char __libc_single_threaded = 0;
