// SPDX-License-Identifier: MIT
#include "core/progress.h"

#include <utility>

namespace faiss_ext {

using Clock = std::chrono::steady_clock;

struct ProgressScope::State {
    ProgressFunction function;
    std::chrono::milliseconds interval;
    State* outer;
    Clock::time_point next = Clock::now() + interval;
    bool has_task = false;

    static State*& innermost() {
        thread_local State* state = nullptr;
        return state;
    }
};

ProgressScope::ProgressScope(
        ProgressFunction function,
        std::chrono::milliseconds interval)
        : state(new State{std::move(function), interval, State::innermost()}) {
    State::innermost() = state.get();
}

ProgressScope::~ProgressScope() {
    State::innermost() = state->outer;
}

Progress::Progress(const char* task, size_t total)
        : scope(task ? ProgressScope::State::innermost() : nullptr),
          task(task),
          total(total) {
    if (scope && std::exchange(scope->has_task, true)) {
        scope = nullptr;
    }
}

Progress::~Progress() {
    if (scope) {
        scope->has_task = false;
    }
}

void Progress::at(size_t done) {
    if (!scope) {
        return;
    }
    const auto now = Clock::now();
    if (now >= scope->next || (is_shown && done == total)) {
        is_shown = true;
        scope->function(task, done, total);
        scope->next = Clock::now() + scope->interval;
    }
}

} // namespace faiss_ext
