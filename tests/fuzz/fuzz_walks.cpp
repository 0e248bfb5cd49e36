// SPDX-License-Identifier: MIT
// Walks whose steps a fuzzer chooses, beside a model. The first byte says on
// which index.

#include "FuzzedChoices.h"

using namespace faiss_ext_test;

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
