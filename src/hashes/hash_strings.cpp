// SPDX-License-Identifier: MIT
#include "hashes/hash_strings.h"

#include <faiss_ext/hashes/hash_registry.h>

#include "core/errors.h"
#include "core/field_strings.h"

namespace faiss_ext {

std::vector<std::string> hash_forms() {
    std::vector<std::string> forms;
    for (const std::string& name : hash_names()) {
        forms.push_back(name + "<bits>(...)");
    }
    return forms;
}

bool is_hash(const Token& part) {
    return bool(class_table<KernelHash>().find(TokenHead(part).letters));
}

std::unique_ptr<KernelHash> make_hash(int d, const Token& part) {
    const auto [name, digits, next] = TokenHead(part);
    const auto entry = class_table<KernelHash>().find(name);
    if (!entry) {
        part.fail("unknown hash '" + part.str() + "'", hash_forms());
    }
    const Token at_bits = part.after(name.size());
    const bool is_whole = next == '\0' || next == '(';
    if (digits.empty() && is_whole) {
        at_bits.fail(
                "expected the number of bits", {"a number from 1 to 67108864"});
    }
    // 2^26 bits are 8 MB a code
    const bool is_number = !digits.empty() && digits.size() <= 8 && is_whole;
    const int nbits = is_number ? std::stoi(digits) : 0;
    if (nbits <= 0 || nbits > (1 << 26)) {
        at_bits.fail(
                "invalid number of bits '" +
                        at_bits.str().substr(0, at_bits.str().find('(')) + "'",
                {"a number from 1 to 67108864"});
    }
    Spec spec = Spec::parse(part.text, part.begin, part.end);
    spec.name = name;
    auto hash = entry->make();
    hash->set_dimensions(d, nbits);
    read_string(*hash, spec);
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
