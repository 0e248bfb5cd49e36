// SPDX-License-Identifier: MIT
#include "core/errors.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <utility>

#include <cxxabi.h>

#include <faiss_ext/core/fields.h>

namespace faiss_ext {

namespace {

/// Returns the length of the UTF-8 character at a position, or 0 if there is
/// none.
size_t utf8_length(const std::string& text, size_t i) {
    const auto byte = [&](size_t j) {
        return j < text.size() ? uint8_t(text[j]) : uint8_t(0);
    };
    const uint8_t first = byte(i);
    const size_t length = first < 0x80      ? 1
            : first >= 0xc2 && first < 0xe0 ? 2
            : first >= 0xe0 && first < 0xf0 ? 3
            : first >= 0xf0 && first < 0xf5 ? 4
                                            : 0;
    for (size_t j = 1; j < length; j++) {
        if ((byte(i + j) & 0xc0) != 0x80) {
            return 0;
        }
    }
    // over-long forms, surrogates, and code points beyond Unicode
    const uint8_t second = byte(i + 1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
        return 0;
    }
    return length;
}

/// Formats the place of an error in the source.
std::string place_of(
        const char* condition,
        const char* function,
        const char* file,
        int line) {
    std::string text;
    if (condition) {
        text += std::string("'") + condition + "' failed ";
    }
    return text + "in " + name_of_function(function) + " at " + file + ":" +
            std::to_string(line);
}

/// The message of an error of FAISS and its place in FAISS's source, both from
/// its text; the whole text if that has another form.
std::pair<std::string, std::string> message_and_place(const std::string& text) {
    static const std::regex head("Error in ([^\\n]*?) at ([^\\n ]+:[0-9]+): ");
    static const std::regex failed("Error: '([^\\n]*?)' failed: ");
    const auto from = std::regex_constants::match_continuous;
    std::smatch where, condition;
    if (!std::regex_search(text, where, head, from)) {
        return {text, ""};
    }
    std::string message = where.suffix();
    std::string place = "in " + where.str(1) + " at " + where.str(2);
    if (std::regex_search(message, condition, failed, from)) {
        place = "'" + condition.str(1) + "' failed " + place;
        message = condition.suffix().str();
    }
    message.resize(message.find_last_not_of(" \n") + 1);
    return {message, place};
}

} // namespace

Error::Error(const std::string& message, std::string place)
        : FaissException(message), place(std::move(place)) {}

VectorError::VectorError(
        std::string before,
        idx_t vector,
        std::string after,
        std::string place)
        : Error("", std::move(place)),
          vector(vector),
          before(std::move(before)),
          after(std::move(after)) {
    msg = this->before + "vector " + std::to_string(vector) + this->after;
}

VectorError VectorError::with_vector(idx_t number) const {
    return VectorError(before, number, after, place);
}

InterruptedError::InterruptedError() : Error("computation interrupted") {}

std::string message_of_faiss(const std::string& text) {
    return message_and_place(text).first;
}

std::string printable(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
        const uint8_t c = text[i];
        const size_t length = utf8_length(text, i);
        if (length == 0 || (c < 0x20 && c != '\n') || c == 0x7f) {
            out += format_message("\\x%02x", unsigned(c));
            i++;
        } else {
            out.append(text, i, length);
            i += length;
        }
    }
    return out;
}

std::string message_of(const std::exception& error) {
    return dynamic_cast<const Error*>(&error) ? error.what()
                                              : message_of_faiss(error.what());
}

void rethrow_with_prefix(const std::string& prefix, const std::string& former) {
    const auto prefixed = [&](const std::string& text) {
        return printable(prefix) +
                text.substr(text.starts_with(former) ? former.size() : 0);
    };
    try {
        throw;
    } catch (const faiss::FaissException& e) {
        const auto* ours = dynamic_cast<const Error*>(&e);
        const std::type_info& type = typeid(e);
        if (type == typeid(VectorError)) {
            const auto& about = dynamic_cast<const VectorError&>(e);
            throw VectorError(
                    prefixed(about.before),
                    about.vector,
                    about.after,
                    about.place);
        }
        if (type == typeid(UnsupportedError)) {
            throw UnsupportedError(prefixed(e.what()), ours->place);
        }
        if (type == typeid(Error) || type == typeid(faiss::FaissException) ||
            type == typeid(FieldError)) {
            const std::string place =
                    ours ? ours->place : message_and_place(e.what()).second;
            throw Error(prefixed(printable(message_of(e))), place);
        }
        throw;
    }
}

void throw_unsupported(
        const std::string& class_name,
        const std::string& method,
        const std::string& advice) {
    throw UnsupportedError(printable(
            class_name + "::" + method + " is not supported; " + advice));
}

std::string type_name(const std::type_info& type) {
    const std::unique_ptr<char, decltype(&std::free)> name(
            abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr),
            &std::free);
    return name ? name.get() : type.name();
}

std::string format_message(const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int size = vsnprintf(nullptr, 0, format, arguments);
    va_end(arguments);
    std::string message(size < 0 ? 0 : size, ' ');
    vsnprintf(message.data(), message.size() + 1, format, again);
    va_end(again);
    return message;
}

std::string name_of_function(const std::string& signature) {
    // "virtual void faiss_ext::A<B>::f(int) const [with B = int]"; a lambda
    // function is named after the function that contains it
    size_t end = 0;
    while ((end = signature.find('(', end)) != std::string::npos &&
           signature.compare(end, 10, "(anonymous") == 0) {
        end++;
    }
    const std::string head = signature.substr(0, end);
    int depth = 0;
    size_t begin = head.size();
    while (begin > 0 && (depth > 0 || head[begin - 1] != ' ')) {
        begin--;
        depth += head[begin] == '>' || head[begin] == ')' ? 1 : 0;
        depth -= head[begin] == '<' || head[begin] == '(' ? 1 : 0;
    }
    return head.substr(begin);
}

void throw_error(
        const std::string& message,
        const char* condition,
        const char* function,
        const char* file,
        int line) {
    throw Error(printable(message), place_of(condition, function, file, line));
}

void throw_vector_error(
        const std::string& before,
        idx_t vector,
        const std::string& after,
        const char* condition,
        const char* function,
        const char* file,
        int line) {
    throw VectorError(
            printable(before),
            vector,
            printable(after),
            place_of(condition, function, file, line));
}

} // namespace faiss_ext
