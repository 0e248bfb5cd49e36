// SPDX-License-Identifier: MIT
// Error messages: how they begin, and that they are printable whatever they
// quote.

#include "core/check.h"
#include "core/errors.h"

#include <faiss_ext/core/errors.h>
#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/IndexBinaryFlatKernel.h>
#include <faiss_ext/indexes/IndexBinaryFlatSIMD.h>
#include <faiss_ext/indexes/IndexBinaryPermuted.h>
#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/io/index_factory.h>
#include <faiss_ext/io/index_io.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "testing.h"

using namespace faiss_ext;
using namespace faiss_ext_test;

TEST(Printable, EscapesWhatIsNotText) {
    const std::pair<std::string, std::string> texts[] = {
            // text with characters of 1 to 4 bytes, up to the last character
            {"", ""},
            {"(text)\n=\xc3\xbc\xe2\x89\xa5", "(text)\n=\xc3\xbc\xe2\x89\xa5"},
            {"\xf0\x9f\x99\x82", "\xf0\x9f\x99\x82"},
            {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
            // control characters
            {std::string("a\0b", 3), "a\\x00b"},
            {"\t\r\x1b\x7f", "\\x09\\x0d\\x1b\\x7f"},
            // an invalid byte, a truncated character, over-long, a surrogate,
            // beyond Unicode
            {"a\xff", "a\\xff"},
            {"\xc3", "\\xc3"},
            {"\xe2\x89", "\\xe2\\x89"},
            {"\xc0\xaf", "\\xc0\\xaf"},
            {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
            {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
            {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
            {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
            {"\x80x", "\\x80x"},
            {"\xe2\x89z\xc3\xbc", "\\xe2\\x89z\xc3\xbc"}};
    for (const auto& [bytes, text] : texts) {
        EXPECT_EQ(printable(bytes), text);
        EXPECT_EQ(printable(text), text);
    }
}

TEST(Messages, BeginWithWhatIsWrong) {
    const IndexFlatKernel index(2, LinearKernel());
    const std::vector<float> x(2);
    try {
        search(index, x, 0);
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(
                std::string(e.what()).find(
                        "IndexFlatKernel::search: k is 0, expected"),
                0)
                << e.what();
        // a member, since it does not help a user; independent of the machine
        const std::string text = e.what();
        EXPECT_EQ(text.find("src/"), std::string::npos) << text;
        EXPECT_EQ(e.place.find("'k > 0' failed in "), 0) << e.place;
        EXPECT_NE(e.place.find("src/core/check.cpp:"), std::string::npos);
        EXPECT_EQ(e.place.find(" at /"), std::string::npos) << e.place;
    }
}

TEST(Messages, SayWhyAFileCannotBeOpened) {
    const std::string expected =
            "cannot open /no/such/file: No such file or directory";
    EXPECT_EQ(error_of([] { read_index("/no/such/file"); }), expected);
    EXPECT_EQ(error_of([] { read_index_binary("/no/such/file"); }), expected);
}

TEST(Messages, OfWrongNumbersOfBitsAreNotThoseOfFaiss) {
    for (const int bits : {3, 0, -8}) {
        const std::string expected = "the number of bits is " +
                std::to_string(bits) + ", expected a";
        EXPECT_TRUE(throws([&] { IndexBinaryFlatSIMD index(bits); }, expected));
        EXPECT_TRUE(throws([&] { IndexBinaryPermuted index(bits); }, expected));
        if (bits <= 0) {
            EXPECT_TRUE(
                    throws([&] { IndexBinaryFlatKernel index(bits); },
                           "the number of bits is " + std::to_string(bits) +
                                   ", expected 1 to"));
        }
    }
}

TEST(Messages, NameTheFunctionWithoutItsArguments) {
    const std::pair<const char*, const char*> names[] = {
            {"int f(int)", "f"},
            {"virtual void a::B::f(const g::X&, int (*)(int)) const",
             "a::B::f"},
            {"a::R<int, 2> a::f(const R&) [with T = int]", "a::f"},
            {"void a::B<int, b::C >::f()", "a::B<int, b::C >::f"},
            {"void a::{anonymous}::f(long)", "a::{anonymous}::f"},
            {"void a::(anonymous namespace)::f(long)",
             "a::(anonymous namespace)::f"},
            {"a::B::B(int)", "a::B::B"},
            {"a::f(int)::<lambda(int)>", "a::f"}};
    for (const auto& [signature, name] : names) {
        EXPECT_EQ(name_of_function(signature), name);
    }
}

TEST(Messages, OfAnyLength) {
    const std::string text(100000, 'x');
    const std::string message =
            error_of([&] { FAISS_EXT_THROW_FMT("<%s>", text.c_str()); });
    EXPECT_EQ(message, "<" + text + ">");
}

TEST(Messages, NameTheVectorWhateverTheyQuote) {
    const std::vector<float> x = {0, 1, NAN};
    try {
        with_numbers_from(
                10, [&] { check_finite(3, x.data(), 1, "vector 1"); });
        FAIL();
    } catch (const VectorError& e) {
        EXPECT_EQ(e.vector, 12);
        const std::string message = e.what();
        EXPECT_EQ(message.find("vector 1: component 0 of vector 12 is nan"), 0)
                << message;
        const VectorError other = e.with_vector(7);
        EXPECT_EQ(other.place, e.place);
        EXPECT_EQ(
                std::string(other.what())
                        .find("vector 1: component 0 of vector 7 is"),
                0);
    }
}

TEST(Messages, OthersKeepTheirNumbers) {
    const std::string message = error_of([] {
        with_numbers_from(10, [] { FAISS_EXT_THROW_MSG("vector 3.npy"); });
    });
    EXPECT_EQ(message.find("vector 3.npy"), 0) << message;
}

TEST(Errors, KnowTheirPlaceInTheSource) {
    const auto message = [](auto&& call) {
        try {
            call();
        } catch (const Error& e) {
            EXPECT_NE(e.place.find(".cpp:"), std::string::npos);
            return std::string(e.what());
        }
        return std::string();
    };
    const float negative = -1;
    EXPECT_EQ(
            message([] { FAISS_EXT_THROW_FMT("%d is wrong", 3); }),
            "3 is wrong");
    EXPECT_EQ(
            message([&] {
                with_numbers_from(
                        10, [&] { check_histograms(1, &negative, 1, "add"); });
            }).find("add: component 0 of vector 10 is -1"),
            0);
}

// Several threads may hold the same exception.
TEST(Errors, StayTheSameWhenVectorsAreRenumbered) {
    const auto held = std::make_exception_ptr(VectorError("of ", 3, " is nan"));
    const auto number_of = [](auto&& call) {
        try {
            call();
        } catch (const VectorError& e) {
            return e.vector;
        }
        return idx_t(-1);
    };
    const auto rethrow = [&] { std::rethrow_exception(held); };
    EXPECT_EQ(number_of([&] { with_numbers_from(10, rethrow); }), 13);
    EXPECT_EQ(number_of(rethrow), 3);
}

TEST(Errors, KeepClassAndDataBehindAPrefix) {
    struct OfACaller : faiss::FaissException {
        using FaissException::FaissException;
    };
    const auto with_prefix = [](auto error) {
        try {
            throw error;
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix("file: ");
        }
    };
    try {
        with_prefix(VectorError("of ", 3, " is nan", "there"));
    } catch (const VectorError& e) {
        EXPECT_EQ(e.vector, 3);
        EXPECT_STREQ(e.what(), "file: of vector 3 is nan");
        EXPECT_EQ(e.place, "there");
    }
    EXPECT_THROW(with_prefix(UnsupportedError("no")), UnsupportedError);
    EXPECT_THROW(with_prefix(InterruptedError()), InterruptedError);
    EXPECT_THROW(with_prefix(OfACaller("mine")), OfACaller);
    for (const auto& call : std::vector<std::function<void()>>{
                 [&] { with_prefix(Error("no", "there")); },
                 [&] { with_prefix(FieldError("key", "no")); },
                 [&] { with_prefix(faiss::FaissException("no")); }}) {
        try {
            call();
            FAIL();
        } catch (const Error& e) {
            EXPECT_STREQ(e.what(), "file: no");
        }
    }
}

TEST(Errors, OfFaissLoseTheirPlaceInItsSource) {
    const std::string place =
            "in void faiss::f(idx_t, A<B>*) at ./faiss/F.cpp:27";
    const auto message = [&](const std::string& text) {
        return message_of_faiss("Error " + place + ": " + text);
    };
    EXPECT_EQ(message("Error: 'nx >= k' failed: too few (2)"), "too few (2)");
    EXPECT_EQ(message("no such lists\n"), "no such lists");
    EXPECT_EQ(message("Error: 'nx >= k' failed"), "Error: 'nx >= k' failed");
    EXPECT_EQ(
            message_of(faiss::FaissException("Error " + place + ": no")), "no");
    for (const auto& other : std::vector<std::string>{
                 "", "Error in", "x: Error " + place + ": y"}) {
        EXPECT_EQ(message_of_faiss(other), other);
    }
    // of FAISS itself
    const auto index = faiss_ext::index_factory(4, "Flat");
    try {
        try {
            index->add_with_ids(0, nullptr, nullptr);
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix("Mine: ");
        }
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()).find("Mine: "), 0) << e.what();
        EXPECT_EQ(std::string(e.what()).find(".cpp"), std::string::npos);
        EXPECT_NE(e.place.find("faiss/Index"), std::string::npos) << e.place;
    }
}

TEST(Errors, OfUnsupportedMethodsSayWhatToDo) {
    IndexFlatKernel index(2, LinearKernel());
    const std::vector<float> x(2);
    const idx_t id = 5;
    try {
        index.add_with_ids(1, x.data(), &id);
        FAIL();
    } catch (const UnsupportedError& e) {
        EXPECT_STREQ(
                e.what(),
                "IndexFlatKernel::add_with_ids is not supported; put an IDMap or IndexIDTable in front of the index");
    }
}
