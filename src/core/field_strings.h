// SPDX-License-Identifier: MIT
// Objects from factory strings, and the other way round.

#pragma once

#include <string>

#include <faiss_ext/core/fields.h>

#include "core/Spec.h"

namespace faiss_ext {

/** Sets the parameters of a default-constructed object from the arguments of an
 * item, and calls its init(). An error marks its place in the string.
 *
 * Parts are positional arguments, such as the kernel in `SIK512(gaussian)`.
 * Keys that the object does not know are passed on to its first part.
 */
void read_string(HasFields& object, Spec& spec);

/// The parameters as in factory strings, such as `nu=2.5,gamma=0.02`.
/// Parameters with the same value as in `fresh`, a default-constructed object
/// of the same class, are left out.
std::string fields_to_string(const HasFields& object, const HasFields& fresh);

/// Returns `name(parameters)`, the string that makes an equal object of a known
/// class.
template <class Base>
std::string object_to_string(const Base& object) {
    const ClassEntry<Base> entry = class_table<Base>().find(object);
    const std::string arguments = fields_to_string(object, *entry.make());
    return entry.name + (arguments.empty() ? "" : "(" + arguments + ")");
}

/// While it exists, strings that this thread makes of objects are those from
/// before training: `auto` replaces values that training has chosen, and a
/// kernel stands in for given frequencies and functions, which otherwise have
/// no string.
class StringsBeforeTraining {
   public:
    StringsBeforeTraining();
    ~StringsBeforeTraining();
    StringsBeforeTraining(const StringsBeforeTraining&) = delete;
    StringsBeforeTraining& operator=(const StringsBeforeTraining&) = delete;

   private:
    bool outer;
};

/// Whether a StringsBeforeTraining of this thread exists.
bool are_strings_before_training();

/// The text of an argument that strings do not have, or of the kernel that
/// stands in for it before training.
std::string text_of_given(const std::string& text);

/// Whether a visitor makes a string from before training. It is then shown the
/// parameters of a choice even if training has made the choice.
bool shows_choices(const FieldVisitor& v);

/// Joins words: "a, b or c".
std::string join(const std::vector<std::string>& words);

} // namespace faiss_ext
