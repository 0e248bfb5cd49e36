#include <faiss_ext/indexes/KernelExceptions.h>

#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>

#include <faiss_ext/indexes/IndexFlatKernel.h>
#include <faiss_ext/indexes/IndexKernelHash.h>

#include "core/errors.h"

namespace faiss_ext {

namespace {

void find_exceptions(
        const faiss::Index* index,
        std::vector<KernelExceptions*>& found) {
    if (const auto* flat = dynamic_cast<const IndexFlatKernel*>(index)) {
        found.push_back(&flat->exceptions);
    } else if (const auto* hash = dynamic_cast<const IndexKernelHash*>(index)) {
        found.push_back(&hash->exceptions);
    } else if (
            const auto* map = dynamic_cast<const faiss::IndexIDMap*>(index)) {
        find_exceptions(map->index, found);
    } else if (
            const auto* pre =
                    dynamic_cast<const faiss::IndexPreTransform*>(index)) {
        find_exceptions(pre->index, found);
    } else if (
            const auto* refine =
                    dynamic_cast<const faiss::IndexRefine*>(index)) {
        FAISS_EXT_THROW_IF_NOT_FMT(
                refine->k_factor >= 1 && refine->k_factor < 1e9f,
                "k_factor of IndexRefine is %g, expected at least 1",
                refine->k_factor);
        find_exceptions(refine->base_index, found);
        find_exceptions(refine->refine_index, found);
    } else if (
            const auto* hnsw = dynamic_cast<const faiss::IndexHNSW*>(index)) {
        find_exceptions(hnsw->storage, found);
    } else if (
            const auto* shards =
                    dynamic_cast<const faiss::IndexShards*>(index)) {
        for (int i = 0; i < shards->count(); i++) {
            find_exceptions(shards->at(i), found);
        }
    } else if (
            const auto* replicas =
                    dynamic_cast<const faiss::IndexReplicas*>(index)) {
        for (int i = 0; i < replicas->count(); i++) {
            find_exceptions(replicas->at(i), found);
        }
    }
}

} // namespace

void KernelExceptions::record(std::exception_ptr exception) {
    std::lock_guard<std::mutex> lock(mutex);
    count++;
    std::swap(last, exception); // the one before is let go of after the lock
    failed = watched > 0;
}

KernelExceptionGuard::KernelExceptionGuard(const faiss::Index* index) {
    find_exceptions(index, watched);
    for (KernelExceptions* exceptions : watched) {
        std::lock_guard<std::mutex> lock(exceptions->mutex);
        exceptions->watched++;
        counts.push_back(exceptions->count);
    }
}

std::exception_ptr KernelExceptionGuard::end() {
    std::exception_ptr result;
    for (size_t i = 0; i < watched.size(); i++) {
        std::exception_ptr last; // is let go of after the lock
        std::lock_guard<std::mutex> lock(watched[i]->mutex);
        if (!result && watched[i]->count != counts[i]) {
            result = watched[i]->last;
        }
        if (--watched[i]->watched == 0) {
            watched[i]->failed = false;
            std::swap(last, watched[i]->last);
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
