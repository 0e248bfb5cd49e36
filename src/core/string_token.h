// SPDX-License-Identifier: MIT
// Tokens of factory strings.

#pragma once

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "core/Spec.h"

namespace faiss_ext {

/// A token of a factory string.
struct Token {
    std::shared_ptr<const std::string> text;
    size_t begin, end;

    std::string str() const {
        return text->substr(begin, end - begin);
    }

    bool starts_with(const std::string& prefix) const {
        return str().compare(0, prefix.size(), prefix) == 0;
    }

    Token after(size_t n) const {
        return {text, begin + n, end};
    }

    [[noreturn]] void fail(
            const std::string& message,
            const std::vector<std::string>& expected = {}) const {
        throw_parse_error(*text, begin, message, expected);
    }

    /// Splits the token at the commas outside parentheses.
    std::vector<Token> split() const {
        std::vector<Token> parts;
        for (auto [from, to] : split_arguments(*text, begin, end)) {
            parts.push_back({text, from, to});
        }
        return parts;
    }
};

inline Token whole(const std::string& text) {
    return {std::make_shared<const std::string>(text), 0, text.size()};
}

/// Returns the number of digits from a position on.
inline size_t num_digits(const std::string& s, size_t from) {
    const size_t end = s.find_first_not_of("0123456789", from);
    return std::min(end, s.size()) - from;
}

/// The name at the beginning of a token: letters, then a number.
struct TokenHead {
    std::string letters, digits;
    char next; ///< the next character, 0 at the end

    explicit TokenHead(const Token& part) {
        const std::string s = part.str();
        size_t i = 0;
        while (i < s.size() && std::isalpha(static_cast<unsigned char>(s[i]))) {
            i++;
        }
        letters = s.substr(0, i);
        digits = s.substr(i, num_digits(s, i));
        i += digits.size();
        next = i < s.size() ? s[i] : '\0';
    }

    /// Returns whether arguments, another token or the end follow.
    bool ends_well() const {
        return next == '\0' || next == '(' || next == ',' || next == ')';
    }
};

/// Returns the arguments of a token that names a class, including a number
/// behind the name.
template <class Entry>
Spec arguments_of(const Token& part, const Entry& entry) {
    const TokenHead head(part);
    Spec spec = Spec::parse(part.text, part.begin, part.end);
    spec.name = head.letters;
    if (!head.digits.empty()) {
        if (entry.number_key.empty()) {
            part.after(head.letters.size())
                    .fail("unexpected number", {"'('", "the end"});
        }
        spec.set_argument(
                entry.number_key,
                head.digits,
                part.begin + head.letters.size());
    }
    return spec;
}

} // namespace faiss_ext
