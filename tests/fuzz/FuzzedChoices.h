// SPDX-License-Identifier: MIT
// Choices that a fuzzer makes.

#pragma once

#include <cstddef>
#include <cstdint>

#include "../index_walk.h"

namespace faiss_ext_test {

struct FuzzedChoices : Choices {
    const uint8_t* data;
    size_t size;

    FuzzedChoices(const uint8_t* data, size_t size) : data(data), size(size) {}

    size_t below(size_t n) override {
        size_t value = 0;
        for (size_t range = 1; range < n && size > 0; range *= 256) {
            value = 256 * value + *data++;
            size--;
        }
        return value % n;
    }

    bool done() override {
        return size == 0;
    }
};

} // namespace faiss_ext_test
