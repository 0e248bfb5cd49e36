// SPDX-License-Identifier: MIT
#include "core/name_hint.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace faiss_ext {

namespace {

/// A name from papers or other libraries, in lower case without `_` and `-`;
/// our name; and the difference in meaning, if there is one.
struct OtherName {
    const char *other, *ours, *difference = "";
};

constexpr const char* width =
        "gamma is 1/sigma^2 for gaussian and matern, 1/sigma for laplacian";

const OtherName other_names[] = {
        // kernels
        {"rbf",
         "gaussian",
         "it is exp(-gamma |x - y|^2 / 2): gamma is twice scikit-learn's"},
        {"gauss", "gaussian"},
        {"squaredexponential", "gaussian"},
        {"laplace", "laplacian"},
        {"cos", "cosine"},
        {"cosinesimilarity", "cosine"},
        {"angular", "cosine"},
        {"l1",
         "laplacian",
         "it is exp(-gamma |x - y|_1), in the order of L1 distances"},
        {"manhattan", "laplacian"},
        {"cityblock", "laplacian"},
        {"l2",
         "gaussian",
         "it is exp(-gamma |x - y|^2 / 2), in the order of L2 distances"},
        {"euclidean", "gaussian"},
        {"ip", "linear"},
        {"dot", "linear"},
        {"dotproduct", "linear"},
        {"innerproduct", "linear"},
        {"polynomial", "poly"},
        {"chi", "chi2"},
        {"chisq", "chi2"},
        {"chisquare", "chi2"},
        {"chisquared", "chi2"},
        {"additivechi2", "chi2"},
        {"expchisquare", "expchi2"},
        {"expchisquared", "expchi2"},
        {"exponentialchi2", "expchi2"},
        {"hik", "intersection"},
        {"hist", "intersection"},
        {"histintersection", "intersection"},
        {"histogramintersection", "intersection"},
        {"min", "intersection"},
        {"bhattacharyya", "hellinger"},
        {"jsd", "js"},
        {"jensenshannon", "js"},
        {"tanimoto", "jaccard"},
        {"iou", "jaccard"},
        {"normalised", "normalized"},
        // parameters of kernels
        {"sigma", "gamma", width},
        {"bandwidth", "gamma", width},
        {"lengthscale", "gamma", width},
        {"coef0", "c"},
        // parameters of indexes and hashes
        {"storage", "store"},
        {"dtype", "store"},
        {"centre", "center"},
        {"normalise", "normalize"},
        {"randomstate", "seed"},
        {"float", "f32"},
        {"fp32", "f32"},
        {"float32", "f32"},
        {"fp16", "f16"},
        {"float16", "f16"},
        {"half", "f16"},
        {"uint8", "u8"},
        {"byte", "u8"},
        {"int8", "i8"}};

/// The first word of a text, which may stand behind a comma.
std::string first_word(const std::string& text) {
    const auto begin = text.begin() + (text.starts_with(',') ? 1 : 0);
    const auto end = std::find_if_not(begin, text.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                c == '-';
    });
    return std::string(begin, end);
}

/// Whether a number follows the first word of an accepted text: `HNSW<M>`.
bool has_number(const std::string& accepted, const std::string& word) {
    return accepted.find(word + "<") <= 1;
}

std::string without_number(const std::string& word) {
    return word.substr(0, word.find_first_of("0123456789"));
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
        return char(std::tolower(c));
    });
    return text;
}

std::string without_separators(std::string text) {
    text.erase(
            std::remove_if(
                    text.begin(),
                    text.end(),
                    [](char c) { return c == '_' || c == '-'; }),
            text.end());
    return text;
}

/// Returns the edit distance: letters to insert, delete or change.
size_t edits(const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 0; i < a.size(); i++) {
        size_t diagonal = row[0]++;
        for (size_t j = 0; j < b.size(); j++) {
            const size_t changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

} // namespace

std::string name_hint(
        const std::string& name,
        const std::vector<std::string>& accepted) {
    const std::string given = first_word(name);
    std::string wanted = lower(given), difference;
    for (const OtherName& known : other_names) {
        if (without_separators(wanted) == known.other) {
            wanted = known.ours;
            difference = known.difference;
        }
    }
    std::string best;
    bool is_given = false;        // the best is what was given
    size_t least = wanted.size(); // with more edits it is another word
    for (const std::string& text : accepted) {
        const std::string word = first_word(text);
        const bool numbered = has_number(text, word);
        const std::string compared = numbered ? without_number(wanted) : wanted;
        const size_t n = edits(compared, lower(word));
        if (n <= word.size() / 5 && n < least) {
            least = n;
            best = word;
            is_given = word == (numbered ? without_number(given) : given);
        }
    }
    if (best.empty() || is_given) {
        return "";
    }
    return "did you mean " + best + "?" +
            (difference.empty() ? "" : " (" + difference + ")");
}

} // namespace faiss_ext
