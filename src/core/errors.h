// SPDX-License-Identifier: MIT
// Throws Error. A message says what was wrong and what was expected.

#pragma once

#include <exception>
#include <string>
#include <typeinfo>

#include <faiss/impl/FaissException.h>

#include <faiss_ext/core/compat.h>
#include <faiss_ext/core/errors.h>

namespace faiss_ext {

/** Escapes everything that cannot be shown as \xNN: control characters other
 * than newlines, and bytes that are not UTF-8.
 */
std::string printable(const std::string& text);

/// Returns the name of a class as in C++.
std::string type_name(const std::type_info& type);

/// Extracts the name of a function from its __PRETTY_FUNCTION__.
std::string name_of_function(const std::string& signature);

/// Formats like printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format_message(
        const char* format,
        ...);

/// Returns the message of an error; for an error of FAISS, without the place in
/// its source.
std::string message_of(const std::exception& error);

/** Throws the error that is being handled again, with a text in front of its
 * message. Call it in a handler of faiss::FaissException. If the message begins
 * with `former`, the text replaces that.
 *
 * The new error has the class and the data of the old one; errors of FAISS
 * become Errors. Interrupts, and classes that other code has derived, are
 * rethrown unchanged.
 */
[[noreturn]] void rethrow_with_prefix(
        const std::string& prefix,
        const std::string& former = "");

/// Throws UnsupportedError for a method; `advice` says what to do instead.
[[noreturn]] void throw_unsupported(
        const std::string& class_name,
        const std::string& method,
        const std::string& advice);

/// Throws VectorError with a printable message.
[[noreturn]] void throw_vector_error(
        const std::string& before,
        idx_t vector,
        const std::string& after,
        const char* condition,
        const char* function,
        const char* file,
        int line);

/// Throws Error with the message, which must be printable. condition may be
/// null.
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

/// Throws VectorError: "{before}vector {number}{after}". `before` and `after`
/// are evaluated only on errors.
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
