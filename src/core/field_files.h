// SPDX-License-Identifier: MIT
// Fields in binary files, in the order in which the object visits them.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss/impl/io.h>

#include <faiss_ext/core/fields.h>

namespace faiss_ext {

void write_fields(const HasFields& object, faiss::IOWriter* f);

/// Throws if read_fields would refuse the values of the object.
void check_fields_in_file(const HasFields& object, const std::string& file);

/// Reads the fields of a default-constructed object and calls its restore().
/// Throws if a value is out of its range, an array has the wrong size, or a
/// number is not finite.
void read_fields(HasFields& object, faiss::IOReader* f);

/** Counts how deeply the objects being read or written are nested. The
 * constructor throws if they are nested too deeply.
 *
 * Reading and writing are recursive, and threads may have no more than 128 kB
 * of stack, half of which OpenBLAS takes.
 */
struct Nesting {
    static constexpr int limit = 80; ///< as much as a string can ask for

    /// @param file  the name of the reader or writer, for the message
    explicit Nesting(const std::string& file);
    ~Nesting();
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
};

/** While an instance lives, write_fields on this thread copies the parts that
 * are parameters (kernels) into it, and read_fields takes them out in the same
 * order. Copies through a file in memory may thus hold objects that cannot be
 * written to files.
 */
struct PartsInMemory {
    std::vector<std::unique_ptr<HasFields>> parts;
    size_t read = 0; ///< number of parts taken out
    PartsInMemory* outer;

    PartsInMemory();
    ~PartsInMemory();
    PartsInMemory(const PartsInMemory&) = delete;
    PartsInMemory& operator=(const PartsInMemory&) = delete;
};

/// Returns whether this thread is copying an object through a file in memory.
bool copies_in_memory();

} // namespace faiss_ext
