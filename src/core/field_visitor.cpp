// SPDX-License-Identifier: MIT
#include "core/field_visitor.h"

namespace faiss_ext {

void FieldVisitor::flag(
        const char* key,
        const bool& value,
        const char* meaning) {
    on(FlagField{{key, meaning}, value});
}

void FieldVisitor::number(
        const char* key,
        const double& value,
        double low,
        double high,
        const char* meaning,
        const bool* automatic) {
    on(NumberField<double>{{key, meaning}, value, low, high, automatic});
}

void FieldVisitor::shape(
        const char* key,
        const int& rows,
        const int& columns,
        int64_t components,
        const char* meaning) {
    on(ShapeField{{key, meaning}, rows, columns, components});
}

void FieldVisitor::on_integer(
        const char* key,
        int64_t& value,
        int64_t low,
        int64_t high,
        const char* meaning,
        const bool* automatic) {
    on(NumberField<int64_t>{{key, meaning}, value, low, high, automatic});
}

void FieldVisitor::on_word(
        const char* key,
        int& value,
        const std::vector<std::string>& words,
        const char* meaning) {
    on(WordField{{key, meaning}, value, words});
}

void FieldVisitor::on_part(
        const char* key,
        ObjectRef& part,
        const char* meaning,
        const char* none) {
    on(PartField{{key, meaning}, part, none});
}

void FieldVisitor::on_parts(
        const char* key,
        ObjectsRef& parts,
        const std::vector<double>* weights,
        double low,
        double high,
        const char* meaning) {
    on(PartsField{{key, meaning}, parts, weights, low, high});
}

} // namespace faiss_ext
