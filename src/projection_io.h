// Projections of any class in files.

#pragma once

#include <memory>

#include <faiss_ext/BilinearProjection.h>
#include <faiss_ext/DenseProjection.h>
#include <faiss_ext/Projection.h>

#include "io_fields.h"

namespace faiss_ext {

enum class ProjectionClass { dense, bilinear };

inline void write_projection(faiss::IOWriter* f, const Projection& projection) {
    const bool bilinear =
            dynamic_cast<const BilinearProjection*>(&projection) != nullptr;
    write_value(
            f, bilinear ? ProjectionClass::bilinear : ProjectionClass::dense);
    projection.write(f);
}

inline std::unique_ptr<Projection> read_projection(faiss::IOReader* f) {
    std::unique_ptr<Projection> projection;
    if (read_value_in<int>(f, "projection", 0, 1) ==
        int(ProjectionClass::bilinear)) {
        projection = std::make_unique<BilinearProjection>();
    } else {
        projection = std::make_unique<DenseProjection>();
    }
    projection->read(f);
    return projection;
}

} // namespace faiss_ext
