// SPDX-License-Identifier: MIT
// The common grammar of factory strings.

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
 * A name starts with a letter, followed by letters, digits and `_`. A value is
 * a number, a word or an item with its own parentheses. Every error is a
 * faiss::FaissException that quotes the whole string, marks the place, and says
 * what would be accepted there.
 *
 * A reader takes each argument that it knows with one of the get functions.
 * Then it calls finish(), which rejects all other arguments and lists the known
 * ones. To read whole objects, see field_strings.h.
 */
struct Spec {
    struct Argument {
        std::string key;        ///< empty for a positional argument
        std::string value;      ///< as written
        size_t position = 0;    ///< of the argument, in the whole string
        size_t value_begin = 0; ///< of the value, in the whole string
        bool used = false;
        bool in_head = false; ///< precedes the parentheses
    };

    std::shared_ptr<const std::string> text; ///< the whole string
    size_t begin = 0, end = 0;               ///< the item's position in it
    std::string name;
    std::vector<Argument> arguments;

    /// Parses all of `text` as one item. White space around punctuation is
    /// ignored.
    static Spec parse(const std::string& text);

    /// Parses text[begin, end) as one item.
    static Spec parse(
            std::shared_ptr<const std::string> text,
            size_t begin,
            size_t end);

    /// Returns the item as written.
    std::string str() const;

    /// Returns the argument `key` as an item, or else the first unread
    /// positional argument. If there is neither, throws an error that lists
    /// `expected`.
    Spec get_item(
            const std::string& key,
            const std::vector<std::string>& expected);

    /// The same for an item that may have a weight from low to high in front of
    /// it, as in `0.3*chi2`. Without one, `weight` stays as it is.
    Spec get_weighted_item(
            const std::string& key,
            const std::vector<std::string>& expected,
            double low,
            double high,
            double& weight);

    /// Whether there is an unread positional argument.
    bool has_positional() const;

    /// Returns the first unread positional argument, as written.
    std::optional<Argument> get_positional();

    /// Returns the argument `key`, or else the first positional one. Throws if
    /// there are both.
    std::optional<Argument> get_keyed_or_positional(const std::string& key);

    /// Returns the argument `key`, or none if it is not given.
    std::optional<Argument> get(const std::string& key);

    /// Reads a number, int64_t or double. If the default is outside the allowed
    /// range `low` to `high`, the key must be given. An error lists `expected`.
    template <class T>
    T get_number(
            const std::string& key,
            T default_value,
            T low,
            T high,
            const std::vector<std::string>& expected);

    /// Reads a flag: 0, 1, `false` or `true`.
    bool get_flag(const std::string& key, bool default_value);

    /// Reads one of several words.
    std::string get_word(
            const std::string& key,
            const std::string& default_value,
            const std::vector<std::string>& choices);

    /// Sets an argument that is written elsewhere in the string, such as the
    /// number behind a name. Throws if it is also given as an argument.
    void set_argument(
            const std::string& key,
            const std::string& value,
            size_t position);

    /// Passes the unread keys on to an argument of this item: in
    /// `SIK512(gaussian,gamma=1)` gamma belongs to the kernel.
    void hand_over_keys(Spec& argument);

    /// Returns whether the argument `key` has been asked for.
    bool knows(const std::string& key) const;

    /// Valid keys that have no effect in combination with the other arguments.
    std::vector<std::string> idle_keys;

    /// Throws if an argument has not been read.
    void finish() const;

    /// Throws an error that marks a position in the string.
    [[noreturn]] void fail(
            size_t position,
            const std::string& message,
            const std::vector<std::string>& expected = {}) const;
    /// Throws an error that marks the value of `key`, or the whole item if the
    /// key is not given.
    [[noreturn]] void fail_value(
            const std::string& key,
            const std::string& message) const;

   private:
    std::string owner; ///< the item that passed its keys on to this one, if any
    std::vector<std::string> known_keys;
    /// The argument of get_item.
    Argument get_item_argument(
            const std::string& key,
            const std::vector<std::string>& expected);
    Argument* find(const std::string& key);
    [[noreturn]] void fail_unknown(const Argument& a) const;
};

/// Throws the error common to all factory strings: it quotes `text`, marks
/// `position`, and says what would have been accepted there.
[[noreturn]] void throw_parse_error(
        const std::string& text,
        size_t position,
        const std::string& message,
        const std::vector<std::string>& expected = {});

/// Removes white space at the ends and around punctuation: `SIK512 (gaussian),
/// BFlat` becomes `SIK512(gaussian),BFlat`. Throws if the string is too long or
/// its parentheses are nested too deeply, because parsers are recursive and
/// FAISS's crash on such strings.
std::string without_spaces(const std::string& text);

/// Splits text[begin, end) at the commas outside parentheses and returns the
/// positions of the pieces. Throws if parentheses do not match.
std::vector<std::pair<size_t, size_t>> split_arguments(
        const std::string& text,
        size_t begin,
        size_t end);

} // namespace faiss_ext
