// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss_ext/core/Transform.h>

namespace faiss_ext {

/// An explicit feature map. Inner products of mapped vectors approximate a
/// kernel, so any FAISS index for inner products or L2 searches under that
/// kernel.
struct FeatureMap : Transform {
    using Registered = FeatureMap;
    using Transform::Transform;

    std::string description() const override;

    /// Returns a copy of the same class, which must be registered.
    std::unique_ptr<FeatureMap> clone() const;

    /// Makes this map equal to another one of the same class, which must be
    /// registered.
    void assign(const FeatureMap& other);

   protected:
    idx_t rows_per_block(idx_t n) const override;
    std::unique_ptr<Transform> copy_transform() const override;
    void assign_transform(const Transform& other) override;
};

template <>
ClassTable<FeatureMap>& class_table();

/** Registers a class of maps under a name. `NAME(...)` then works in front of
 * any index, and the map can be written, read and copied.
 *
 * M must have a default constructor, be copyable and assignable, and show its
 * parameters in M::fields(). d_in is set before M::fields() is called;
 * M::init() sets d_out.
 *
 * @param number_key  the parameter whose value may follow the name: with
 *                    `order`, `HKM2(...)` means `HKM(...,order=2)`
 */
template <class M>
void register_map(const std::string& name, const std::string& number_key = "") {
    class_table<FeatureMap>().add(class_entry<FeatureMap, M>(name, number_key));
}

/// The registered names, sorted.
std::vector<std::string> map_names();

/** Makes a map for vectors of dimension d from a string such as
 * `HKM2(chi2,norm=l1)`, `KPCA64(chi2)` or `RFF512(gaussian)`.
 *
 * Throws a faiss::FaissException that marks the place of an error.
 */
std::unique_ptr<FeatureMap> map_factory(int d, const std::string& description);

} // namespace faiss_ext
