// SPDX-License-Identifier: MIT
// The grammar of factory strings and its error messages. Strings of schemes,
// kernels and indexes are tested in test_index_factory.cpp.

#include "core/Spec.h"

#include <cmath>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

namespace {

/// The content of a parse error; `accepted` is empty if nothing is listed.
struct ParseError {
    std::string text, reason;
    size_t place = 0;
    std::string accepted;
};

/// What the error says that f throws, which is of the form
///
///     invalid factory string "TEXT", position 3: REASON
///       TEXT
///          ^
///       accepted here: A, B
template <class F>
ParseError parse_error(F&& f) {
    static const std::regex form(
            "invalid factory string \"(.*)\", position (\\d+): (.+)\n"
            "  \\1\n"
            "  ( *)\\^(\n  accepted here: (.*))?");
    const std::string message = error_of(f);
    std::smatch parts;
    if (!std::regex_match(message, parts, form)) {
        ADD_FAILURE() << "not a parse error: '" << message << "'";
        return {};
    }
    const size_t place = parts[4].length();
    EXPECT_EQ(parts[2], std::to_string(place)) << message;
    return {parts[1], parts[3], place, parts[6]};
}

double get_double(
        Spec& spec,
        const std::string& key,
        double default_value,
        double low,
        double high) {
    return spec.get_number(key, default_value, low, high, {"a number"});
}

int64_t get_int(
        Spec& spec,
        const std::string& key,
        int64_t default_value,
        int64_t low,
        int64_t high) {
    return spec.get_number(key, default_value, low, high, {"an integer"});
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST(Spec, Arguments) {
    //                        01234567890123456789012345678901234567
    const std::string text = "name_7(g(x,y=1),alpha=2,-3,b=h(z=(4)))";
    const Spec spec = Spec::parse(text);
    EXPECT_EQ(spec.name, "name_7");
    EXPECT_EQ(spec.str(), text);
    EXPECT_EQ(*spec.text, text);
    EXPECT_EQ(spec.begin, 0);
    EXPECT_EQ(spec.end, text.size());
    const struct {
        std::string key, value;
        size_t position, value_begin;
    } expected[] = {
            {"", "g(x,y=1)", 7, 7},
            {"alpha", "2", 16, 22},
            {"", "-3", 24, 24},
            {"b", "h(z=(4))", 27, 29}};
    ASSERT_EQ(spec.arguments.size(), 4);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(spec.arguments[i].key, expected[i].key);
        EXPECT_EQ(spec.arguments[i].value, expected[i].value);
        EXPECT_EQ(spec.arguments[i].position, expected[i].position);
        EXPECT_EQ(spec.arguments[i].value_begin, expected[i].value_begin);
        EXPECT_FALSE(spec.arguments[i].used);
    }
    EXPECT_TRUE(Spec::parse("a").arguments.empty());
}

TEST(Spec, PartOfAString) {
    const auto text = std::make_shared<const std::string>("PCA4,f(a=x),Flat");
    Spec spec = Spec::parse(text, 5, 11);
    EXPECT_EQ(spec.name, "f");
    EXPECT_EQ(spec.str(), "f(a=x)");
    const auto error = parse_error([&] { get_double(spec, "a", NAN, 0, 1); });
    EXPECT_EQ(error.text, *text); // the whole string
    EXPECT_EQ(error.place, 9);
    EXPECT_EQ(parse_error([&] { Spec::parse(text, 5, 12); }).place, 11);
}

// The message gives the position of an error at the innermost level.
TEST(Spec, Nesting) {
    constexpr int depth = 63;
    std::string text = "z(q=x)";
    for (int i = 0; i < depth; i++) {
        text = "a(" + text + ")";
    }
    Spec spec = Spec::parse(text);
    for (int i = 0; i < depth; i++) {
        spec = spec.get_item("item", {});
    }
    EXPECT_EQ(spec.name, "z");
    const auto error = parse_error([&] { get_int(spec, "q", 1000, 0, 9); });
    EXPECT_EQ(error.place, 2 * depth + 4);
    EXPECT_EQ(error.text, text);
    // deeper nesting is refused
    EXPECT_TRUE(throws([&] { Spec::parse("a(a(" + text + "))"); }));
}

TEST(Spec, Numbers) {
    Spec spec = Spec::parse(
            "f(a=-2.5,b=1e-300,c=.5,d=5.,e=0,f=-9223372036854775808,"
            "g=9223372036854775807)");
    EXPECT_EQ(get_double(spec, "a", NAN, -HUGE_VAL, HUGE_VAL), -2.5);
    EXPECT_EQ(get_double(spec, "b", NAN, 1e-300, 1e-300), 1e-300);
    EXPECT_EQ(get_double(spec, "c", NAN, 0, 1), 0.5);
    EXPECT_EQ(get_double(spec, "d", NAN, 0, 5), 5); // bounds are included
    EXPECT_EQ(get_double(spec, "none", 7.5, 0, 7.5), 7.5);
    EXPECT_EQ(get_int(spec, "e", 1000, 0, 0), 0);
    EXPECT_EQ(get_int(spec, "f", 7, INT64_MIN, INT64_MAX), INT64_MIN);
    EXPECT_EQ(get_int(spec, "g", 7, INT64_MIN, INT64_MAX), INT64_MAX);
    EXPECT_EQ(get_int(spec, "none", -3, -3, 1), -3);
    EXPECT_EQ(spec.get("a")->value, "-2.5");
    EXPECT_FALSE(spec.get("none"));
    spec.finish();
    // there is no default
    const auto missing =
            parse_error([&] { get_double(spec, "nu", NAN, 0, 1); });
    EXPECT_EQ(missing.place, 77);
    EXPECT_TRUE(contains(missing.reason, "nu"));
}

TEST(Spec, BadNumbers) {
    const auto expect_refused = [](const std::string& value, bool is_integer) {
        const std::string text = "f(a=" + value + ")";
        SCOPED_TRACE(text);
        Spec spec = Spec::parse(text);
        const auto error = parse_error([&] {
            is_integer ? double(get_int(spec, "a", 1000, -100, 100))
                       : get_double(spec, "a", NAN, -100, 100);
        });
        EXPECT_EQ(error.text, text);
        EXPECT_EQ(error.place, 4);
        EXPECT_TRUE(contains(error.reason, "'" + value + "'"));
        EXPECT_EQ(error.accepted, is_integer ? "an integer" : "a number");
    };
    for (const char* value :
         {"1.0",
          "1e3",
          "1e400",
          "0x10",
          "1x",
          "+1",
          "1e",
          "1.2.3",
          "-101",
          "101",
          "nan",
          "inf",
          "1=2"}) {
        expect_refused(value, true);
        if (value != std::string("1.0")) {
            expect_refused(value, false);
        }
    }
    expect_refused("9223372036854775808", true);
    expect_refused("100.1", false);
}

TEST(Spec, WordsAndFlags) {
    Spec spec = Spec::parse("f(a=red,b=x,c=0,d=1,e=true,g=false,h=yes,i=2)");
    EXPECT_EQ(spec.get_word("a", "blue", {"red", "blue"}), "red");
    EXPECT_EQ(spec.get_word("none", "blue", {"red", "blue"}), "blue");
    const auto error = parse_error([&] {
        spec.get_word("b", "red", {"red", "blue"});
    });
    EXPECT_EQ(error.place, 10);
    EXPECT_EQ(error.accepted, "red, blue");

    EXPECT_FALSE(spec.get_flag("c", true));
    EXPECT_TRUE(spec.get_flag("d", false));
    EXPECT_TRUE(spec.get_flag("e", false));
    EXPECT_FALSE(spec.get_flag("g", true));
    EXPECT_TRUE(spec.get_flag("none", true));
    EXPECT_FALSE(spec.get_flag("none", false));
    for (const char* key : {"h", "i"}) {
        EXPECT_EQ(
                parse_error([&] { spec.get_flag(key, false); }).accepted,
                "0, 1, false, true");
    }
}

TEST(Spec, ItemsAndPositionals) {
    Spec keyed = Spec::parse("f(item=h(i))");
    EXPECT_EQ(keyed.get_item("item", {}).str(), "h(i)");
    Spec twice = Spec::parse("f(g,item=h(i))");
    EXPECT_EQ(parse_error([&] { twice.get_item("item", {}); }).place, 4);
    Spec spec = Spec::parse("f(28x56,a=1,g(b=2))");
    const auto first = spec.get_positional();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->value, "28x56");
    EXPECT_EQ(first->value_begin, 2);
    Spec item = spec.get_item("other", {}); // the second one
    EXPECT_EQ(item.str(), "g(b=2)");
    EXPECT_EQ(get_int(item, "b", 0, 0, 9), 2);
    item.finish();
    EXPECT_FALSE(spec.get_positional());
    const auto missing = parse_error([&] {
        spec.get_item("more", {"red", "blue"});
    });
    EXPECT_EQ(missing.accepted, "red, blue");
    // at the position of missing parentheses, and for an argument that is not
    // an item
    Spec bare = Spec::parse("f"), number = Spec::parse("f(a=1,5)");
    EXPECT_EQ(parse_error([&] { bare.get_item("item", {}); }).place, 1);
    EXPECT_EQ(parse_error([&] { number.get_item("item", {}); }).place, 6);
}

TEST(Spec, Finish) {
    Spec spec = Spec::parse("f(a=1,b=2,c)");
    const auto expect_left = [&](size_t place,
                                 const std::string& named,
                                 const std::string& accepted) {
        const auto error = parse_error([&] { spec.finish(); });
        EXPECT_EQ(error.place, place);
        EXPECT_TRUE(contains(error.reason, named)) << error.reason;
        EXPECT_EQ(error.accepted, accepted);
    };
    expect_left(2, "'a'", "no argument");
    spec.get("a");
    spec.get("x");
    expect_left(6, "'b'", "a=, x=");
    spec.get("b");
    expect_left(10, "'c'", "a=, x=, b=");
    spec.get_item("item", {});
    spec.finish();
    Spec idle = Spec::parse("f(a=1)");
    EXPECT_FALSE(idle.knows("a"));
    idle.idle_keys = {"a"};
    EXPECT_TRUE(throws([&] { idle.finish(); }, "'a'", "no effect"));
    idle.get("a");
    EXPECT_TRUE(idle.knows("a"));
    idle.finish();
}

TEST(Spec, HandOverKeys) {
    Spec spec = Spec::parse("f(g(x=1),y=2,z=3)");
    Spec item = spec.get_item("item", {});
    EXPECT_EQ(spec.get("z")->value_begin, 15);
    spec.hand_over_keys(item);
    spec.finish(); // nothing is left
    EXPECT_EQ(get_int(item, "x", 1000, 0, 9), 1);
    const auto error = parse_error([&] { item.finish(); });
    EXPECT_EQ(error.place, 9);
    // keys of f are not accepted inside the parentheses of g
    EXPECT_TRUE(contains(error.accepted, "x="));
    EXPECT_FALSE(contains(error.accepted, "z="));
    EXPECT_EQ(get_int(item, "y", 1000, 0, 9), 2);
    item.finish();

    Spec twice = Spec::parse("f(g(x=1),x=2)");
    Spec other = twice.get_item("item", {});
    const auto again = parse_error([&] { twice.hand_over_keys(other); });
    EXPECT_EQ(again.place, 9);
    EXPECT_TRUE(contains(again.reason, "x is given twice"));
}

// Errors of the number behind a name mark the number.
TEST(Spec, SetArgument) {
    Spec spec = Spec::parse("f12(a=1)");
    spec.set_argument("b", "12", 1);
    EXPECT_EQ(get_int(spec, "b", 0, 0, 20), 12);
    EXPECT_EQ(parse_error([&] { get_int(spec, "b", 0, 0, 11); }).place, 1);
    const auto twice = parse_error([&] { spec.set_argument("a", "3", 1); });
    EXPECT_EQ(twice.place, 4);
    EXPECT_TRUE(contains(twice.reason, "a is given twice"));
}

TEST(Spec, Fail) {
    const Spec spec = Spec::parse("f(a=1,b=2)");
    const auto listed = parse_error([&] {
        spec.fail(3, "no such thing", {"u", "v"});
    });
    EXPECT_EQ(listed.reason, "no such thing");
    EXPECT_EQ(listed.place, 3);
    EXPECT_EQ(listed.accepted, "u, v");
    const auto value = parse_error([&] { spec.fail_value("b", "too small"); });
    EXPECT_EQ(value.place, 8);
    EXPECT_EQ(value.accepted, "");
    EXPECT_EQ(parse_error([&] { spec.fail_value("c", "missing"); }).place, 0);
}

TEST(Spec, SplitArguments) {
    const std::string text = "a,b(c,d(e,f)),,g";
    using Places = std::vector<std::pair<size_t, size_t>>;
    EXPECT_EQ(
            split_arguments(text, 0, text.size()),
            (Places{{0, 1}, {2, 13}, {14, 14}, {15, 16}}));
    EXPECT_EQ(split_arguments(text, 4, 5), (Places{{4, 5}}));
    EXPECT_EQ(split_arguments("", 0, 0), (Places{{0, 0}}));
    EXPECT_EQ(parse_error([] { split_arguments("a)b", 0, 3); }).place, 1);
    EXPECT_EQ(parse_error([] { split_arguments("a(b(c)", 0, 6); }).place, 1);
}

TEST(Spec, BadStructure) {
    const struct {
        std::string text;
        size_t place;
        std::string named;
    } cases[] = {
            {"_f", 0, "name"},
            {",", 0, "name"},
            {"f(", 1, "'(' without ')'"},
            {"f(g(a)", 1, "'(' without ')'"},
            {"f(g(a", 3, "'(' without ')'"},
            {"f(a))", 4, "')' without '('"},
            {"f(a)(b)", 4, "'('"},
            {"f()", 2, "argument"},
            {"f(,)", 2, "argument"},
            {"f(a,)", 4, "argument"},
            {"f(a,,b)", 4, "argument"},
            {"f(a=)", 4, "a"},
            {"f(a=,b=1)", 4, "a"},
            {"f(a,=b)", 4, ""},
            {"f(a=1,b=2,a=3)", 10, "a is given twice"},
            {"f g", 1, "' '"},
            {"f-1", 1, "'-'"},
            {"f\xc3\xa4(a)", 1, ""}};
    for (const auto& [text, place, named] : cases) {
        SCOPED_TRACE(text);
        const auto error = parse_error([&text = text] { Spec::parse(text); });
        EXPECT_EQ(error.text, text);
        EXPECT_EQ(error.place, place);
        EXPECT_TRUE(contains(error.reason, named)) << error.reason;
        // the refused character is not listed as accepted
        EXPECT_FALSE(
                contains(error.accepted, "'" + text.substr(place, 1) + "'"));
    }
    // unprintable characters need more room
    EXPECT_TRUE(
            throws([] { Spec::parse("f(\xff))"); },
                   "position 4",
                   "\n  f(\\xff))\n         ^"));
}

// Random strings of the grammar's characters: parsing gives all that was
// written, or an error that quotes the string and marks a position.
TEST(Spec, RandomStrings) {
    const char* const tokens[] = {
            "(", ")", ",", "=", "a", "b1", "_", "f(a=1)", "-1", "."};
    std::mt19937_64 rng(1);
    int parsed = 0, refused = 0;
    for (int round = 0; round < 3000; round++) {
        std::string text = rng() & 1 ? "f(a" : "";
        for (size_t i = rng() % 7; i > 0; i--) {
            text += tokens[rng() % std::size(tokens)];
        }
        try {
            const Spec spec = Spec::parse(text);
            std::string again = spec.name;
            for (const Spec::Argument& a : spec.arguments) {
                again += &a == &spec.arguments[0] ? "(" : ",";
                EXPECT_EQ(text.substr(a.value_begin, a.value.size()), a.value);
                EXPECT_EQ(a.position, again.size());
                again += a.key.empty() ? a.value : a.key + "=" + a.value;
            }
            EXPECT_EQ(again + (spec.arguments.empty() ? "" : ")"), text);
            parsed++;
        } catch (const faiss::FaissException&) {
            const auto error =
                    parse_error([&text = text] { Spec::parse(text); });
            EXPECT_EQ(error.text, text);
            EXPECT_LE(error.place, text.size());
            refused++;
        }
    }
    EXPECT_GT(parsed, 100);
    EXPECT_GT(refused, 1000);
}
