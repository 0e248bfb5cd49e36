// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <faiss/impl/HNSW.h>

#include <faiss_ext/core/fields.h>
#include <faiss_ext/indexes/search_limits.h>

namespace faiss_ext {

/// The names of graphs that have settings in strings. FAISS's own graphs of
/// vectors have none.
inline const std::vector<std::string> graph_names = {"HNSW", "BHNSW"};

/// The settings of a graph, as in `HNSW32(efConstruction=100,efSearch=64)`.
struct GraphSettings : HasFields {
    int ef_construction, ef_search;

    explicit GraphSettings(const faiss::HNSW& hnsw = faiss::HNSW())
            : ef_construction(hnsw.efConstruction), ef_search(hnsw.efSearch) {}

    void apply(faiss::HNSW& hnsw) const {
        hnsw.efConstruction = ef_construction;
        hnsw.efSearch = ef_search;
    }

    void fields(FieldVisitor& v) const override {
        v.integer(
                "efConstruction",
                ef_construction,
                1,
                max_ef,
                "candidates for the links of a new vector");
        v.integer("efSearch", ef_search, 1, max_ef, "candidates of a search");
    }
};

} // namespace faiss_ext
