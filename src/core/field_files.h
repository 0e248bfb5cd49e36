// SPDX-License-Identifier: MIT
// Fields in binary files, in the order in which the object shows them.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/core/fields.h>

namespace faiss_ext {

void write_fields(const HasFields& object, faiss::IOWriter* f);

/// Throws if read_fields would refuse the values that write_fields writes.
void check_fields_in_file(const HasFields& object, const std::string& file);

/// Reads the fields of a default-constructed object and calls its restore().
/// Throws if a value is out of its range, an array of another size than it must
/// have, or a number not finite.
void read_fields(HasFields& object, faiss::IOReader* f);

/** One more object inside of others, an index, a kernel or whatever it is,
 * while it is read or written: by recursion, on threads that may have no more
 * than 128 kB, half of which OpenBLAS takes. The constructor throws where there
 * are too many.
 */
struct Nesting {
    static constexpr int limit = 80; ///< as much as a string can ask for

    /// @param file  the name of the reader or writer, for the message
    explicit Nesting(const std::string& file);
    ~Nesting();
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
};

/** While one of these lives, write_fields of this thread copies the parts that
 * are parameters (kernels) into it, and read_fields takes them out again in the
 * same order: copies made through a file in memory may hold objects that no
 * file can.
 */
struct PartsInMemory {
    std::vector<std::unique_ptr<HasFields>> parts;
    size_t read = 0; ///< how many are out again
    PartsInMemory* outer;

    PartsInMemory();
    ~PartsInMemory();
    PartsInMemory(const PartsInMemory&) = delete;
    PartsInMemory& operator=(const PartsInMemory&) = delete;
};

/// Whether this thread copies an object through a file in memory.
bool copies_in_memory();

} // namespace faiss_ext
