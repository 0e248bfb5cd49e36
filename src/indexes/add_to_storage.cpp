// SPDX-License-Identifier: MIT
#include "indexes/add_to_storage.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <faiss/IndexBinaryFlat.h>
#include <faiss/IndexBinaryHNSW.h>
#include <faiss/IndexBinaryHash.h>
#include <faiss/IndexBinaryIVF.h>

#include <faiss_ext/indexes/IndexBinaryHNSWSIMD.h>
#include <faiss_ext/indexes/IndexBinaryIVFSIMD.h>

#include "core/errors.h"
#include "core/progress.h"
#include "core/slices.h"
#include "indexes/mapped_lists.h"

namespace faiss_ext {

namespace {

/// FAISS's loop does not check for interrupts, so many vectors are added in
/// parts. If a part fails or an interrupt comes, the graph is restored.
void add_to_graph(faiss::IndexBinaryHNSW& graph, idx_t n, const uint8_t* x) {
    // the graph depends on the parts, so their size must not depend on time;
    // each part costs FAISS a pass over all nodes
    const auto part = [&] {
        return std::max<idx_t>(1000, graph.ntotal / 1000);
    };
    auto* flat = dynamic_cast<faiss::IndexBinaryFlat*>(graph.storage);
    const bool levels_are_given =
            graph.hnsw.levels.size() != size_t(graph.ntotal);
    if (n <= part() || !flat || levels_are_given) {
        graph.add(n, x);
        return;
    }
    faiss::HNSW before = graph.hnsw;
    const idx_t ntotal = graph.ntotal;
    Progress progress("graph", n);
    try {
        for (idx_t begin = 0; begin < n;) {
            check_interrupt();
            progress.at(begin);
            const idx_t m = std::min(part(), n - begin);
            graph.add(m, x + begin * graph.code_size);
            begin += m;
        }
        progress.at(n);
    } catch (...) {
        flat->xb.resize(ntotal * flat->code_size);
        flat->ntotal = graph.ntotal = ntotal;
        graph.hnsw = std::move(before);
        throw;
    }
}

void add_to_lists(
        faiss::IndexBinaryIVF& ivf,
        idx_t n,
        const uint8_t* x,
        const idx_t* ids) {
    check_not_mapped(is_mapped(ivf), "IndexBinaryIVF::add");
    std::vector<idx_t> lists(n);
    for_timed_batches(n, [&](idx_t begin, idx_t end) {
        ivf.quantizer->assign(
                end - begin, x + begin * ivf.code_size, &lists[begin]);
    });
    if (auto* fast = dynamic_cast<IndexBinaryIVFSIMD*>(&ivf)) {
        fast->add_core(n, x, ids, lists.data());
    } else {
        ivf.add_core(n, x, ids, lists.data());
    }
}

/// Returns the first bits of a code as FAISS's hash table reads them: the first
/// bit is the lowest.
idx_t first_bits(const uint8_t* code, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        value |= uint64_t(code[i / 8] >> i % 8 & 1) << i;
    }
    return idx_t(value);
}

void add_to_buckets(
        faiss::IndexBinaryHash& table,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids) {
    const idx_t ntotal = table.ntotal;
    try {
        table.add_with_ids(n, codes, ids);
    } catch (...) {
        // FAISS adds codes one by one, and ids may be any numbers
        idx_t added = -ntotal;
        for (const auto& [_, bucket] : table.invlists) {
            added += bucket.ids.size();
        }
        // a failure may have left an empty bucket for the next code
        for (idx_t j = std::min(added, n - 1); j >= 0; j--) {
            const auto at = table.invlists.find(
                    first_bits(codes + j * table.code_size, table.b));
            if (at == table.invlists.end()) {
                continue;
            }
            auto& bucket = at->second;
            if (j < added && !bucket.ids.empty()) {
                bucket.ids.pop_back();
            }
            bucket.vecs.resize(bucket.ids.size() * table.code_size);
            if (bucket.ids.empty()) {
                table.invlists.erase(at);
            }
        }
        table.ntotal = ntotal;
        throw;
    }
}

void add_to_buckets(
        faiss::IndexBinaryMultiHash& tables,
        idx_t n,
        const uint8_t* codes) {
    const idx_t ntotal = tables.ntotal;
    try {
        tables.add(n, codes);
    } catch (...) {
        for (auto& table : tables.maps) {
            for (auto at = table.begin(); at != table.end();) {
                std::vector<idx_t>& ids = at->second;
                while (!ids.empty() && ids.back() >= ntotal) {
                    ids.pop_back();
                }
                at = ids.empty() ? table.erase(at) : std::next(at);
            }
        }
        tables.storage->xb.resize(ntotal * tables.code_size);
        tables.storage->ntotal = tables.ntotal = ntotal;
        throw;
    }
}

} // namespace

void add_to_storage(
        faiss::IndexBinary& storage,
        idx_t n,
        const uint8_t* codes,
        const idx_t* ids) {
    if (n == 0) { // FAISS's graphs do not accept an empty batch
        return;
    }
    if (auto* ivf = dynamic_cast<faiss::IndexBinaryIVF*>(&storage)) {
        add_to_lists(*ivf, n, codes, ids);
    } else if (auto* table = dynamic_cast<faiss::IndexBinaryHash*>(&storage)) {
        add_to_buckets(*table, n, codes, ids);
    } else if (ids) {
        storage.add_with_ids(n, codes, ids);
    } else if (
            auto* tables =
                    dynamic_cast<faiss::IndexBinaryMultiHash*>(&storage)) {
        add_to_buckets(*tables, n, codes);
    } else if (auto* graph = dynamic_cast<faiss::IndexBinaryHNSW*>(&storage);
               graph && !dynamic_cast<IndexBinaryHNSWSIMD*>(graph)) {
        add_to_graph(*graph, n, codes);
    } else {
        storage.add(n, codes);
    }
}

} // namespace faiss_ext
