// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <faiss_ext/core/ClonePtr.h>
#include <faiss_ext/projections/Projection.h>

namespace faiss_ext {

/** The kind of projection that a scheme draws.
 *
 * In strings:
 *
 * - `proj=structured`: StructuredProjection
 * - `proj=dense`: DenseProjection, the papers' form
 * - `proj=bilinear`: BilinearProjection, with the keys `shape`, `m`, `w` and
 *   `shuffle`
 */
struct ProjectionChoice {
    enum class Kind { structured, dense, bilinear };
    enum class Rows { structured, dense };

    Kind kind = Kind::structured;

    // for bilinear projections
    int d_w = 0, d_v = 0; ///< shape of the vectors; 0 x 0: nearly square
    int m = 5;
    Rows w = Rows::structured;
    bool shuffle = true;

    ProjectionChoice() = default;
    ProjectionChoice(Kind kind) : kind(kind) {}

    /**
     * @param kinds  the kinds to choose from; if structured is not among them,
     *               the first one replaces it
     */
    void fields(FieldVisitor& v, int d, const std::vector<Kind>& kinds) const;
    void bilinear_fields(FieldVisitor& v, int d) const;

    /// Replaces structured by the first of `kinds` if it is not among them.
    void set_kind(const std::vector<Kind>& kinds);

    /// Sets the shape if it was left open.
    void set_shape(int d);
};

} // namespace faiss_ext
