// SPDX-License-Identifier: MIT
#include "core/Spec.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include <faiss/impl/FaissException.h>

#include "core/errors.h"
#include "core/name_hint.h"
#include "core/number_format.h"

namespace faiss_ext {

namespace {

constexpr size_t max_length = 4096;
constexpr size_t max_depth = 64; ///< of parentheses
constexpr size_t quoted = 100;   ///< characters around an error, approximately

bool is_name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// Parses all of `s` as a number; returns none on failure.
template <class T>
std::optional<T> parse_number(const std::string& s) {
    T value{};
    const char* last = s.data() + s.size();
    const auto result = std::from_chars(s.data(), last, value);
    if (result.ec != std::errc() || result.ptr != last) {
        return std::nullopt;
    }
    return value;
}

std::string on_one_line(const std::string& text) {
    std::string line = printable(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    return line;
}

/// Counts the UTF-8 characters of a text.
size_t num_characters(const std::string& text) {
    return std::count_if(text.begin(), text.end(), [](char c) {
        return (c & 0xc0) != 0x80;
    });
}

std::string unexpected(char c) {
    // a byte of a longer UTF-8 character is not valid text
    return std::isprint(static_cast<unsigned char>(c))
            ? std::string("unexpected '") + c + "'"
            : "unexpected character";
}

} // namespace

void throw_parse_error(
        const std::string& text,
        size_t position,
        const std::string& message,
        const std::vector<std::string>& expected) {
    const size_t begin = position > 2 * quoted ? position - quoted : 0;
    const std::string before = on_one_line(
            (begin ? "..." : "") + text.substr(begin, position - begin));
    const std::string shown = before +
            on_one_line(text.substr(position, 2 * quoted) +
                        (text.size() > position + 2 * quoted ? "..." : ""));
    std::ostringstream out;
    out << "invalid factory string \"" << shown << "\", position " << position
        << ": " << printable(message) << "\n  " << shown << "\n  "
        << std::string(num_characters(before), ' ') << "^";
    if (!expected.empty()) {
        out << "\n  accepted here: ";
        for (size_t i = 0; i < expected.size(); i++) {
            out << (i ? ", " : "") << expected[i];
        }
        const std::string hint = name_hint(text.substr(position), expected);
        out << (hint.empty() ? "" : "\n  ") << hint;
    }
    throw Error(out.str());
}

static void check_size(const std::string& text) {
    if (text.size() > max_length) {
        throw_parse_error(
                text,
                max_length,
                "the string has " + std::to_string(text.size()) +
                        " characters, expected at most " +
                        std::to_string(max_length));
    }
    size_t depth = 0;
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] == '(' && ++depth > max_depth) {
            throw_parse_error(text, i, "too many nested '('");
        }
        depth -= text[i] == ')' && depth > 0;
    }
}

std::string without_spaces(const std::string& text) {
    check_size(text);
    const auto is_space = [](char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
    };
    const auto is_punctuation = [](char c) {
        return c == ',' || c == '(' || c == ')' || c == '=' || c == '*';
    };
    std::string out;
    for (size_t i = 0; i < text.size(); i++) {
        if (!is_space(text[i])) {
            out += text[i];
            continue;
        }
        size_t end = i;
        while (end < text.size() && is_space(text[end])) {
            end++;
        }
        if (!out.empty() && !is_punctuation(out.back()) && end < text.size() &&
            !is_punctuation(text[end])) {
            out.append(text, i, end - i);
        }
        i = end - 1;
    }
    return out;
}

std::vector<std::pair<size_t, size_t>> split_arguments(
        const std::string& text,
        size_t begin,
        size_t end) {
    std::vector<std::pair<size_t, size_t>> pieces;
    std::vector<size_t> open;
    size_t start = begin;
    for (size_t i = begin; i < end; i++) {
        if (text[i] == '(') {
            open.push_back(i);
        } else if (text[i] == ')') {
            if (open.empty()) {
                throw_parse_error(text, i, "')' without '('");
            }
            open.pop_back();
        } else if (text[i] == ',' && open.empty()) {
            pieces.emplace_back(start, i);
            start = i + 1;
        }
    }
    if (!open.empty()) {
        throw_parse_error(text, open.back(), "'(' without ')'");
    }
    pieces.emplace_back(start, end);
    return pieces;
}

Spec Spec::parse(const std::string& text) {
    const auto shared =
            std::make_shared<const std::string>(without_spaces(text));
    return parse(shared, 0, shared->size());
}

Spec Spec::parse(
        std::shared_ptr<const std::string> text,
        size_t begin,
        size_t end) {
    const std::string& s = *text;
    Spec spec;
    spec.text = std::move(text);
    spec.begin = begin;
    spec.end = end;

    size_t i = begin;
    if (i == end || !std::isalpha(static_cast<unsigned char>(s[i]))) {
        throw_parse_error(s, i, "expected a name");
    }
    // names have no '-', but an error shall quote jensen-shannon as a whole
    const auto is_hyphen = [&](size_t at) {
        return s[at] == '-' && at + 1 < end &&
                std::isalpha(static_cast<unsigned char>(s[at + 1]));
    };
    while (i < end && (is_name_char(s[i]) || is_hyphen(i))) {
        i++;
    }
    spec.name = s.substr(begin, i - begin);
    if (i == end) {
        return spec;
    }
    if (s[i] != '(') {
        throw_parse_error(s, i, unexpected(s[i]), {"'('", "the end"});
    }
    split_arguments(s, i, end); // parentheses match
    size_t close = i;
    for (int depth = 0; close < end; close++) {
        depth += (s[close] == '(') - (s[close] == ')');
        if (depth == 0) {
            break;
        }
    }
    if (close + 1 != end) {
        throw_parse_error(s, close + 1, unexpected(s[close + 1]), {"the end"});
    }
    if (close == i + 1) {
        throw_parse_error(s, close, "expected an argument");
    }
    for (auto [from, to] : split_arguments(s, i + 1, close)) {
        Argument a;
        a.position = from;
        size_t key_end = from;
        while (key_end < to && is_name_char(s[key_end])) {
            key_end++;
        }
        if (key_end < to && s[key_end] == '=') {
            if (key_end == from) {
                throw_parse_error(s, from, "expected a key before '='");
            }
            a.key = s.substr(from, key_end - from);
            a.value_begin = key_end + 1;
        } else {
            a.value_begin = from;
        }
        a.value = s.substr(a.value_begin, to - a.value_begin);
        if (a.value.empty()) {
            throw_parse_error(
                    s,
                    a.value_begin,
                    a.key.empty() ? "expected an argument"
                                  : "expected a value of " + a.key);
        }
        for (const Argument& other : spec.arguments) {
            if (!a.key.empty() && other.key == a.key) {
                throw_parse_error(s, from, a.key + " is given twice");
            }
        }
        spec.arguments.push_back(std::move(a));
    }
    return spec;
}

std::string Spec::str() const {
    return text->substr(begin, end - begin);
}

bool Spec::knows(const std::string& key) const {
    return std::find(known_keys.begin(), known_keys.end(), key) !=
            known_keys.end();
}

Spec::Argument* Spec::find(const std::string& key) {
    if (!knows(key)) {
        known_keys.push_back(key);
    }
    for (Argument& a : arguments) {
        if (a.key == key) {
            a.used = true;
            return &a;
        }
    }
    return nullptr;
}

Spec Spec::get_item(
        const std::string& key,
        const std::vector<std::string>& expected) {
    const Argument a = get_item_argument(key, expected);
    return parse(text, a.value_begin, a.value_begin + a.value.size());
}

Spec Spec::get_weighted_item(
        const std::string& key,
        const std::vector<std::string>& expected,
        double low,
        double high,
        double& weight) {
    const Argument a = get_item_argument(key, expected);
    size_t begin = 0; // of the item in the argument
    const size_t star = a.value.find_first_of("*(");
    if (star != std::string::npos && a.value[star] == '*') {
        const auto given = parse_number<double>(a.value.substr(0, star));
        if (!given || !(*given >= low && *given <= high)) {
            fail(a.value_begin,
                 "invalid weight '" + a.value.substr(0, star) + "'",
                 {"a number from " + shortest(low) + " to " + shortest(high)});
        }
        weight = *given;
        begin = star + 1;
    }
    return parse(text, a.value_begin + begin, a.value_begin + a.value.size());
}

Spec::Argument Spec::get_item_argument(
        const std::string& key,
        const std::vector<std::string>& expected) {
    if (const auto a = get_keyed_or_positional(key)) {
        return *a;
    }
    size_t place = end;
    for (const Argument& other : arguments) {
        place = other.in_head ? place : std::min(place, other.position);
    }
    fail(place, name + " needs an argument", expected);
}

bool Spec::has_positional() const {
    return std::any_of(
            arguments.begin(), arguments.end(), [](const Argument& a) {
                return a.key.empty() && !a.used;
            });
}

std::optional<Spec::Argument> Spec::get_positional() {
    for (Argument& a : arguments) {
        if (a.key.empty() && !a.used) {
            a.used = true;
            return a;
        }
    }
    return std::nullopt;
}

std::optional<Spec::Argument> Spec::get_keyed_or_positional(
        const std::string& key) {
    const auto keyed = get(key), positional = get_positional();
    if (keyed && positional) {
        fail(std::max(keyed->position, positional->position),
             key + " is given twice");
    }
    return keyed ? keyed : positional;
}

std::optional<Spec::Argument> Spec::get(const std::string& key) {
    const Argument* a = find(key);
    return a ? std::optional(*a) : std::nullopt;
}

void Spec::set_argument(
        const std::string& key,
        const std::string& value,
        size_t position) {
    for (const Argument& a : arguments) {
        if (a.key == key) {
            fail(a.position, key + " is given twice");
        }
    }
    arguments.push_back({key, value, position, position, false, true});
}

template <class T>
T Spec::get_number(
        const std::string& key,
        T default_value,
        T low,
        T high,
        const std::vector<std::string>& expected) {
    const Argument* a = find(key);
    if (!a) {
        if (!(default_value >= low && default_value <= high)) {
            if (const auto other = get_positional()) {
                fail_unknown(*other);
            }
            fail(end, name + " needs " + key + "=");
        }
        return default_value;
    }
    const auto value = parse_number<T>(a->value);
    if (!value || !(*value >= low && *value <= high)) {
        fail(a->value_begin,
             "invalid value '" + a->value + "' of " + key,
             expected);
    }
    return *value;
}

template int64_t Spec::get_number(
        const std::string&,
        int64_t,
        int64_t,
        int64_t,
        const std::vector<std::string>&);
template double Spec::get_number(
        const std::string&,
        double,
        double,
        double,
        const std::vector<std::string>&);

bool Spec::get_flag(const std::string& key, bool default_value) {
    const std::string value = get_word(
            key, default_value ? "1" : "0", {"0", "1", "false", "true"});
    return value == "1" || value == "true";
}

std::string Spec::get_word(
        const std::string& key,
        const std::string& default_value,
        const std::vector<std::string>& choices) {
    const Argument* a = find(key);
    if (!a) {
        return default_value;
    }
    if (std::find(choices.begin(), choices.end(), a->value) == choices.end()) {
        fail(a->value_begin,
             "invalid value '" + a->value + "' of " + key,
             choices);
    }
    return a->value;
}

void Spec::hand_over_keys(Spec& argument) {
    for (Argument& a : arguments) {
        if (a.used || a.key.empty()) {
            continue;
        }
        for (const Argument& b : argument.arguments) {
            if (b.key == a.key) {
                fail(a.position, a.key + " is given twice");
            }
        }
        argument.arguments.push_back(a);
        a.used = true;
    }
    argument.owner = name;
    // inside its own parentheses, only its own keys are accepted
    if (argument.end == argument.begin + argument.name.size()) {
        argument.known_keys.insert(
                argument.known_keys.end(),
                known_keys.begin(),
                known_keys.end());
        argument.idle_keys = idle_keys;
    }
}

void Spec::finish() const {
    for (const Argument& a : arguments) {
        if (!a.used) {
            fail_unknown(a);
        }
    }
}

void Spec::fail_unknown(const Argument& a) const {
    const std::string of_owner = " of " + (a.position >= end ? owner : name);
    std::vector<std::string> expected;
    for (const std::string& key : known_keys) {
        expected.push_back(key + "=");
    }
    if (expected.empty()) {
        expected.push_back("no argument");
    }
    const bool is_idle = std::find(idle_keys.begin(), idle_keys.end(), a.key) !=
            idle_keys.end();
    fail(a.position,
         a.key.empty()     ? "unknown argument '" + a.value + "'" + of_owner
                 : is_idle ? "key '" + a.key + "'" + of_owner +
                         " has no effect with these settings"
                           : "unknown key '" + a.key + "'" + of_owner,
         expected);
}

void Spec::fail(
        size_t position,
        const std::string& message,
        const std::vector<std::string>& expected) const {
    throw_parse_error(*text, position, message, expected);
}

void Spec::fail_value(const std::string& key, const std::string& message)
        const {
    for (const Argument& a : arguments) {
        if (a.key == key) {
            fail(a.value_begin, message);
        }
    }
    fail(begin, message);
}

} // namespace faiss_ext
