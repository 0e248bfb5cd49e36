// SPDX-License-Identifier: MIT
#include "core/field_strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/errors.h"
#include "core/field_visitor.h"
#include "core/number_format.h"

namespace faiss_ext {

namespace {

thread_local bool are_before_training = false;

/// Parses `28x56`; returns none if the text has another form.
std::optional<std::pair<int, int>> parse_shape(const std::string& text) {
    int shape[2] = {0, 0};
    const char* at = text.data();
    const char* end = at + text.size();
    for (int i = 0; i < 2; i++) {
        const auto result = std::from_chars(at, end, shape[i]);
        if (result.ec != std::errc() || shape[i] <= 0 ||
            (i == 1 ? result.ptr != end
                    : result.ptr == end || *result.ptr != 'x')) {
            return std::nullopt;
        }
        at = result.ptr + 1;
    }
    return std::pair(shape[0], shape[1]);
}

std::string shape_to_string(int rows, int columns) {
    return rows == 0 ? "auto"
                     : std::to_string(rows) + "x" + std::to_string(columns);
}

std::string to_string(int64_t value) {
    return std::to_string(value);
}

std::string to_string(double value) {
    return shortest(value);
}

template <class T>
std::string to_string(const NumberField<T>& field) {
    return field.is_automatic() ? "auto" : to_string(field.value);
}

std::string to_string(const PartField& field) {
    return field.part.get() ? field.part.to_string()
            : field.none    ? field.none
                            : "";
}

/// Formats a range: `0 to 1`, `16` or `>= 0`.
template <class T>
std::string range_of(const NumberField<T>& field) {
    const std::string low = to_string(field.low);
    return field.low == field.high ? low
            : field.high == std::numeric_limits<T>::max()
            ? ">= " + low
            : low + " to " + to_string(field.high);
}

std::string values_of(const NumberField<int64_t>& field) {
    const std::string range = range_of(field);
    return field.low == field.high ? range
            : range[0] == '>'      ? "integer " + range
                                   : "integer, " + range;
}

std::string values_of(const NumberField<double>& field) {
    return "number, " + range_of(field);
}

std::string expected_of(const NumberField<int64_t>& field) {
    const std::string range = range_of(field);
    return field.low == field.high ? range
            : range[0] == '>'      ? "an integer " + range
                                   : "an integer from " + range;
}

std::string expected_of(const NumberField<double>& field) {
    return "a number from " + range_of(field);
}

/// Returns the words for the parts that fit.
std::vector<std::string> words_of(const PartField& field) {
    std::vector<std::string> words = field.part.names();
    if (field.none) {
        words.push_back(field.none);
    }
    return words;
}

struct Lister : FieldVisitor {
    std::vector<FieldInfo> infos;

    bool wants_all() const override {
        return true;
    }

   private:
    void add(
            const Field& field,
            const std::string& values,
            const std::string& default_value) {
        infos.push_back({field.key, values, default_value, field.meaning, {}});
    }

    /// A number whose default is out of range must be given.
    template <class T>
    void add_number(const NumberField<T>& field) {
        add(field,
            values_of(field) + (field.automatic ? ", or auto" : ""),
            field.is_valid() || field.automatic ? to_string(field) : "");
    }

    void on(const FlagField& field) override {
        add(field, "0 or 1", field.value ? "1" : "0");
    }
    void on(const NumberField<int64_t>& field) override {
        add_number(field);
    }
    void on(const NumberField<double>& field) override {
        add_number(field);
    }
    void on(const WordField& field) override {
        add(field, join(field.words), field.words.at(field.value));
        infos.back().words = field.words;
    }
    void on(const ShapeField& field) override {
        add(field, "<rows>x<columns> or auto", "auto");
    }
    void on(const PartField& field) override {
        add(field,
            join(words_of(field)),
            field.part.get() ? to_string(field) : "");
    }
    void on(const PartsField& field) override {
        add(field, "one or more of " + join(field.parts.names()), "");
    }
};

struct StringReader : FieldSetter {
    Spec& spec;

    explicit StringReader(Spec& spec) : spec(spec) {}

    void read(HasFields& object) {
        object.fields(*this);
        for (const FieldInfo& info : list_fields(object)) {
            if (!spec.knows(info.key)) {
                spec.idle_keys.push_back(info.key);
            }
        }
        if (part) {
            spec.hand_over_keys(item);
            StringReader(item).read(*part);
        }
        spec.finish();
        try {
            object.init();
        } catch (const FieldError& e) {
            spec.fail_value(e.key, e.msg);
        }
    }

   private:
    /// The first part. Its arguments are read last, after this object has taken
    /// its own.
    HasFields* part = nullptr;
    Spec item;

    void on(const FlagField& field) override {
        settable(field.value) = spec.get_flag(field.key, field.value);
    }

    template <class T>
    void read_number(const NumberField<T>& field) {
        std::vector<std::string> expected = {expected_of(field)};
        if (field.automatic) {
            expected.push_back("auto");
            if (const auto given = spec.get(field.key)) {
                settable(*field.automatic) = given->value == "auto";
                settable(field.value) = *field.automatic ? 0 : field.value;
            }
            if (*field.automatic) {
                return;
            }
        }
        settable(field.value) = spec.get_number<T>(
                field.key, field.value, field.low, field.high, expected);
    }
    void on(const NumberField<int64_t>& field) override {
        read_number(field);
    }
    void on(const NumberField<double>& field) override {
        read_number(field);
    }

    void on(const WordField& field) override {
        const auto& words = field.words;
        const std::string word =
                spec.get_word(field.key, words[field.value], words);
        settable(field.value) = int(
                std::find(words.begin(), words.end(), word) - words.begin());
    }

    void on(const ShapeField& field) override {
        const auto given = spec.get_keyed_or_positional(field.key);
        if (!given || given->value == "auto") {
            return;
        }
        const auto shape = parse_shape(given->value);
        if (!shape) {
            spec.fail(
                    given->value_begin,
                    "invalid shape '" + given->value + "'",
                    {"<rows>x<columns>", "auto"});
        }
        const int64_t product = int64_t(shape->first) * shape->second;
        if (product != field.components) {
            spec.fail(
                    given->value_begin,
                    "a matrix of " + given->value + " has " +
                            std::to_string(product) +
                            " components, the vectors have " +
                            std::to_string(field.components));
        }
        settable(field.rows) = shape->first;
        settable(field.columns) = shape->second;
    }

    void on(const PartField& field) override {
        const std::vector<std::string> words = words_of(field);
        item = spec.get_item(field.key, words);
        if (field.none && item.name == field.none) {
            field.part.clear();
            item.finish();
            return;
        }
        make(field.part, item, words);
        part = field.part.get_settable();
    }

    void on(const PartsField& field) override {
        const std::vector<std::string> words = field.parts.names();
        do {
            double weight = 1;
            Spec one = field.weights
                    ? spec.get_weighted_item(
                              field.key, words, field.low, field.high, weight)
                    : spec.get_item(field.key, words);
            const auto object = field.parts.add();
            make(*object, one, words);
            if (field.weights) {
                settable(*field.weights).push_back(weight);
            }
            StringReader(one).read(*object->get_settable());
        } while (spec.has_positional());
    }

    /// Makes an object of the class that an item names.
    void make(
            ObjectRef& object,
            const Spec& named,
            const std::vector<std::string>& words) const {
        if (!object.make(named.name)) {
            named.fail(
                    named.begin,
                    object.knows(named.name)
                            ? "the " + object.noun() + " '" + named.name +
                                    "' cannot be used in " + spec.name
                            : "unknown " + object.noun() + " '" + named.name +
                                    "'",
                    words);
        }
    }
};

/// Only parameters are printed.
struct Printer : FieldVisitor {
    struct Value {
        std::string key, text, positional;
    };
    std::vector<Value> values;

   private:
    template <class T>
    void print_number(const NumberField<T>& field) {
        const bool waits =
                are_before_training && field.automatic && *field.automatic;
        values.push_back({field.key, waits ? "auto" : to_string(field), ""});
    }

    void on(const FlagField& field) override {
        values.push_back({field.key, field.value ? "1" : "0", ""});
    }
    void on(const NumberField<int64_t>& field) override {
        print_number(field);
    }
    void on(const NumberField<double>& field) override {
        print_number(field);
    }
    void on(const WordField& field) override {
        values.push_back({field.key, field.words.at(field.value), ""});
    }
    void on(const ShapeField& field) override {
        values.push_back(
                {field.key, shape_to_string(field.rows, field.columns), ""});
    }
    void on(const PartField& field) override {
        values.push_back({field.key, "", to_string(field)});
    }
    void on(const PartsField& field) override {
        for (size_t i = 0; i < field.parts.size(); i++) {
            const auto part = field.parts.at(i);
            const std::string weight = field.has_weight(i)
                    ? to_string((*field.weights)[i]) + "*"
                    : "";
            values.push_back(
                    {field.key,
                     "",
                     weight + (part->get() ? part->to_string() : "none")});
        }
    }
};

struct Checker : FieldVisitor {
   private:
    static void check(
            bool is_valid,
            const Field& field,
            const std::string& value,
            const std::string& expected) {
        if (!is_valid) {
            throw FieldError(
                    field.key,
                    std::string(field.key) + " is " + value + ", expected " +
                            expected);
        }
    }

    void on(const FlagField&) override {}

    void on(const NumberField<int64_t>& field) override {
        check(field.is_valid(),
              field,
              to_string(field.value),
              expected_of(field));
    }

    void on(const NumberField<double>& field) override {
        check(field.is_valid(),
              field,
              to_string(field.value),
              expected_of(field));
    }

    void on(const WordField& field) override {
        check(field.value >= 0 && field.value < int(field.words.size()),
              field,
              std::to_string(field.value),
              join(field.words));
    }

    void on(const ShapeField& field) override {
        check(field.is_valid(),
              field,
              std::to_string(field.rows) + "x" + std::to_string(field.columns),
              "two positive numbers whose product is " +
                      std::to_string(field.components));
    }

    void on(const PartField& field) override {
        if (!field.part.get() && !field.none) {
            throw FieldError(field.key, "it has no " + std::string(field.key));
        }
        if (field.part.get()) {
            field.part.get()->fields(*this);
        }
    }

    void on(const PartsField& field) override {
        const size_t n = field.parts.size();
        if (n == 0 || (field.weights && field.weights->size() != n)) {
            throw FieldError(
                    field.key,
                    n == 0 ? "it has no " + std::string(field.key)
                           : "it has " + std::to_string(n) + " " + field.key +
                                    " and " +
                                    std::to_string(field.weights->size()) +
                                    " weights");
        }
        for (size_t i = 0; i < n; i++) {
            const auto part = field.parts.at(i);
            if (!part->get()) {
                throw FieldError(
                        field.key,
                        "one of its " + std::string(field.key) + " is missing");
            }
            if (field.weights) {
                const double weight = (*field.weights)[i];
                on(NumberField<double>{
                        {"weight", ""},
                        weight,
                        field.low,
                        field.high,
                        nullptr});
            }
            part->get()->fields(*this);
        }
    }
};

} // namespace

StringsBeforeTraining::StringsBeforeTraining() : outer(are_before_training) {
    are_before_training = true;
}

StringsBeforeTraining::~StringsBeforeTraining() {
    are_before_training = outer;
}

bool are_strings_before_training() {
    return are_before_training;
}

std::string text_of_given(const std::string& text) {
    return are_before_training ? "gaussian(gamma=1)" : text;
}

bool shows_choices(const FieldVisitor& v) {
    return are_before_training && dynamic_cast<const Printer*>(&v);
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); i++) {
        text += i == 0 ? "" : i + 1 < words.size() ? ", " : " or ";
        text += words[i];
    }
    return text;
}

void read_string(HasFields& object, Spec& spec) {
    StringReader(spec).read(object);
}

std::string fields_to_string(const HasFields& object, const HasFields& fresh) {
    Printer printer, defaults;
    object.fields(printer);
    fresh.fields(defaults);
    std::string text;
    for (const Printer::Value& v : printer.values) {
        const bool is_default = std::any_of(
                defaults.values.begin(),
                defaults.values.end(),
                [&](const Printer::Value& other) {
                    return other.key == v.key && other.text == v.text;
                });
        const std::string shown = !v.positional.empty() ? v.positional
                : is_default || v.text.empty()          ? ""
                                                        : v.key + "=" + v.text;
        text += (text.empty() || shown.empty() ? "" : ",") + shown;
    }
    return text;
}

void check_fields(const HasFields& object) {
    Checker checker;
    object.fields(checker);
}

std::vector<FieldInfo> list_fields(const HasFields& object) {
    Lister lister;
    object.fields(lister);
    return lister.infos;
}

} // namespace faiss_ext
