// SPDX-License-Identifier: MIT
// Errors with more than a message.

#pragma once

#include <string>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>

namespace faiss_ext {

/// An error about one of the caller's vectors. The vector's number is a field,
/// since it cannot be read from the message: text quoted from the user may look
/// like such a number.
struct VectorError : faiss::FaissException {
    idx_t vector;
    std::string before,
            after; ///< the message is "{before}vector {vector}{after}"

    VectorError(std::string before, idx_t vector, std::string after);

    /// Changes the vector that the message names, for example to the caller's
    /// number of it.
    void set_vector(idx_t number);
};

/// Thrown if the user or FAISS's InterruptCallback has interrupted a
/// computation.
struct InterruptedError : faiss::FaissException {
    InterruptedError();
};

} // namespace faiss_ext
