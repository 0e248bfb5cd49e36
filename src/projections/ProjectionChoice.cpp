// SPDX-License-Identifier: MIT
#include <faiss_ext/projections/ProjectionChoice.h>

#include <algorithm>

#include <faiss_ext/projections/BilinearProjection.h>

#include "core/field_strings.h"

namespace faiss_ext {

void ProjectionChoice::fields(
        FieldVisitor& v,
        int d,
        const std::vector<Kind>& kinds) const {
    const std::vector<std::string> all = {"structured", "dense", "bilinear"};
    std::vector<std::string> words;
    words.reserve(kinds.size());
    for (Kind k : kinds) {
        words.push_back(all[int(k)]);
    }
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    if (found == kinds.end() && kind != Kind::structured) {
        throw FieldError(
                "proj",
                "proj is " + all.at(int(kind)) + ", expected " + join(words));
    }
    int chosen = found == kinds.end() ? 0 : int(found - kinds.begin());
    v.word("proj", chosen, words, "form of the random projection");
    v.assign(kind, kinds.at(chosen));
    if (kind == Kind::bilinear ||
        (v.wants_all() &&
         std::count(kinds.begin(), kinds.end(), Kind::bilinear))) {
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

void ProjectionChoice::set_kind(const std::vector<Kind>& kinds) {
    if (kind == Kind::structured &&
        std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
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
