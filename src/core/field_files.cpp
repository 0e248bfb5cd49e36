// SPDX-License-Identifier: MIT
#include "core/field_files.h"

#include <cmath>
#include <optional>
#include <utility>

#include "core/aligned_arrays.h"
#include "core/check.h"
#include "core/field_visitor.h"
#include "core/io_fields.h"

namespace faiss_ext {

namespace {

thread_local PartsInMemory* in_memory = nullptr;

thread_local int objects_inside_each_other = 0;

// The writer and the reader refuse the same values.

template <class T>
std::string out_of_range(const NumberField<T>& field) {
    return std::string(field.key) + " is " + std::to_string(field.value) +
            ", expected " + std::to_string(field.low) + " to " +
            std::to_string(field.high);
}

std::string wrong_shape(const ShapeField& field) {
    return "a shape of " + std::to_string(field.rows) + "x" +
            std::to_string(field.columns) + " for " +
            std::to_string(field.components) + " components";
}

std::string missing(const PartField& field) {
    return "it has no " + std::string(field.key);
}

std::string wrong_size(const char* name, uint64_t size, size_t expected) {
    return std::string(name) + " has " + std::to_string(size) +
            " elements, expected " + std::to_string(expected);
}

std::string not_finite(const char* name) {
    return std::string(name) + " has a component that is NaN or infinite";
}

bool is_finite(const ArrayRef& values) {
    return !values.is_float() ||
            all_finite(
                    values.size(),
                    static_cast<const float*>(values.sequential()));
}

struct FileWriter : FieldVisitor {
    faiss::IOWriter* f;

    explicit FileWriter(faiss::IOWriter* f) : f(f) {}

    bool wants_all() const override {
        return true;
    }

   private:
    /// Throws the error that FileReader would throw.
    void require(bool good, const std::string& message) const {
        FAISS_EXT_THROW_IF_NOT_FMT(
                good,
                "%s cannot be written: %s",
                name_of(*f).c_str(),
                message.c_str());
    }

    void on(const FlagField& field) override {
        write_value(f, field.value);
    }

    template <class T>
    void write_number(const NumberField<T>& field) {
        require(field.is_valid(), out_of_range(field));
        write_value(f, field.value);
        if (field.automatic) {
            write_value(f, *field.automatic);
        }
    }
    void on(const NumberField<int64_t>& field) override {
        write_number(field);
    }
    void on(const NumberField<double>& field) override {
        write_number(field);
    }

    void on(const WordField& field) override {
        require(field.value >= 0 && field.value < int(field.words.size()),
                std::string(field.key) + " is not one of its values");
        write_value(f, field.value);
    }

    void on(const ShapeField& field) override {
        require(field.is_valid(), wrong_shape(field));
        write_value(f, field.rows);
        write_value(f, field.columns);
    }

    void on(const PartField& field) override {
        require(field.part.get() || field.none, missing(field));
        if (in_memory) {
            in_memory->parts.push_back(
                    field.part.get() ? field.part.copy() : nullptr);
        } else {
            on_learned_part("", field.part);
        }
    }

    void on(const PartsField&) override {} // follow as learned parts

    void on_array(const char* name, ArrayRef& values, size_t size) override {
        require(size == any_size || values.size() == size,
                wrong_size(name, values.size(), size));
        require(is_finite(values), not_finite(name));
        if (values.is_mappable()) {
            write_aligned(
                    f, values.sequential(), values.size(), values.item_size());
            return;
        }
        write_value(f, uint64_t(values.size()));
        write_bytes(f, values.sequential(), values.size() * values.item_size());
    }

    void on_learned(const char* name, const double& value) override {
        require(std::isfinite(value), not_finite(name));
        write_value(f, value);
    }

    void on_learned_part(const char*, ObjectRef& part) override {
        write_string(f, part.get() ? part.name() : "");
        if (part.get()) {
            const Nesting nesting(f->name);
            if (part.is_trained()) {
                write_value(f, *part.is_trained());
            }
            part.get()->fields(*this);
            check_restorable(part);
        }
    }

    void check_restorable(const ObjectRef& part) const {
        const auto copy = part.copy();
        try {
            copy->restore();
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix(name_of(*f) + " cannot be written: ");
        }
    }
};

struct FileReader : FieldSetter {
    faiss::IOReader* f;

    explicit FileReader(faiss::IOReader* f) : f(f) {}

    bool wants_all() const override {
        return true;
    }

    void read(HasFields& object) {
        object.fields(*this);
        try {
            object.restore();
        } catch (const faiss::FaissException&) {
            rethrow_with_prefix(name_of(*f) + " cannot be used: ");
        }
    }

   private:
    [[noreturn]] void fail(const std::string& message) const {
        FAISS_EXT_THROW_FMT(
                "%s is damaged: %s", name_of(*f).c_str(), message.c_str());
    }

    void on(const FlagField& field) override {
        settable(field.value) = read_value<bool>(f, field.key);
    }

    template <class T>
    void read_number(const NumberField<T>& field) {
        settable(field.value) = read_value<T>(f, field.key);
        if (field.automatic) {
            settable(*field.automatic) = read_value<bool>(f, field.key);
        }
        if (!field.is_valid()) {
            fail(out_of_range(field));
        }
    }
    void on(const NumberField<int64_t>& field) override {
        read_number(field);
    }
    void on(const NumberField<double>& field) override {
        read_number(field);
    }

    void on(const WordField& field) override {
        settable(field.value) = read_value_in<int>(
                f, field.key, 0, int(field.words.size()) - 1);
    }

    void on(const ShapeField& field) override {
        settable(field.rows) = read_value<int>(f, field.key);
        settable(field.columns) = read_value<int>(f, field.key);
        if (!field.is_valid()) {
            fail(wrong_shape(field));
        }
    }

    void on(const PartField& field) override {
        if (in_memory) {
            FAISS_EXT_THROW_IF_NOT_MSG(
                    in_memory->read < in_memory->parts.size(),
                    "internal error: more parts are read than were written");
            field.part.clear();
            if (auto& copy = in_memory->parts[in_memory->read++]) {
                field.part.set(std::move(copy));
            }
        } else {
            on_learned_part(field.key, field.part);
        }
        if (!field.part.get() && !field.none) {
            fail(missing(field));
        }
    }

    void on(const PartsField&) override {} // follow as learned parts

    void on_array(const char* name, ArrayRef& values, size_t size) override {
        const auto given = values.is_mappable() ? read_aligned_size(f, name)
                                                : read_value<uint64_t>(f, name);
        if (size != any_size && given != size) {
            fail(wrong_size(name, given, size));
        }
        std::optional<FileRange> range;
        if (values.is_mappable()) {
            range = map_items(
                    f, given, values.item_size(), array_alignment, name);
        }
        if (range) {
            values.map(*range);
        } else {
            void* items = nullptr;
            read_items(
                    f,
                    given,
                    values.item_size(),
                    [&](size_t n) { items = values.resize(n); },
                    [&] { return items; },
                    name);
        }
        if (!is_finite(values)) {
            fail(not_finite(name));
        }
    }

    void on_learned(const char* name, const double& value) override {
        settable(value) = read_value<double>(f, name);
        if (!std::isfinite(value)) {
            fail(not_finite(name));
        }
    }

    void on_learned_part(const char* name, ObjectRef& part) override {
        const std::string class_name = read_string(f, name);
        if (class_name.empty()) {
            part.clear();
            return;
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                part.make(class_name),
                "%s contains a %s of the unknown class '%s'; it is damaged, or the class must be registered first",
                name_of(*f).c_str(),
                part.noun().c_str(),
                printable(class_name).c_str());
        if (part.is_trained()) {
            part.set_trained(read_value<bool>(f, name));
        }
        const Nesting nesting(f->name);
        read(*part.get_settable());
    }
};

} // namespace

bool copies_in_memory() {
    return in_memory != nullptr;
}

Nesting::Nesting(const std::string& file) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            objects_inside_each_other < limit,
            "%s has more than %d nested objects",
            file.empty() ? "the data" : file.c_str(),
            limit);
    objects_inside_each_other++;
}

Nesting::~Nesting() {
    objects_inside_each_other--;
}

PartsInMemory::PartsInMemory() : outer(in_memory) {
    in_memory = this;
}

PartsInMemory::~PartsInMemory() {
    in_memory = outer;
}

void write_fields(const HasFields& object, faiss::IOWriter* f) {
    FileWriter writer(f);
    object.fields(writer);
}

void check_fields_in_file(const HasFields& object, const std::string& file) {
    struct Nowhere : faiss::IOWriter {
        size_t operator()(const void*, size_t, size_t n) override {
            return n;
        }
    };
    std::optional<PartsInMemory> copies; // separate from the outer copy's
    if (in_memory) {
        copies.emplace();
    }
    Nowhere nowhere;
    nowhere.name = file;
    write_fields(object, &nowhere);
}

void read_fields(HasFields& object, faiss::IOReader* f) {
    FileReader(f).read(object);
}

} // namespace faiss_ext
