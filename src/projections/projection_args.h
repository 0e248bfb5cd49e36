// Arguments of projections in factory strings.

#pragma once

#include <charconv>
#include <string>
#include <utility>

#include <faiss_ext/core/Spec.h>
#include <faiss_ext/projections/BilinearProjection.h>

namespace faiss_ext {

/// `28x28`, or `auto` for the most nearly square shape; the product must be d.
inline std::pair<int, int> parse_shape(
        const Spec& spec,
        const std::string& text,
        size_t position,
        int d) {
    const int side = BilinearProjection::nearly_square(d);
    if (text == "auto") {
        return {side, d / side};
    }
    const std::vector<std::string> expected = {
            "auto", std::to_string(side) + "x" + std::to_string(d / side)};
    int shape[2] = {0, 0};
    const char* at = text.data();
    const char* end = at + text.size();
    for (int i = 0; i < 2; i++) {
        const auto result = std::from_chars(at, end, shape[i]);
        const bool last = i == 1;
        if (result.ec != std::errc() || shape[i] <= 0 ||
            (last ? result.ptr != end
                  : result.ptr == end || *result.ptr != 'x')) {
            spec.fail(position, "'" + text + "' is no shape", expected);
        }
        at = result.ptr + 1;
    }
    if (int64_t(shape[0]) * shape[1] != d) {
        spec.fail(
                position,
                "a matrix of " + text + " has " +
                        std::to_string(int64_t(shape[0]) * shape[1]) +
                        " components, the vectors have " + std::to_string(d),
                expected);
    }
    return {shape[0], shape[1]};
}

/// The choice between structured and dense projections in a string.
inline bool get_structured(Spec& spec) {
    return spec.get_word("proj", "structured", {"structured", "dense"}) ==
            "structured";
}

} // namespace faiss_ext
