// The grammar of factory strings and its error messages.

#include "core/Spec.h"

#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include <faiss_ext/hashes/KernelHash.h>
#include <faiss_ext/kernels/GaussianKernel.h>
#include <faiss_ext/kernels/Kernel.h>
#include <faiss_ext/kernels/MaternKernel.h>
#include <faiss_ext/kernels/kernel_registry.h>

#include "core/errors.h"
#include "testing_data.h"

using namespace faiss_ext;
using namespace testing_data;

namespace {

/// What a parse error says.
struct ParseError {
    std::string text;     ///< the string that it quotes
    std::string reason;   ///< between the quoted string and the position
    size_t position = 0;  ///< as a number
    size_t caret = 0;     ///< as the place of ^ below the string
    std::string accepted; ///< empty if nothing is listed
};

/// Takes a message apart:
///
///     invalid factory string "TEXT": REASON at position 3
///       TEXT
///          ^
///       accepted here: A, B
///
/// where TEXT may be anything without a line break.
std::optional<ParseError> take_apart(const std::string& message) {
    std::vector<std::string> lines(1);
    for (char c : message) {
        if (c == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += c;
        }
    }
    const std::string intro = "invalid factory string \"";
    const std::string place = " at position ";
    const std::string list = "  accepted here: ";
    if (lines.size() < 3 || lines.size() > 4 || lines[1].size() < 2 ||
        lines[1].substr(0, 2) != "  " || lines[2].size() < 3 ||
        lines[2].back() != '^') {
        return std::nullopt;
    }
    ParseError error;
    error.text = lines[1].substr(2);
    error.caret = lines[2].size() - 3;
    if (lines[2] != std::string(error.caret + 2, ' ') + "^") {
        return std::nullopt;
    }
    const std::string head = intro + error.text + "\": ";
    const size_t at = lines[0].rfind(place);
    if (lines[0].compare(0, head.size(), head) != 0 ||
        at == std::string::npos || at < head.size()) {
        return std::nullopt;
    }
    error.reason = lines[0].substr(head.size(), at - head.size());
    error.position = std::stoul(lines[0].substr(at + place.size()));
    if (lines.size() == 4) {
        if (lines[3].compare(0, list.size(), list) != 0) {
            return std::nullopt;
        }
        error.accepted = lines[3].substr(list.size());
    }
    return error;
}

struct BadString {
    std::string text;
    size_t position;
    std::vector<std::string> said; ///< parts of the reason or of the list
};

void check_bad_strings(
        const std::function<void(const std::string&)>& parse,
        const std::vector<BadString>& table) {
    for (const BadString& bad : table) {
        SCOPED_TRACE("\"" + bad.text + "\"");
        const std::string message = message_of([&] { parse(bad.text); });
        const auto error = take_apart(message);
        ASSERT_TRUE(error) << message;
        EXPECT_EQ(error->text, bad.text);
        EXPECT_EQ(error->position, bad.position) << message;
        EXPECT_EQ(error->caret, bad.position) << message;
        EXPECT_FALSE(error->reason.empty());
        for (const std::string& said : bad.said) {
            EXPECT_TRUE(
                    contains(error->reason, said) ||
                    contains(error->accepted, said))
                    << said << " is missing in: " << message;
        }
        // what is refused is not among what would be accepted
        if (error->caret < bad.text.size()) {
            const std::string refused =
                    std::string("'") + bad.text[error->caret] + "'";
            EXPECT_FALSE(contains(error->accepted, refused)) << message;
        }
    }
}

void parse_hash(const std::string& text) {
    kernel_hash_factory(4, text);
}

} // namespace

TEST(Spec, GoodStrings) {
    for (const std::string text :
         {"a",
          "gaussian",
          "matern",
          "A_1b2(x)",
          "f(1)",
          "f(-1.5e-7)",
          "f(a,b,c)",
          "f(a=1,b=2)",
          "f(g(h(i(j=1,k=2),l),m=n(o)),p=q(r,s=t(u)))",
          "SIK512(gaussian,gamma=0.02,seed=1)",
          "BSIK6400(28x28,m=5)"}) {
        const Spec spec = Spec::parse(text);
        EXPECT_EQ(spec.str(), text);
        EXPECT_EQ(*spec.text, text);
        EXPECT_EQ(spec.begin, 0);
        EXPECT_EQ(spec.end, text.size());
        EXPECT_EQ(spec.name, text.substr(0, text.find('(')));
    }
}

TEST(Spec, Arguments) {
    //                0123456789012345678901234567890123456
    const auto spec = Spec::parse("name_7(g(x,y=1),alpha=2,-3,b=h(z=(4)))");
    EXPECT_EQ(spec.name, "name_7");
    ASSERT_EQ(spec.arguments.size(), 4);
    const char* keys[] = {"", "alpha", "", "b"};
    const char* values[] = {"g(x,y=1)", "2", "-3", "h(z=(4))"};
    const size_t positions[] = {7, 16, 24, 27};
    const size_t begins[] = {7, 22, 24, 29};
    for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(spec.arguments[i].key, keys[i]);
        EXPECT_EQ(spec.arguments[i].value, values[i]);
        EXPECT_EQ(spec.arguments[i].position, positions[i]);
        EXPECT_EQ(spec.arguments[i].value_begin, begins[i]);
        EXPECT_FALSE(spec.arguments[i].used);
    }
}

TEST(Spec, PartOfAString) {
    const auto text = std::make_shared<const std::string>("PCA4,f(a=x),Flat");
    Spec spec = Spec::parse(text, 5, 11);
    EXPECT_EQ(spec.name, "f");
    EXPECT_EQ(spec.str(), "f(a=x)");
    EXPECT_EQ(spec.begin, 5);
    EXPECT_EQ(spec.end, 11);
    const auto error =
            take_apart(message_of([&] { spec.get_double("a", NAN, 0, 1); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->text, "PCA4,f(a=x),Flat"); // the whole string
    EXPECT_EQ(error->caret, 9);
    const auto outside =
            take_apart(message_of([&] { Spec::parse(text, 5, 12); }));
    ASSERT_TRUE(outside);
    EXPECT_EQ(outside->caret, 11);
}

TEST(Spec, NestedItems) {
    Spec outer = Spec::parse("a(b(c(d=1),e=2),f)");
    Spec first = outer.get_item("item", {});
    EXPECT_EQ(first.str(), "b(c(d=1),e=2)");
    EXPECT_EQ(outer.get_item("item", {}).str(), "f");
    Spec inner = first.get_item("item", {});
    EXPECT_EQ(inner.str(), "c(d=1)");
    EXPECT_EQ(inner.get_int("d", 1000, 0, 9), 1);
    EXPECT_EQ(first.get_int("e", 1000, 0, 9), 2);
    inner.finish();
    first.finish();
    outer.finish();
    // deep nesting, with the place of an error at the very bottom
    std::string text = "z(q=x)";
    size_t depth = 0;
    for (; depth < 63; depth++) {
        text = "a(" + text + ")";
    }
    Spec spec = Spec::parse(text);
    for (size_t i = 0; i < depth; i++) {
        spec = spec.get_item("item", {});
    }
    EXPECT_EQ(spec.name, "z");
    const auto error =
            take_apart(message_of([&] { spec.get_int("q", 1000, 0, 9); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 2 * depth + 4);
    EXPECT_EQ(error->text, text);
}

TEST(Spec, Numbers) {
    Spec spec = Spec::parse(
            "f(a=1,b=-2.5,c=1e-300,d=.5,e=5.,g=0,h=-9223372036854775808,i=9223372036854775807)");
    const double inf = HUGE_VAL;
    EXPECT_EQ(spec.get_double("a", NAN, -inf, inf), 1);
    EXPECT_EQ(spec.get_double("b", NAN, -inf, inf), -2.5);
    EXPECT_EQ(spec.get_double("c", NAN, 1e-300, 1e-300), 1e-300);
    EXPECT_EQ(spec.get_double("d", NAN, -inf, inf), 0.5);
    EXPECT_EQ(spec.get_double("e", NAN, -inf, inf), 5);
    EXPECT_EQ(spec.get_double("none", 7.5, 0, 7.5), 7.5);
    EXPECT_EQ(spec.get_int("a", 1000, 1, 1), 1);
    EXPECT_EQ(spec.get_int("g", 1000, 0, 0), 0);
    EXPECT_EQ(spec.get_int("h", 7, INT64_MIN, INT64_MAX), INT64_MIN);
    EXPECT_EQ(spec.get_int("i", 7, INT64_MIN, INT64_MAX), INT64_MAX);
    EXPECT_EQ(spec.get_int("none", -3, -3, 1), -3);
    EXPECT_EQ(spec.get("b")->value, "-2.5");
    EXPECT_FALSE(spec.get("none"));
    spec.finish();
}

TEST(Spec, BadNumbers) {
    for (const std::string value :
         {"nan",
          "-nan",
          "1e400",
          "-1e400",
          "1e-400",
          "0x10",
          "1x",
          "1 1",
          "+1",
          "1e",
          "e5",
          "--1",
          "1_000",
          "1.2.3",
          "one",
          "1=2",
          "=1"}) {
        const std::string text = "f(a=" + value + ")";
        SCOPED_TRACE(text);
        for (bool integer : {false, true}) {
            Spec spec = Spec::parse(text);
            const auto error = take_apart(message_of([&] {
                if (integer) {
                    spec.get_int("a", 1000, -100, 100);
                } else {
                    spec.get_double("a", NAN, -100, 100);
                }
            }));
            ASSERT_TRUE(error);
            EXPECT_EQ(error->text, text);
            EXPECT_EQ(error->caret, 4);
            EXPECT_EQ(error->position, 4);
            EXPECT_TRUE(contains(error->reason, "'" + value + "'"));
            EXPECT_TRUE(contains(error->reason, "a"));
            EXPECT_TRUE(contains(error->accepted, "-100"));
            EXPECT_TRUE(contains(error->accepted, "100"));
            EXPECT_TRUE(
                    contains(error->accepted, integer ? "integer" : "number"));
        }
    }
    // numbers that are no integers, or out of range
    for (const std::string value :
         {"1.0", "1e3", ".5", "9223372036854775808", "-101", "101"}) {
        Spec spec = Spec::parse("f(a=" + value + ")");
        const auto error = take_apart(
                message_of([&] { spec.get_int("a", 1000, -100, 100); }));
        ASSERT_TRUE(error);
        EXPECT_EQ(error->caret, 4);
    }
    for (const std::string value :
         {"inf", "-inf", "infinity", "100.1", "-1e3"}) {
        Spec spec = Spec::parse("f(a=" + value + ")");
        const auto error = take_apart(
                message_of([&] { spec.get_double("a", NAN, -100, 100); }));
        ASSERT_TRUE(error);
        EXPECT_EQ(error->caret, 4);
    }
    // the ends of the range are in it
    Spec spec = Spec::parse("f(a=-100,b=100)");
    EXPECT_EQ(spec.get_double("a", NAN, -100, 100), -100);
    EXPECT_EQ(spec.get_int("b", 1000, -100, 100), 100);
}

TEST(Spec, MissingKeys) {
    Spec spec = Spec::parse("f(a=1)");
    for (bool integer : {false, true}) {
        const auto error = take_apart(message_of([&] {
            if (integer) {
                spec.get_int("nu", 1000, 0, 1);
            } else {
                spec.get_double("nu", NAN, 0, 1);
            }
        }));
        ASSERT_TRUE(error);
        EXPECT_EQ(error->caret, 6);
        EXPECT_TRUE(contains(error->reason, "f needs nu")) << error->reason;
    }
}

TEST(Spec, Words) {
    Spec spec = Spec::parse("f(a=red,b=x)");
    EXPECT_EQ(spec.get_word("a", "blue", {"red", "blue"}), "red");
    EXPECT_EQ(spec.get_word("c", "blue", {"red", "blue"}), "blue");
    const auto error = take_apart(message_of([&] {
        spec.get_word("b", "red", {"red", "blue"});
    }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 10);
    EXPECT_EQ(error->accepted, "red, blue");
}

TEST(Spec, Items) {
    Spec spec = Spec::parse("f(a=1,g,b=2,h(i))");
    EXPECT_EQ(spec.get_item("item", {}).name, "g");
    EXPECT_EQ(spec.get_item("item", {}).name, "h");
    auto error = take_apart(message_of([&] {
        spec.get_item("item", {"red", "blue"});
    }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->accepted, "red, blue");
    // by its key, wherever it stands
    Spec keyed = Spec::parse("f(g,item=h(i))");
    EXPECT_EQ(keyed.get_item("item", {}).str(), "h(i)");
    EXPECT_EQ(keyed.get_item("other", {}).str(), "g");
    keyed.finish();
    Spec bare = Spec::parse("f");
    error = take_apart(message_of([&] { bare.get_item("item", {"red"}); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 1);
    EXPECT_EQ(error->accepted, "red");
    // as written, in the order in which they stand, between the keys
    Spec written = Spec::parse("f(28x56,a=1,5)");
    auto given = written.get_positional();
    ASSERT_TRUE(given);
    EXPECT_EQ(given->value, "28x56");
    EXPECT_EQ(given->value_begin, 2);
    given = written.get_positional();
    ASSERT_TRUE(given);
    EXPECT_EQ(given->value, "5");
    EXPECT_EQ(given->value_begin, 12);
    EXPECT_FALSE(written.get_positional());
    // an argument that is no item
    Spec number = Spec::parse("f(a=1,5)");
    error = take_apart(message_of([&] { number.get_item("item", {"red"}); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 6);
}

TEST(Spec, Finish) {
    Spec spec = Spec::parse("f(a=1,b=2,c)");
    auto error = take_apart(message_of([&] { spec.finish(); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 2);
    EXPECT_EQ(error->accepted, "no argument");
    spec.get("a");
    spec.get("x");
    error = take_apart(message_of([&] { spec.finish(); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 6);
    EXPECT_TRUE(contains(error->reason, "'b'"));
    EXPECT_EQ(error->accepted, "a=, x=");
    spec.get("b");
    error = take_apart(message_of([&] { spec.finish(); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 10);
    EXPECT_TRUE(contains(error->reason, "'c'"));
    spec.get_item("item", {});
    spec.finish();
}

TEST(Spec, HandOverKeys) {
    Spec spec = Spec::parse("f(g(x=1),y=2,z=3)");
    Spec item = spec.get_item("item", {});
    EXPECT_EQ(spec.get("z")->value, "3");
    EXPECT_EQ(spec.get("z")->value_begin, 15);
    spec.hand_over_keys(item);
    spec.finish(); // nothing is left
    EXPECT_EQ(item.get_int("x", 1000, 0, 9), 1);
    auto error = take_apart(message_of([&] { item.finish(); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 9);
    // those of f are not accepted inside the parentheses of g
    EXPECT_TRUE(contains(error->accepted, "x="));
    EXPECT_FALSE(contains(error->accepted, "z="));
    EXPECT_EQ(item.get_int("y", 1000, 0, 9), 2);
    item.finish();

    Spec twice = Spec::parse("f(g(x=1),x=2)");
    Spec other = twice.get_item("item", {});
    error = take_apart(message_of([&] { twice.hand_over_keys(other); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 9);
    EXPECT_TRUE(contains(error->reason, "x is given twice"));
}

// The number behind a name: its errors mark it there.
TEST(Spec, SetArgument) {
    Spec spec = Spec::parse("f12(a=1)");
    spec.set_argument("b", "12", 1);
    EXPECT_EQ(spec.get_int("b", 0, 0, 20), 12);
    auto error = take_apart(message_of([&] { spec.get_int("b", 0, 0, 11); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 1);
    EXPECT_TRUE(contains(error->reason, "'12'"));
    error = take_apart(message_of([&] { spec.set_argument("a", "3", 1); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 4);
    EXPECT_TRUE(contains(error->reason, "a is given twice"));
}

TEST(Spec, Flags) {
    Spec spec = Spec::parse("f(a=0,b=1,c=true,d=false,e=yes,f=2)");
    EXPECT_FALSE(spec.get_flag("a", true));
    EXPECT_TRUE(spec.get_flag("b", false));
    EXPECT_TRUE(spec.get_flag("c", false));
    EXPECT_FALSE(spec.get_flag("d", true));
    EXPECT_TRUE(spec.get_flag("none", true));
    EXPECT_FALSE(spec.get_flag("none", false));
    for (const char* key : {"e", "f"}) {
        const auto error =
                take_apart(message_of([&] { spec.get_flag(key, false); }));
        ASSERT_TRUE(error);
        EXPECT_EQ(error->accepted, "0, 1, false, true");
    }
}

TEST(Spec, Fail) {
    const Spec spec = Spec::parse("f(a=1,b=2)");
    auto error = take_apart(message_of([&] {
        spec.fail(3, "no such thing", {"u", "v"});
    }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->reason, "no such thing");
    EXPECT_EQ(error->caret, 3);
    EXPECT_EQ(error->accepted, "u, v");
    error = take_apart(message_of([&] { spec.fail_value("b", "too small"); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 8);
    EXPECT_EQ(error->reason, "too small");
    EXPECT_EQ(error->accepted, "");
    error = take_apart(message_of([&] { spec.fail_value("c", "missing"); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 0);
}

TEST(Spec, SplitArguments) {
    const std::string text = "a,b(c,d(e,f)),,g";
    using Places = std::vector<std::pair<size_t, size_t>>;
    EXPECT_EQ(
            split_arguments(text, 0, text.size()),
            (Places{{0, 1}, {2, 13}, {14, 14}, {15, 16}}));
    EXPECT_EQ(split_arguments(text, 4, 5), (Places{{4, 5}}));
    EXPECT_EQ(split_arguments("", 0, 0), (Places{{0, 0}}));
    auto error = take_apart(message_of([&] { split_arguments("a)b", 0, 3); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 1);
    error = take_apart(message_of([&] { split_arguments("a(b(c)", 0, 6); }));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->caret, 1);
}

TEST(Spec, BadStructure) {
    const auto parse = [](const std::string& text) { Spec::parse(text); };
    check_bad_strings(
            parse,
            {{"", 0, {"name"}},
             {"1f", 0, {"name"}},
             {"_f", 0, {"name"}},
             {"(a)", 0, {"name"}},
             {",", 0, {"name"}},
             {"f(", 1, {"'(' without ')'"}},
             {"f(a", 1, {"'(' without ')'"}},
             {"f(g(a)", 1, {"'(' without ')'"}},
             {"f(g(a", 3, {"'(' without ')'"}},
             {"f(a))", 4, {"')' without '('"}},
             {"f(a)g", 4, {"'g'"}},
             {"f(a)(b)", 4, {"'('"}},
             {"f()", 2, {"argument"}},
             {"f(,)", 2, {"argument"}},
             {"f(a,)", 4, {"argument"}},
             {"f(a,,b)", 4, {"argument"}},
             {"f(a=)", 4, {"a"}},
             {"f(a=,b=1)", 4, {"a"}},
             {"f(a=1,b=2,a=3)", 10, {"a is given twice"}},
             {"f g", 1, {"' '"}},
             {"f-1", 1, {"'-'"}},
             {"f\xc3\xa4(a)", 1, {}}});
}

// A key is a name: letters, digits and '_' in front of '='.
TEST(Spec, KeysAreNames) {
    check_bad_strings(
            [](const std::string& text) { Spec::parse(text); },
            {{"f(=1)", 2, {}}, {"f(a,=b)", 4, {}}});
    check_bad_strings(parse_hash, {{"SIK64(=gaussian,gamma=1)", 6, {}}});
}

// What follows a name depends on who asks: here, '(' or the end.
TEST(Spec, TextAfterAKernel) {
    check_bad_strings(
            [](const std::string& text) { kernel_factory(text); },
            {{"gaussian)", 8, {"')'"}},
             {"gaussian(gamma=1)x", 17, {"'x'"}},
             {"gaussian,", 8, {"','", "'('"}},
             {"gaussian(gamma=1),laplacian", 17, {"','", "end"}}});
}

TEST(Spec, KernelStrings) {
    for (const std::string name : {"gaussian", "laplacian", "matern"}) {
        EXPECT_FALSE(kernel_factory(name)->is_trained);
        EXPECT_FALSE(kernel_factory(name + "(gamma=auto)")->is_trained);
        EXPECT_TRUE(kernel_factory(name + "(gamma=1e-30)")->is_trained);
        EXPECT_TRUE(kernel_factory(name + "(gamma=1e30)")->is_trained);
    }
    EXPECT_EQ(
            dynamic_cast<GaussianKernel&>(*kernel_factory("gaussian(gamma=.5)"))
                    .gamma,
            0.5);
    const auto matern = kernel_factory("matern(gamma=3,nu=20)");
    EXPECT_EQ(dynamic_cast<MaternKernel&>(*matern).nu, 20);
    EXPECT_EQ(dynamic_cast<MaternKernel&>(*matern).gamma, 3);
    EXPECT_EQ(dynamic_cast<MaternKernel&>(*kernel_factory("matern")).nu, 1.5);
    EXPECT_TRUE(kernel_factory("linear")->is_trained);

    const std::vector<std::string> kernels = {
            "gaussian", "laplacian", "linear", "matern"};
    std::vector<BadString> table = {
            {"gausian", 0, kernels},
            {"Gaussian", 0, kernels},
            {"chi3(gamma=1)", 0, kernels},
            {"chi2(gamma=1)", 5, {"gamma"}},
            {"gaussian(gama=1)", 9, {"gama", "gamma="}},
            {"gaussian(nu=1)", 9, {"nu", "gamma="}},
            {"gaussian(gamma)", 9, {"gamma="}},
            {"gaussian(1)", 9, {"gamma="}},
            {"gaussian(gamma=1,2)", 17, {"gamma="}},
            {"gaussian(gamma=1,gamma=2)", 17, {"twice"}},
            {"gaussian(gamma=Auto)", 15, {"Auto"}},
            {"gaussian(gam ma=1)", 9, {}},
            {"gaussian(gamma=laplacian)", 15, {"number"}},
            {"linear(gamma=1)", 7, {"no argument"}},
            {"linear(x)", 7, {"no argument"}},
            {"matern(nu=0.05)", 10, {"0.1", "20"}},
            {"matern(nu=20.5)", 10, {"0.1", "20"}},
            {"matern(nu=auto)", 10, {"0.1", "20"}},
            {"matern(1.5)", 7, {"nu=", "gamma="}},
            {"matern(nu=1.5,seed=1)", 14, {"nu=", "gamma="}}};
    for (const char* number :
         {"0",
          "-1",
          "nan",
          "inf",
          "-inf",
          "1e400",
          "1e-400",
          "0x1",
          "1 1",
          "1e",
          "+1"}) {
        table.push_back(
                {std::string("gaussian(gamma=") + number + ")",
                 15,
                 {number, "number from"}});
    }
    check_bad_strings(
            [](const std::string& text) { kernel_factory(text); }, table);
}

// gamma takes a number or `auto`, and the message should say both.
TEST(Spec, AutoIsListed) {
    check_bad_strings(
            [](const std::string& text) { kernel_factory(text); },
            {{"gaussian(gamma=x)", 15, {"auto"}}});
}

TEST(Spec, KernelsByTheirKey) {
    for (const std::string text :
         {"SIK64(kernel=gaussian,gamma=2)",
          "SIK64(gamma=2,kernel=gaussian)",
          "SIK64(kernel=gaussian(gamma=2))"}) {
        kernel_hash_factory(4, text)->check_identical(
                *kernel_hash_factory(4, "SIK64(gaussian,gamma=2)"));
    }
    check_bad_strings(
            parse_hash,
            {{"SIK64(gaussian,kernel=laplacian)", 6, {"'gaussian'"}},
             {"SIK64(kernel=linear)", 13, {"'linear'", "gaussian"}}});
}

TEST(Spec, HashStrings) {
    const std::vector<std::string> kernels = {
            "gaussian", "laplacian", "matern"};
    check_bad_strings(
            parse_hash,
            {{"", 0, {"SIK"}},
             {"XYZ64(gaussian)", 0, {"SIK"}},
             {"sik64(gaussian)", 0, {"SIK"}},
             {"SIK(gaussian)", 3, {"multiple of 8"}},
             {"SIK0(gaussian)", 3, {"multiple of 8"}},
             {"SIK7(gaussian)", 3, {"multiple of 8"}},
             {"SIK99999999999999999999(gaussian)", 3, {"multiple of 8"}},
             {"SIK64", 5, kernels},
             {"SIK64(gamma=1)", 6, kernels},
             {"SIK64(chi2)", 6, {"chi2"}},
             {"SIK64(linear)", 6, kernels},
             {"SIK64(5)", 6, {"name"}},
             {"SIK64(gaussian,seed=-1)", 20, {"integer"}},
             {"SIK64(gaussian,seed=1.5)", 20, {"integer"}},
             {"SIK64(gaussian,seed=9223372036854775808)", 20, {"integer"}},
             {"SIK64(gaussian,proj=sparse)", 20, {"dense"}},
             {"SIK64(gaussian,nu=2)", 15, {"gamma=", "seed=", "proj="}},
             {"SIK64(gaussian(gamma=1),gamma=2)", 24, {"twice"}},
             {"SIK64(gaussian,gamma=1,gamma=2)", 23, {"twice"}},
             {"SIK64(gaussian(seed=1))", 15, {"gamma="}},
             {"SIK64(gaussian,laplacian)", 15, {"laplacian"}},
             {"SIK64(matern,nu=99,gamma=1)", 16, {"0.1", "20"}},
             {"SIK64(gaussian,gamma=0)", 21, {"number"}},
             {"SIK64(gaussian)x", 15, {"'x'"}}});
}

// Strings of the grammar's own alphabet: parsing ends, in an item that is
// spelled as it was or in an error that quotes the string and marks a place in
// it.
TEST(Spec, RandomStrings) {
    const std::vector<std::string> tokens = {
            "(",       ")",        ",",      "=",      "(",
            ")",       ",",        "=",      "a",      "b1",
            "_",       "gaussian", "matern", "linear", "laplacian",
            "gamma",   "nu",       "seed",   "auto",   "0",
            "1",       "2.5",      "-1",     "1e-3",   "nan",
            "inf",     ".",        " ",      "SIK8",   "gaussian(gamma=1)",
            "gamma=2", "nu=1.5",   "\xff"};
    std::mt19937_64 rng(1);
    size_t parsed = 0, kernels = 0, hashes = 0, refused = 0;
    for (int round = 0; round < 15000; round++) {
        std::string text = std::vector<std::string>{
                "", "", "SIK8(", "SIK8(gaussian"}[rng() % 4];
        for (size_t i = rng() % 9; i > 0; i--) {
            text += tokens[rng() % tokens.size()];
        }
        const auto check = [&](const std::function<void()>& call) {
            try {
                call();
                return true;
            } catch (const faiss::FaissException& e) {
                const auto error = take_apart(e.what());
                refused++;
                const std::string clean = without_spaces(text);
                if (!error || error->text != printable(clean) ||
                    error->position > clean.size() ||
                    error->caret !=
                            printable(clean.substr(0, error->position))
                                    .size()) {
                    ADD_FAILURE() << "\"" << text << "\": " << e.what();
                }
                return false;
            }
        };
        parsed += check([&] {
            const Spec spec = Spec::parse(text);
            const std::string text = without_spaces(*spec.text);
            std::string again = spec.name;
            for (const Spec::Argument& a : spec.arguments) {
                again += &a == &spec.arguments[0] ? "(" : ",";
                EXPECT_EQ(text.substr(a.value_begin, a.value.size()), a.value);
                EXPECT_EQ(a.position, again.size());
                again += a.key.empty() ? a.value : a.key + "=" + a.value;
            }
            again += spec.arguments.empty() ? "" : ")";
            EXPECT_EQ(again, text);
            EXPECT_EQ(spec.str(), text);
        });
        kernels += check([&] {
            const std::string description = kernel_factory(text)->description();
            EXPECT_EQ(kernel_factory(description)->description(), description);
        });
        // numbers of bits that take little memory
        if (text.size() < 5 || text[4] == '(') {
            hashes += check([&] { kernel_hash_factory(2, text); });
        }
    }
    // all outcomes occur
    EXPECT_GT(parsed, 500);
    EXPECT_GT(kernels, 50);
    EXPECT_GT(refused, 1000);
    EXPECT_GT(hashes, 5);
}
