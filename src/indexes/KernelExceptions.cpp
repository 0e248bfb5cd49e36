// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/KernelExceptions.h>

#include <atomic>
#include <mutex>

#include "indexes/index_facts.h"
#include "indexes/index_parts.h"

namespace faiss_ext {

struct KernelExceptions::State {
    std::mutex mutex;
    size_t watched = 0; ///< number of guarded calls in progress
    size_t count = 0;   ///< exceptions so far
    std::exception_ptr last;
    std::atomic<bool> failed{false}; ///< in a guarded call
};

KernelExceptions::KernelExceptions() : state(std::make_unique<State>()) {}
KernelExceptions::KernelExceptions(const KernelExceptions&)
        : KernelExceptions() {}
KernelExceptions& KernelExceptions::operator=(const KernelExceptions&) {
    return *this;
}
KernelExceptions::~KernelExceptions() = default;

void KernelExceptions::record(std::exception_ptr exception) {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->count++;
    // the previous exception is released after the lock
    std::swap(state->last, exception);
    state->failed = state->watched > 0;
}

bool KernelExceptions::has_failed() const {
    return state->failed;
}

namespace {

/// Also checks the index and its parts if that has not been done.
void find_exceptions(
        const AnyIndex& index,
        bool is_checked,
        std::vector<KernelExceptions*>& found) {
    const IndexFacts& facts = facts_of(index);
    if (facts.exceptions) {
        found.push_back(facts.exceptions(index));
    }
    if (!is_checked && facts.check) {
        facts.check(index);
    }
    if (facts.parts) {
        for (const IndexPart& part : facts.parts(index)) {
            if (part.index.floats) {
                find_exceptions(part.index, is_checked, found);
            }
        }
    }
}

} // namespace

KernelExceptionGuard::KernelExceptionGuard(const faiss::Index* index) {
    if (index) {
        const bool checks_calls = facts_of(*index).checks_calls.value_or(false);
        if (!checks_calls) {
            check_all_counts(*index);
        }
        find_exceptions(*index, !checks_calls, watched);
    }
    for (const KernelExceptions* exceptions : watched) {
        auto& state = *exceptions->state;
        std::lock_guard<std::mutex> lock(state.mutex);
        state.watched++;
        counts.push_back(state.count);
    }
}

std::exception_ptr KernelExceptionGuard::end() {
    std::exception_ptr result;
    for (size_t i = 0; i < watched.size(); i++) {
        std::exception_ptr last; // released after the lock
        auto& state = *watched[i]->state;
        std::lock_guard<std::mutex> lock(state.mutex);
        if (!result && state.count != counts[i]) {
            result = state.last;
        }
        if (--state.watched == 0) {
            state.failed = false;
            std::swap(last, state.last);
        }
    }
    watched.clear();
    return result;
}

KernelExceptionGuard::~KernelExceptionGuard() {
    end();
}

void KernelExceptionGuard::rethrow() {
    if (const std::exception_ptr exception = end()) {
        std::rethrow_exception(exception);
    }
}

} // namespace faiss_ext
