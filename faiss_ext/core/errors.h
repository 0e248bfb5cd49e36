// SPDX-License-Identifier: MIT
// Errors with more than a message.

#pragma once

#include <string>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// An error that this library has found itself. Errors that FAISS finds are of
/// FAISS's class.
struct Error : faiss::FaissException {
    std::string place; ///< in the source: the end of the message, or empty

    explicit Error(const std::string& message, std::string place = "");
};

/// Thrown by methods that a class does not support. The message says what to do
/// instead.
struct UnsupportedError : Error {
    using Error::Error;
};

/// An error about one of the caller's vectors. The vector's number is a member,
/// because it cannot be read from the message: text quoted from the user may
/// look like such a number.
struct VectorError : Error {
    idx_t vector;
    std::string before,
            after; ///< the message is "{before}vector {vector}{after}"; ends
                   ///< with the place

    VectorError(
            std::string before,
            idx_t vector,
            std::string after,
            std::string place = "");

    /// The same error about another vector, for example the caller's number of
    /// it.
    VectorError with_vector(idx_t number) const;
};

/// The text of an error of FAISS, "Error in FUNCTION at FILE:LINE: MESSAGE",
/// with the message first and the place on the next line, as in the errors of
/// this library. Other texts stay as they are.
std::string message_first(const std::string& text);

/// Thrown if the user or FAISS's InterruptCallback has interrupted a
/// computation.
struct InterruptedError : Error {
    InterruptedError();
};

} // namespace faiss_ext
