// SPDX-License-Identifier: MIT
#include "io/newer_faiss.h"

#include <array>
#include <cctype>
#include <string_view>

#include <faiss/Index.h>

namespace faiss_ext {

namespace {

using Version = std::array<int, 3>;

/// Words of FAISS's factory strings and the first version that knows them. '#'
/// is a digit. Words are compared by their beginning, so longer ones come
/// first.
const struct {
    std::string_view word;
    Version since;
} newer_words[] = {
        {"EDEN", {1, 15, 0}},
        {"SQtqmse", {1, 14, 2}},
        {"SQtq", {1, 14, 3}},
        {"SQ0", {1, 14, 2}},
        {"HR", {1, 14, 1}},
        {"FlatIPPanorama", {1, 14, 0}},
        {"FlatL2Panorama", {1, 13, 1}},
        {"FlatPanorama", {1, 13, 0}},
        {"RefinePanorama", {1, 13, 2}},
        {"SVS", {1, 13, 2}},
        {"RaBitQfs#", {1, 13, 2}},
        {"RaBitQfs", {1, 13, 0}},
        {"RaBitQ#", {1, 13, 2}},
        {"RaBitQ", {1, 11, 0}},
        {"SQbf16", {1, 9, 0}},
        {"SQ8_direct", {1, 9, 0}},
};

constexpr Version this_version{
        FAISS_VERSION_MAJOR,
        FAISS_VERSION_MINOR,
        FAISS_VERSION_PATCH};

bool begins_with(std::string_view text, std::string_view word) {
    for (size_t i = 0; i < word.size(); i++) {
        const bool is_same = i < text.size() &&
                (word[i] == '#' ? bool(std::isdigit((unsigned char)text[i]))
                                : text[i] == word[i]);
        if (!is_same) {
            return false;
        }
    }
    return true;
}

std::string text_of(const Version& v) {
    return std::to_string(v[0]) + "." + std::to_string(v[1]) + "." +
            std::to_string(v[2]);
}

} // namespace

std::string needs_newer_faiss(const std::string& factory_string) {
    const std::string_view s = factory_string;
    for (size_t i = 0; i < s.size(); i++) {
        if (i > 0 &&
            (std::isalnum((unsigned char)s[i - 1]) || s[i - 1] == '_')) {
            continue; // not the beginning of a word
        }
        for (const auto& newer : newer_words) {
            if (!begins_with(s.substr(i), newer.word)) {
                continue;
            }
            if (newer.since <= this_version) {
                break;
            }
            const std::string word(s.substr(i, newer.word.size()));
            return word + " needs FAISS " + text_of(newer.since) +
                    " or newer; this is FAISS " + text_of(this_version);
        }
    }
    return "";
}

} // namespace faiss_ext
