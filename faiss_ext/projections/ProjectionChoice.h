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
 * - `proj=generated`: GeneratedProjection, for sparse vectors of many
 *   dimensions
 * - `proj=auto`, the default: generated if the projection has more than
 *   most_stored_inputs inputs, otherwise structured, or dense if the scheme has
 *   no structured projection
 */
struct ProjectionChoice {
    enum class Kind { structured, dense, bilinear, generated, automatic };
    enum class Rows { structured, dense };

    Kind kind = Kind::automatic; ///< after init() of the scheme: another one

    // for bilinear projections
    int d_w = 0, d_v = 0; ///< shape of the vectors; 0 x 0: nearly square
    int m = 5;
    Rows w = Rows::structured;
    bool shuffle = true;

    /// A structured projection takes time and memory in proportion to its
    /// inputs. Beyond this number, 2^17, most vectors are sparse.
    static constexpr int most_stored_inputs = 1 << 17;

    ProjectionChoice() = default;
    ProjectionChoice(Kind kind) : kind(kind) {}

    /**
     * @param d         dimension of vectors
     * @param features  inputs of the projection; not used while `kind` is
     *                  automatic
     * @param kinds     the kinds to choose from, except automatic; if
     *                  structured is not among them, the first one replaces it
     * @param with_idle  whether a visitor that wants all fields is shown those
     *                   of bilinear projections even if another kind is chosen
     */
    void fields(
            FieldVisitor& v,
            int d,
            int features,
            const std::vector<Kind>& kinds,
            bool with_idle = true) const;
    void bilinear_fields(FieldVisitor& v, int d) const;

    /// Replaces automatic, and structured if it is not among `kinds`.
    void set_kind(int features, const std::vector<Kind>& kinds);

    /// Sets the shape if it was left open.
    void set_shape(int d);

    /// Whether rows are independent.
    bool is_independent() const {
        return kind == Kind::dense || kind == Kind::generated;
    }

   private:
    static Kind default_kind(int features, const std::vector<Kind>& kinds);
};

} // namespace faiss_ext
