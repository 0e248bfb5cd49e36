// SPDX-License-Identifier: MIT
// Errors that are more than a text.

#pragma once

#include <atomic>
#include <exception>
#include <string>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// An error about one of the caller's vectors, as a number: texts that users
/// give may look like numbers of vectors.
struct VectorError : faiss::FaissException {
    idx_t vector;
    std::string before,
            after; ///< the message is "{before}vector {vector}{after}"

    VectorError(std::string before, idx_t vector, std::string after);

    /// Names another vector, such as the caller's number of it.
    void set_vector(idx_t number);

    /// Puts the message into another one, which contains it.
    void set_context(const std::string& whole);
};

/// The user or FAISS's InterruptCallback has ended a computation.
struct InterruptedError : faiss::FaissException {
    InterruptedError();
};

/** Is told the text of each error of the classes above when it gets it, and the
 * error; null by default. FAISS's Python wrappers keep only the text.
 */
inline std::atomic<void (*)(const std::string&, std::exception_ptr)>
        error_listener{nullptr};

} // namespace faiss_ext
