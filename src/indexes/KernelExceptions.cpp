// SPDX-License-Identifier: MIT
#include <faiss_ext/indexes/KernelExceptions.h>

#include <atomic>
#include <mutex>
#include <typeinfo>

#include <faiss/IndexRefine.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexHNSWKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>
#include <faiss_ext/indexes/IndexPreTransformSIMD.h>
#include <faiss_ext/indexes/IndexRefineKernel.h>

#include "indexes/index_compat.h"
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

/// Returns whether the index's class compares the counts of its parts itself.
bool checks_counts(const faiss::Index& index) {
    const std::type_info& type = typeid(index);
    return type == typeid(IndexFlatKernel) || type == typeid(IndexKernelHash) ||
            type == typeid(IndexHNSWKernel) ||
            type == typeid(IndexPreTransformSIMD) ||
            type == typeid(IndexRefineKernel);
}

void find_exceptions(
        const faiss::Index* index,
        std::vector<KernelExceptions*>& found) {
    if (const auto* flat = dynamic_cast<const IndexFlatKernel*>(index)) {
        found.push_back(&flat->exceptions);
    }
    if (const auto* hash = dynamic_cast<const IndexKernelHash*>(index)) {
        found.push_back(&hash->exceptions);
    }
    if (const auto* refine = dynamic_cast<const faiss::IndexRefine*>(index)) {
        check_k_factor(refine->k_factor, "IndexRefine");
    }
    for (const faiss::Index* part : parts_of(*index)) {
        if (part) {
            find_exceptions(part, found);
        }
    }
}

} // namespace

KernelExceptionGuard::KernelExceptionGuard(const faiss::Index* index) {
    if (index) {
        if (!checks_counts(*index)) {
            check_all_counts(*index);
        }
        find_exceptions(index, watched);
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
