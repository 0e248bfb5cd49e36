// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/core/Transform.h>

namespace faiss_ext {

/** An explicit feature map: inner products of mapped vectors approximate a
 * kernel, so that any FAISS index for inner products or L2 searches under it.
 */
struct FeatureMap : Transform {
    using Registered = FeatureMap;
    using Transform::Transform;

    std::string description() const override;

    /// A copy, of the same class (which must be registered).
    std::unique_ptr<FeatureMap> clone() const;

    /// Makes this map equal to another one of the same class (which must be
    /// registered).
    void assign(const FeatureMap& other);

   protected:
    idx_t rows_per_block(idx_t n) const override;
    std::unique_ptr<Transform> copy_transform() const override;
    void assign_transform(const Transform& other) override;
};

template <>
ClassTable<FeatureMap>& class_table();

/** Makes a class of maps known by a name: from then on `NAME(...)` works in
 * front of any index, and the map can be written, read and copied.
 *
 * M has a default constructor, can be copied and assigned, and shows its
 * parameters in M::fields(); d_in is set when it is called, d_out is set by
 * M::init().
 *
 * @param number_key  the parameter whose value may stand behind the name:
 *                    `order` makes `HKM2(...)` of `HKM(...,order=2)`
 */
template <class M>
void register_map(const std::string& name, const std::string& number_key = "") {
    class_table<FeatureMap>().add(class_entry<FeatureMap, M>(name, number_key));
}

/// The names known, sorted.
std::vector<std::string> map_names();

/** Makes a map for vectors of dimension d from a string such as
 * `HKM2(chi2,norm=l1)`, `KPCA64(chi2)` or `RFF512(gaussian)`.
 *
 * Throws a faiss::FaissException that marks the place of an error.
 */
std::unique_ptr<FeatureMap> map_factory(int d, const std::string& description);

} // namespace faiss_ext
