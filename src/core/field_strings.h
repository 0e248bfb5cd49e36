// SPDX-License-Identifier: MIT
// Objects from factory strings.

#pragma once

#include <string>

#include <faiss_ext/core/fields.h>

#include "core/Spec.h"

namespace faiss_ext {

/** Sets the parameters of a default-constructed object from the arguments of an
 * item, and calls its init(). Throws an error that marks the place of what is
 * wrong.
 *
 * Parts are the positional arguments: in `SIK512(gaussian)` the kernel is one.
 * Keys that the object itself does not know are handed to its first part.
 */
void read_string(HasFields& object, Spec& spec);

/// `name(parameters)`: the string that makes an object of a known class again.
template <class Base>
std::string object_to_string(const Base& object) {
    const ClassEntry<Base> entry = class_table<Base>().find(object);
    const std::string arguments = fields_to_string(object, *entry.make());
    return entry.name + (arguments.empty() ? "" : "(" + arguments + ")");
}

/// "a, b or c"
std::string join(const std::vector<std::string>& words);

} // namespace faiss_ext
