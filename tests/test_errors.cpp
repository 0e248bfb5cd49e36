// Messages: what they begin with, and that they are text whatever they quote.

#include "core/errors.h"

#include <string>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/kernels/LinearKernel.h>

#include "testing_data.h"

using namespace faiss_ext;
using namespace testing_data;

namespace {

TEST(Printable, EscapesWhatIsNotText) {
    const auto is_kept = [](const std::string& text) {
        return printable(text) == text;
    };
    for (const std::string text :
         {"",
          "plain (text), with = signs",
          "two\nlines",
          "\xc3\xbc",            // ü
          "\xe2\x89\xa5",        // ≥
          "\xf0\x9f\x99\x82",    // beyond the first 65,536 characters
          "\xf4\x8f\xbf\xbf"}) { // the last character
        EXPECT_TRUE(is_kept(text)) << text;
    }
    EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
    EXPECT_EQ(printable("\t\r\x1b\x7f"), "\\x09\\x0d\\x1b\\x7f");
    EXPECT_EQ(printable("a\xff"), "a\\xff");
    // cut off, over-long, a surrogate, beyond Unicode, no first byte
    EXPECT_EQ(printable("\xc3"), "\\xc3");
    EXPECT_EQ(printable("\xe2\x89"), "\\xe2\\x89");
    EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
    EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
    EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
    EXPECT_EQ(printable("\x80x"), "\\x80x");
    // what follows a broken character is kept
    EXPECT_EQ(printable("\xe2\x89z\xc3\xbc"), "\\xe2\\x89z\xc3\xbc");
}

TEST(Printable, RandomBytesBecomeText) {
    std::mt19937_64 rng(1);
    for (int round = 0; round < 2000; round++) {
        std::string bytes;
        for (size_t i = rng() % 12; i > 0; i--) {
            bytes += char(rng() % 4 ? 0x80 + rng() % 128 : rng() % 128);
        }
        const std::string text = printable(bytes);
        EXPECT_EQ(printable(text), text);
        EXPECT_FALSE(contains(text, std::string(1, '\0')));
    }
}

TEST(Messages, BeginWithWhatIsWrong) {
    const IndexFlatKernel index(2, LinearKernel());
    const std::vector<float> x(2);
    const std::string message =
            message_of([&] { index.search(1, x.data(), 0, nullptr, nullptr); });
    EXPECT_EQ(message.find("IndexFlatKernel::search: k is 0, expected"), 0u)
            << message;
    const std::string rest = message.substr(message.find('\n'));
    EXPECT_TRUE(contains(rest, "'k > 0' failed")) << message;
    EXPECT_TRUE(contains(rest, "src/indexes/IndexFlatKernel.cpp:")) << message;
    EXPECT_FALSE(contains(message, "/src/")) << message; // of no machine
    EXPECT_FALSE(contains(message, std::string(1, '\0')));
}

TEST(Messages, OfAnyLength) {
    const std::string text(100000, 'x');
    const std::string message =
            message_of([&] { FAISS_EXT_THROW_FMT("<%s>", text.c_str()); });
    EXPECT_EQ(message.find("<" + text + ">\n"), 0u);
}

} // namespace
