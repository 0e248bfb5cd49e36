#include <faiss_ext/projections/AnyProjection.h>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "core/errors.h"
#include "core/io_fields.h"

namespace faiss_ext {

namespace {

enum class ProjectionClass { none, dense, bilinear, structured };

ProjectionClass class_of(const Projection* projection) {
    if (!projection) {
        return ProjectionClass::none;
    }
    if (dynamic_cast<const BilinearProjection*>(projection)) {
        return ProjectionClass::bilinear;
    }
    if (dynamic_cast<const StructuredProjection*>(projection)) {
        return ProjectionClass::structured;
    }
    FAISS_EXT_THROW_IF_NOT_MSG(
            dynamic_cast<const DenseProjection*>(projection),
            "projections of this class cannot be written to files");
    return ProjectionClass::dense;
}

} // namespace

void AnyProjection::write(faiss::IOWriter* f) const {
    write_value(f, class_of(get()));
    if (pointer) {
        pointer->write(f);
    }
}

void AnyProjection::read(faiss::IOReader* f) {
    switch (ProjectionClass(read_value_in<int>(f, "projection", 0, 3))) {
        case ProjectionClass::none:
            pointer = nullptr;
            return;
        case ProjectionClass::dense:
            pointer = std::make_unique<DenseProjection>();
            break;
        case ProjectionClass::bilinear:
            pointer = std::make_unique<BilinearProjection>();
            break;
        case ProjectionClass::structured:
            pointer = std::make_unique<StructuredProjection>();
            break;
    }
    pointer->read(f);
}

} // namespace faiss_ext
