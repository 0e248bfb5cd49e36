// SPDX-License-Identifier: MIT
// Fields as visitors see them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <faiss_ext/core/field_refs.h>
#include <faiss_ext/core/fields.h>

namespace faiss_ext {

/// A field as visitors see it: its name in strings or messages, and its
/// meaning. Derived classes add the value and its range.
struct Field {
    const char* key;
    const char* meaning;
};

/// A parameter that is yes or no.
struct FlagField : Field {
    const bool& value;
};

/// A number from low to high. If `automatic` is given, the word `auto` sets it,
/// and the value is 0 until it has been chosen.
template <class T> // int64_t or double
struct NumberField : Field {
    const T& value;
    T low, high;
    const bool* automatic;

    bool is_automatic() const {
        return automatic && *automatic && value == 0;
    }
    bool is_valid() const {
        return is_automatic() || (value >= low && value <= high);
    }
};

/// One of several words: words[value].
struct WordField : Field {
    const int& value;
    const std::vector<std::string>& words;
};

/// A shape such as `28x56`, whose product is `components`, or `auto`, which is
/// 0 x 0.
struct ShapeField : Field {
    const int &rows, &columns;
    int64_t components;

    bool is_valid() const {
        return rows == 0 || columns == 0
                ? rows == columns
                : rows > 0 && int64_t(rows) * columns == components;
    }
};

/// An object with its own parameters. If `none` is given, it is the word for
/// its absence.
struct PartField : Field {
    ObjectRef& part;
    const char* none;
};

/// At least one object with its own parameters. If `weights` is not null, each
/// has a weight from low to high.
struct PartsField : Field {
    ObjectsRef& parts;
    const std::vector<double>* weights;
    double low, high;

    bool has_weight(size_t i) const {
        return weights && i < weights->size() && (*weights)[i] != 1;
    }
};

/// A visitor that sets the fields of an object that is not const, by
/// settable().
struct FieldSetter : FieldVisitor {
    bool sets() const final {
        return true;
    }
};

} // namespace faiss_ext
