// SPDX-License-Identifier: MIT
// Errors: faiss::FaissException whose message begins with what went wrong and
// what was expected; the place in the source comes last.

#pragma once

#include <string>
#include <typeinfo>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/errors.h>

namespace faiss_ext {

/** A text with everything that cannot be shown escaped as \xNN: control
 * characters (but for newlines) and bytes that are not UTF-8.
 */
std::string printable(const std::string& text);

/// The name of a class as in C++.
std::string type_name(const std::type_info& type);

/// The name in what __PRETTY_FUNCTION__ says of a function.
std::string name_of_function(const std::string& signature);

/// printf into a string
[[gnu::format(printf, 1, 2)]] std::string format_message(
        const char* format,
        ...);

/// Throws VectorError with the place behind the message, which is printable.
[[noreturn]] void throw_vector_error(
        const std::string& before,
        idx_t vector,
        const std::string& after,
        const char* condition,
        const char* function,
        const char* file,
        int line);

/// Throws a faiss::FaissException with the (printable) message and, behind it,
/// the place; condition may be null.
[[noreturn]] void throw_error(
        const std::string& message,
        const char* condition,
        const char* function,
        const char* file,
        int line);

} // namespace faiss_ext

#define FAISS_EXT_THROW_FMT(...)                      \
    ::faiss_ext::throw_error(                         \
            ::faiss_ext::format_message(__VA_ARGS__), \
            nullptr,                                  \
            __PRETTY_FUNCTION__,                      \
            __FILE__,                                 \
            __LINE__)

#define FAISS_EXT_THROW_MSG(message) FAISS_EXT_THROW_FMT("%s", message)

#define FAISS_EXT_THROW_IF_NOT_FMT(condition, ...)            \
    do {                                                      \
        if (!(condition)) {                                   \
            ::faiss_ext::throw_error(                         \
                    ::faiss_ext::format_message(__VA_ARGS__), \
                    #condition,                               \
                    __PRETTY_FUNCTION__,                      \
                    __FILE__,                                 \
                    __LINE__);                                \
        }                                                     \
    } while (false)

#define FAISS_EXT_THROW_IF_NOT_MSG(condition, message) \
    FAISS_EXT_THROW_IF_NOT_FMT(condition, "%s", message)

/// Throws VectorError: "{before}vector {number}{after}", of which `before` and
/// `after` are made on errors only.
#define FAISS_EXT_THROW_VECTOR_IF_NOT(condition, number, before, after) \
    do {                                                                \
        if (!(condition)) {                                             \
            ::faiss_ext::throw_vector_error(                            \
                    before,                                             \
                    number,                                             \
                    after,                                              \
                    #condition,                                         \
                    __PRETTY_FUNCTION__,                                \
                    __FILE__,                                           \
                    __LINE__);                                          \
        }                                                               \
    } while (false)
