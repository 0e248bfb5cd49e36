// SPDX-License-Identifier: MIT
#include "core/progress.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace faiss_ext {

using Clock = std::chrono::steady_clock;

struct ProgressScope::State {
    const ProgressFunction function;
    const std::chrono::milliseconds interval;
    Clock::time_point next = Clock::now() + interval;
    bool has_task = false;
    std::atomic<bool> has_ended{false};

    State(ProgressFunction function, std::chrono::milliseconds interval)
            : function(std::move(function)), interval(interval) {}

    /// The open scopes of this thread, the newest last.
    static std::vector<std::shared_ptr<State>>& open() {
        thread_local std::vector<std::shared_ptr<State>> scopes;
        const auto has_ended = [](const auto& scope) {
            return scope->has_ended.load(); // maybe on another thread
        };
        scopes.erase(
                std::remove_if(scopes.begin(), scopes.end(), has_ended),
                scopes.end());
        return scopes;
    }
};

ProgressScope::ProgressScope(
        ProgressFunction function,
        std::chrono::milliseconds interval)
        : state(std::make_shared<State>(std::move(function), interval)) {
    State::open().push_back(state);
}

ProgressScope::~ProgressScope() {
    state->has_ended = true;
    State::open();
}

Progress::Progress(const char* task, size_t total) : task(task), total(total) {
    if (!task) {
        return;
    }
    const auto& scopes = ProgressScope::State::open();
    if (!scopes.empty() && !std::exchange(scopes.back()->has_task, true)) {
        scope = scopes.back();
    }
}

Progress::~Progress() {
    if (scope) {
        scope->has_task = false;
    }
}

void Progress::at(size_t done) {
    if (!scope || scope->has_ended) {
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
