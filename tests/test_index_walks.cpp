// SPDX-License-Identifier: MIT
// Random sequences of operations on an index, compared with a model of it.

#include <gtest/gtest.h>

#include "index_walk.h"
#include "testing_strings.h"

using namespace faiss_ext_test;

namespace {

struct EachWalk : testing::TestWithParam<WalkRow> {};

INSTANTIATE_TEST_SUITE_P(
        Walks,
        EachWalk,
        testing::ValuesIn(walk_rows()),
        testing_strings::name_of_row);

TEST_P(EachWalk, AgreesWithTheModel) {
    std::map<std::string, int> steps;
    size_t largest = 0;
    for (uint64_t seed = 1; seed <= (is_sanitized ? 3 : 5); seed++) {
        RandomChoices choices(seed, 4000);
        IndexWalk walk(GetParam(), choices);
        while (!choices.done()) {
            ASSERT_NO_THROW(steps[walk.step()]++) << "seed " << seed;
            largest = std::max(largest, walk.size());
        }
    }
    EXPECT_EQ(steps.size(), 10u);
    for (const auto& [name, count] : steps) {
        EXPECT_GT(count, is_sanitized ? 5 : 10) << name;
    }
    EXPECT_GT(largest, 30u);
}

} // namespace
