// SPDX-License-Identifier: MIT
// Walks whose steps a fuzzer chooses, beside a model. The first byte says on
// which index.

#include "../index_walk.h"

using namespace faiss_ext_test;

namespace {

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

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const std::vector<WalkRow> rows = walk_rows();
    if (size < 2) {
        return -1;
    }
    FuzzedChoices choices(data + 1, size - 1);
    IndexWalk walk(rows[data[0] % rows.size()], choices);
    while (!choices.done()) {
        walk.step();
    }
    return 0;
}
