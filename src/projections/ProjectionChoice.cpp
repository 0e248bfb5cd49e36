// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/ProjectionChoice.h>

#include <algorithm>

#include <faiss_ext/projections/BilinearProjection.h>

#include "core/field_strings.h"

namespace faiss_ext {

namespace {

bool contains(
        const std::vector<ProjectionChoice::Kind>& kinds,
        ProjectionChoice::Kind kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

} // namespace

ProjectionChoice::Kind ProjectionChoice::default_kind(
        int features,
        const std::vector<Kind>& kinds) {
    return features > most_stored_inputs && contains(kinds, Kind::generated)
            ? Kind::generated
            : kinds.at(0);
}

void ProjectionChoice::fields(
        FieldVisitor& v,
        int d,
        int features,
        const std::vector<Kind>& kinds,
        bool with_idle) const {
    const std::vector<std::string> all = {
            "structured", "dense", "bilinear", "generated", "auto"};
    std::vector<Kind> choices = kinds;
    choices.push_back(Kind::automatic);
    std::vector<std::string> words;
    words.reserve(choices.size());
    for (Kind k : choices) {
        words.push_back(all[int(k)]);
    }
    Kind shown = kind;
    if (kind == Kind::structured && !contains(kinds, kind)) {
        shown = kinds.at(0);
    }
    // strings leave out the default; files have the kind itself
    if (kind != Kind::automatic && !v.wants_all() &&
        shown == default_kind(features, kinds)) {
        shown = Kind::automatic;
    }
    const auto found = std::find(choices.begin(), choices.end(), shown);
    if (found == choices.end()) {
        throw FieldError(
                "proj",
                "proj is " + all.at(int(kind)) + ", expected " + join(words));
    }
    int chosen = int(found - choices.begin());
    v.word("proj", chosen, words, "form of the random projection");
    v.assign(kind, choices.at(chosen));
    if (kind == Kind::bilinear ||
        (with_idle && v.wants_all() && contains(kinds, Kind::bilinear))) {
        bilinear_fields(v, d);
    }
}

void ProjectionChoice::bilinear_fields(FieldVisitor& v, int d) const {
    v.shape("shape",
            d_w,
            d_v,
            d,
            "shape of the vectors as matrices; auto: the most nearly square one");
    v.integer(
            "m",
            m,
            1,
            1000,
            "vectors on each side per square root of the bits");
    v.word("w",
           w,
           {"structured", "dense"},
           "form of the vectors on the left side");
    v.flag("shuffle", shuffle, "shuffle the components");
}

void ProjectionChoice::set_kind(int features, const std::vector<Kind>& kinds) {
    if (kind == Kind::automatic) {
        kind = default_kind(features, kinds);
    } else if (kind == Kind::structured && !contains(kinds, kind)) {
        kind = kinds.at(0);
    }
}

void ProjectionChoice::set_shape(int d) {
    if (d_w == 0) {
        d_w = BilinearProjection::nearly_square(d);
        d_v = d / d_w;
    }
}

} // namespace faiss_ext
