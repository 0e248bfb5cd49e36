#include "core/field_strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/errors.h"
#include "core/number_format.h"

namespace faiss_ext {

namespace {

/// `28x56`; none if it is not of that form.
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

std::string integer_to_string(int64_t value, const bool* automatic) {
    return automatic && *automatic && value == 0 ? "auto"
                                                 : std::to_string(value);
}

std::string number_to_string(double value, const bool* automatic) {
    return automatic && *automatic && value == 0 ? "auto" : shortest(value);
}

std::string part_to_string(PartSlot& part, const char* none) {
    return part.get() ? part.to_string() : none ? none : "";
}

struct StringReader : FieldVisitor {
    Spec& spec;

    explicit StringReader(Spec& spec) : spec(spec) {}

    void read(HasFields& object) {
        object.fields(*this);
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
    /// The first part, whose arguments are read last: after this object has
    /// taken its own.
    HasFields* part = nullptr;
    Spec item;

    void on_flag(const char* key, bool& value, const char*) override {
        value = spec.get_flag(key, value);
    }

    void on_integer(
            const char* key,
            int64_t& value,
            int64_t low,
            int64_t high,
            bool* automatic,
            const char*) override {
        if (!is_automatic(key, automatic, value)) {
            value = spec.get_int(key, value, low, high, words(automatic));
        }
    }

    void on_number(
            const char* key,
            double& value,
            double low,
            double high,
            bool* automatic,
            const char*) override {
        if (!is_automatic(key, automatic, value)) {
            value = spec.get_double(key, value, low, high, words(automatic));
        }
    }

    static std::vector<std::string> words(const bool* automatic) {
        return automatic ? std::vector<std::string>{"auto"}
                         : std::vector<std::string>();
    }

    /// Whether the value is to be chosen later; otherwise it must be read.
    template <class T>
    bool is_automatic(const char* key, bool* automatic, T& value) {
        if (!automatic) {
            return false;
        }
        if (const auto given = spec.get(key)) {
            *automatic = given->value == "auto";
            value = *automatic ? 0 : value;
        }
        return *automatic;
    }

    void on_word(
            const char* key,
            int& value,
            const std::vector<std::string>& words,
            const char*) override {
        const std::string word = spec.get_word(key, words[value], words);
        value = int(
                std::find(words.begin(), words.end(), word) - words.begin());
    }

    void on_shape(
            const char* key,
            int& rows,
            int& columns,
            int64_t components,
            const char*) override {
        auto given = spec.get(key);
        if (!given) {
            given = spec.get_positional();
        }
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
        if (product != components) {
            spec.fail(
                    given->value_begin,
                    "a matrix of " + given->value + " has " +
                            std::to_string(product) +
                            " components, the vectors have " +
                            std::to_string(components));
        }
        rows = shape->first;
        columns = shape->second;
    }

    void on_part(const char* key, PartSlot& slot, const char* none, const char*)
            override {
        std::vector<std::string> names = slot.names();
        if (none) {
            names.push_back(none);
        }
        item = spec.get_item(key, names);
        if (none && item.name == none) {
            slot.clear();
            item.finish();
            return;
        }
        if (!slot.make(item.name)) {
            item.fail(
                    item.begin,
                    "unknown " + slot.noun() + " '" + item.name + "'",
                    names);
        }
        part = slot.get();
    }
};

/// What is not a parameter has no say here.
struct Printer : FieldVisitor {
    struct Value {
        std::string key, text, positional;
    };
    std::vector<Value> values;

   private:
    void on_flag(const char* key, bool& value, const char*) override {
        values.push_back({key, value ? "1" : "0", ""});
    }
    void on_integer(
            const char* key,
            int64_t& value,
            int64_t,
            int64_t,
            bool* automatic,
            const char*) override {
        values.push_back({key, integer_to_string(value, automatic), ""});
    }
    void on_number(
            const char* key,
            double& value,
            double,
            double,
            bool* automatic,
            const char*) override {
        values.push_back({key, number_to_string(value, automatic), ""});
    }
    void on_word(
            const char* key,
            int& value,
            const std::vector<std::string>& words,
            const char*) override {
        values.push_back({key, words.at(value), ""});
    }
    void on_shape(
            const char* key,
            int& rows,
            int& columns,
            int64_t,
            const char*) override {
        values.push_back({key, shape_to_string(rows, columns), ""});
    }
    void on_part(const char* key, PartSlot& part, const char* none, const char*)
            override {
        values.push_back({key, "", part_to_string(part, none)});
    }
};

struct Checker : FieldVisitor {
   private:
    template <class T>
    [[noreturn]] static void fail(
            const char* key,
            const T& value,
            const std::string& expected) {
        throw FieldError(
                key,
                std::string(key) + " is " + value + ", expected " + expected);
    }

    void on_flag(const char*, bool&, const char*) override {}

    void on_integer(
            const char* key,
            int64_t& value,
            int64_t low,
            int64_t high,
            bool* automatic,
            const char*) override {
        if (!(automatic && *automatic && value == 0) &&
            !(value >= low && value <= high)) {
            fail(key,
                 std::to_string(value),
                 "an integer from " + std::to_string(low) + " to " +
                         std::to_string(high));
        }
    }

    void on_number(
            const char* key,
            double& value,
            double low,
            double high,
            bool* automatic,
            const char*) override {
        if (!(automatic && *automatic && value == 0) &&
            !(value >= low && value <= high)) {
            fail(key,
                 shortest(value),
                 "a number from " + shortest(low) + " to " + shortest(high));
        }
    }

    void on_word(
            const char* key,
            int& value,
            const std::vector<std::string>& words,
            const char*) override {
        if (value < 0 || value >= int(words.size())) {
            fail(key, std::to_string(value), join(words));
        }
    }

    void on_shape(
            const char* key,
            int& rows,
            int& columns,
            int64_t components,
            const char*) override {
        if ((rows != 0 || columns != 0) &&
            (rows <= 0 || columns <= 0 ||
             int64_t(rows) * columns != components)) {
            fail(key,
                 std::to_string(rows) + "x" + std::to_string(columns),
                 "two positive numbers whose product is " +
                         std::to_string(components));
        }
    }

    void on_part(const char* key, PartSlot& part, const char* none, const char*)
            override {
        if (!part.get() && !none) {
            throw FieldError(key, "there is no " + std::string(key));
        }
        if (part.get()) {
            part.get()->fields(*this);
        }
    }
};

struct Lister : FieldVisitor {
    std::vector<FieldInfo> infos;

    bool wants_all() const override {
        return true;
    }

   private:
    void on_flag(const char* key, bool& value, const char* meaning) override {
        infos.push_back({key, "0 or 1", value ? "1" : "0", meaning});
    }
    void on_integer(
            const char* key,
            int64_t& value,
            int64_t low,
            int64_t high,
            bool* automatic,
            const char* meaning) override {
        const bool is_given = automatic || (value >= low && value <= high);
        const std::string range = low == 0 && high == INT64_MAX ? "integer >= 0"
                                                                : "integer, " +
                        std::to_string(low) + " to " + std::to_string(high);
        infos.push_back(
                {key,
                 range + (automatic ? ", or auto" : ""),
                 is_given ? integer_to_string(value, automatic) : "",
                 meaning});
    }
    void on_number(
            const char* key,
            double& value,
            double low,
            double high,
            bool* automatic,
            const char* meaning) override {
        const bool is_given = automatic || (value >= low && value <= high);
        infos.push_back(
                {key,
                 "number, " + shortest(low) + " to " + shortest(high) +
                         (automatic ? ", or auto" : ""),
                 is_given ? number_to_string(value, automatic) : "",
                 meaning});
    }
    void on_word(
            const char* key,
            int& value,
            const std::vector<std::string>& words,
            const char* meaning) override {
        infos.push_back({key, join(words), words.at(value), meaning});
    }
    void on_shape(const char* key, int&, int&, int64_t, const char* meaning)
            override {
        infos.push_back({key, "<rows>x<columns> or auto", "auto", meaning});
    }
    void on_part(
            const char* key,
            PartSlot& part,
            const char* none,
            const char* meaning) override {
        std::vector<std::string> names = part.names();
        if (none) {
            names.push_back(none);
        }
        infos.push_back({key, join(names), part_to_string(part, ""), meaning});
    }
};

/// Fields are shown as what they are changed by, too: visitors that only look
/// take objects that are const.
HasFields& looked_at(const HasFields& object) {
    return const_cast<HasFields&>(object);
}

} // namespace

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
    looked_at(object).fields(printer);
    looked_at(fresh).fields(defaults);
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
    looked_at(object).fields(checker);
}

std::vector<FieldInfo> list_fields(HasFields& object) {
    Lister lister;
    object.fields(lister);
    return lister.infos;
}

} // namespace faiss_ext
