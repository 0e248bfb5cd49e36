#include "hashes/hash_strings.h"

#include <cctype>
#include <utility>

#include <faiss_ext/hashes/hash_registry.h>

#include "core/errors.h"

namespace faiss_ext {

namespace {

/// NAME and DIGITS of `NAME512(...)`; NAME is all letters
std::pair<std::string, std::string> scheme_name(const Part& part) {
    const std::string s = part.str();
    size_t i = 0;
    while (i < s.size() && std::isalpha(static_cast<unsigned char>(s[i]))) {
        i++;
    }
    return {s.substr(0, i), s.substr(i, num_digits(s, i))};
}

} // namespace

std::vector<std::string> hash_forms() {
    std::vector<std::string> forms;
    for (const std::string& name : hash_names()) {
        forms.push_back(name + "<bits>(...)");
    }
    return forms;
}

bool is_hash(const Part& part) {
    const auto name = scheme_name(part).first;
    return !name.empty() && find_hash(name);
}

std::unique_ptr<KernelHash> make_hash(int d, const Part& part) {
    const auto [name, digits] = scheme_name(part);
    const auto entry = name.empty() ? nullptr : find_hash(name);
    if (!entry) {
        part.fail("'" + part.str() + "' is no scheme", hash_forms());
    }
    const Part at_bits = part.after(name.size());
    const std::string rest = at_bits.after(digits.size()).str();
    if (digits.empty() && (rest.empty() || rest[0] == '(')) {
        at_bits.fail(
                "expected the number of bits",
                {"a positive multiple of 8 such as 512"});
    }
    // 2^26 bits are 8 MB a code
    const bool is_number = !digits.empty() && digits.size() <= 8 &&
            (rest.empty() || rest[0] == '(');
    const int nbits = is_number ? std::stoi(digits) : 0;
    if (nbits <= 0 || nbits % 8 != 0 || nbits > (1 << 26)) {
        at_bits.fail(
                "'" + at_bits.str().substr(0, at_bits.str().find('(')) +
                        "' is no number of bits",
                {"a multiple of 8 from 8 to 67108864"});
    }
    Spec spec = Spec::parse(part.text, part.begin, part.end);
    auto hash = entry->make(d, nbits, spec);
    spec.finish();
    return hash;
}

std::unique_ptr<KernelHash> kernel_hash_factory(
        int d,
        const std::string& description) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            d > 0, "the dimension is %d, expected a positive number", d);
    return make_hash(d, whole(without_spaces(description)));
}

} // namespace faiss_ext
