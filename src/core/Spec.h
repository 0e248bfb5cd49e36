// SPDX-License-Identifier: MIT
// The grammar that all factory strings share.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace faiss_ext {

/** One parsed item of a factory string: `NAME`, `NAME(a,key=value,...)`.
 *
 * A name starts with a letter and goes on with letters, digits and `_`. A value
 * is a number, a word or an item with parentheses of its own. Every error is a
 * faiss::FaissException that quotes the whole string, marks the place, and says
 * what would be accepted there.
 *
 * A reader takes each argument that it knows with one of the get functions and
 * then calls finish(), which rejects all others and lists those that were asked
 * for. (field_strings.h reads whole objects.)
 */
struct Spec {
    struct Argument {
        std::string key;        ///< empty for a positional argument
        std::string value;      ///< as written
        size_t position = 0;    ///< of the argument, in the whole string
        size_t value_begin = 0; ///< of the value, in the whole string
        bool used = false;
        bool in_head = false; ///< stands before the parentheses
    };

    std::shared_ptr<const std::string> text; ///< the whole string
    size_t begin = 0, end = 0;               ///< the item's place in it
    std::string name;
    std::vector<Argument> arguments;

    /// Parses all of `text` as one item, white space around punctuation aside.
    static Spec parse(const std::string& text);

    /// Parses text[begin, end) as one item.
    static Spec parse(
            std::shared_ptr<const std::string> text,
            size_t begin,
            size_t end);

    /// the item as written
    std::string str() const;

    /// The argument `key`, or else the first positional one that has not been
    /// read, as an item; an error that lists `expected` if there is neither.
    Spec get_item(
            const std::string& key,
            const std::vector<std::string>& expected);

    /// The first positional argument that has not been read, as written.
    std::optional<Argument> get_positional();

    /// The argument `key`, or else the first positional one; throws if there
    /// are both.
    std::optional<Argument> get_keyed_or_positional(const std::string& key);

    /// The argument `key`; none if it is not given.
    std::optional<Argument> get(const std::string& key);

    /// A number, int64_t or double. A default that is not among the values
    /// allowed, `low` to `high`, means that the key must be given; an error
    /// lists `expected`.
    template <class T>
    T get_number(
            const std::string& key,
            T default_value,
            T low,
            T high,
            const std::vector<std::string>& expected);

    /// A yes or no: 0, 1, `false` or `true`.
    bool get_flag(const std::string& key, bool default_value);

    /// One of several words.
    std::string get_word(
            const std::string& key,
            const std::string& default_value,
            const std::vector<std::string>& choices);

    /// Sets an argument that stands elsewhere in the string, such as the number
    /// behind a name; throws if it is given as well.
    void set_argument(
            const std::string& key,
            const std::string& value,
            size_t position);

    /// Hands the keys that nobody has read so far over to an argument of this
    /// item: in `SIK512(gaussian,gamma=1)` gamma is the kernel's.
    void hand_over_keys(Spec& argument);

    /// Whether the argument `key` has been asked for.
    bool knows(const std::string& key) const;

    /// Keys that exist, but have no effect with the others as they are.
    std::vector<std::string> idle_keys;

    /// Throws if an argument has not been read.
    void finish() const;

    /// Throws an error about a place in the string.
    [[noreturn]] void fail(
            size_t position,
            const std::string& message,
            const std::vector<std::string>& expected = {}) const;
    /// Throws an error about the value of `key`, or about the whole item if
    /// that is not given.
    [[noreturn]] void fail_value(
            const std::string& key,
            const std::string& message) const;

   private:
    std::string owner; ///< whose keys this item was handed, if any
    std::vector<std::string> known_keys;
    Argument* find(const std::string& key);
    [[noreturn]] void fail_unknown(const Argument& a) const;
};

/// Throws the error that all factory strings give: `text` quoted, `position`
/// marked, and what would have been accepted there.
[[noreturn]] void throw_parse_error(
        const std::string& text,
        size_t position,
        const std::string& message,
        const std::vector<std::string>& expected = {});

/// A factory string without the white space that may stand at its ends and
/// around its punctuation: `SIK512 (gaussian), BFlat` is
/// `SIK512(gaussian),BFlat`. Throws where it is too long, or its parentheses
/// are nested too deeply: parsers are recursive, and FAISS's crash on such
/// strings.
std::string without_spaces(const std::string& text);

/// Splits text[begin, end) at the commas outside parentheses; the pieces'
/// places. Throws where parentheses do not match.
std::vector<std::pair<size_t, size_t>> split_arguments(
        const std::string& text,
        size_t begin,
        size_t end);

} // namespace faiss_ext
