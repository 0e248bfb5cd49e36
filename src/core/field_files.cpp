#include "core/field_files.h"

#include <cmath>

#include "core/check.h"
#include "core/io_fields.h"

namespace faiss_ext {

namespace {

thread_local PartsInMemory* in_memory = nullptr;

struct FileWriter : FieldVisitor {
    faiss::IOWriter* f;

    explicit FileWriter(faiss::IOWriter* f) : f(f) {}

    bool wants_all() const override {
        return true;
    }

   private:
    void on_flag(const char*, bool& value, const char*) override {
        write_value(f, value);
    }

    void on_integer(
            const char*,
            int64_t& value,
            int64_t,
            int64_t,
            bool* automatic,
            const char*) override {
        write_value(f, value);
        if (automatic) {
            write_value(f, *automatic);
        }
    }

    void on_number(
            const char*,
            double& value,
            double,
            double,
            bool* automatic,
            const char*) override {
        write_value(f, value);
        if (automatic) {
            write_value(f, *automatic);
        }
    }

    void on_word(
            const char*,
            int& value,
            const std::vector<std::string>&,
            const char*) override {
        write_value(f, value);
    }

    void on_shape(const char*, int& rows, int& columns, int64_t, const char*)
            override {
        write_value(f, rows);
        write_value(f, columns);
    }

    void on_part(const char*, PartSlot& part, const char*, const char*)
            override {
        if (in_memory) {
            in_memory->parts.push_back(part.get() ? part.copy() : nullptr);
        } else {
            on_learned_part("", part);
        }
    }

    void on_array(const char*, ArraySlot& values, size_t) override {
        write_value(f, uint64_t(values.size()));
        write_bytes(f, values.data(), values.size() * values.item_size());
    }

    void on_learned(const char*, double& value) override {
        write_value(f, value);
    }

    void on_learned_part(const char*, PartSlot& part) override {
        write_string(f, part.get() ? part.name() : "");
        if (part.get()) {
            if (part.is_trained()) {
                write_value(f, *part.is_trained());
            }
            part.get()->fields(*this);
        }
    }
};

struct FileReader : FieldVisitor {
    faiss::IOReader* f;

    explicit FileReader(faiss::IOReader* f) : f(f) {}

    bool wants_all() const override {
        return true;
    }

    void read(HasFields& object) {
        depth++;
        FAISS_EXT_THROW_IF_NOT_FMT(
                depth <= max_depth,
                "%s is damaged: more than %d objects inside each other",
                f->name.c_str(),
                max_depth);
        object.fields(*this);
        try {
            object.restore();
        } catch (const faiss::FaissException& e) {
            fail(e.msg);
        }
        depth--;
    }

   private:
    static constexpr int max_depth = 64;
    int depth = 0;

    [[noreturn]] void fail(const std::string& message) const {
        FAISS_EXT_THROW_FMT(
                "%s is damaged: %s", f->name.c_str(), message.c_str());
    }

    void on_flag(const char* key, bool& value, const char*) override {
        value = read_value<bool>(f, key);
    }

    void on_integer(
            const char* key,
            int64_t& value,
            int64_t low,
            int64_t high,
            bool* automatic,
            const char*) override {
        value = read_value<int64_t>(f, key);
        const bool is_automatic = read_automatic(key, automatic);
        check_range(
                key,
                std::to_string(value),
                value >= low && value <= high,
                value == 0 && is_automatic);
    }

    void on_number(
            const char* key,
            double& value,
            double low,
            double high,
            bool* automatic,
            const char*) override {
        value = read_value<double>(f, key);
        const bool is_automatic = read_automatic(key, automatic);
        check_range(
                key,
                std::to_string(value),
                value >= low && value <= high,
                value == 0 && is_automatic);
    }

    bool read_automatic(const char* key, bool* automatic) {
        if (automatic) {
            *automatic = read_value<bool>(f, key);
        }
        return automatic && *automatic;
    }

    void check_range(
            const char* key,
            const std::string& value,
            bool is_within,
            bool is_automatic) const {
        if (!is_within && !is_automatic) {
            fail(std::string(key) + " is " + value + ", which is out of range");
        }
    }

    void on_word(
            const char* key,
            int& value,
            const std::vector<std::string>& words,
            const char*) override {
        value = read_value_in<int>(f, key, 0, int(words.size()) - 1);
    }

    void on_shape(
            const char* key,
            int& rows,
            int& columns,
            int64_t components,
            const char*) override {
        rows = read_value<int>(f, key);
        columns = read_value<int>(f, key);
        if ((rows != 0 || columns != 0) &&
            (rows <= 0 || columns <= 0 ||
             int64_t(rows) * columns != components)) {
            fail("a shape of " + std::to_string(rows) + "x" +
                 std::to_string(columns) + " for " +
                 std::to_string(components) + " components");
        }
    }

    void on_part(const char* key, PartSlot& part, const char* none, const char*)
            override {
        if (in_memory) {
            FAISS_EXT_THROW_IF_NOT_MSG(
                    in_memory->read < in_memory->parts.size(),
                    "more parts are read than were written");
            part.clear();
            if (auto& copy = in_memory->parts[in_memory->read++]) {
                part.set(std::move(copy));
            }
        } else {
            on_learned_part(key, part);
        }
        if (!part.get() && !none) {
            fail("it has no " + std::string(key));
        }
    }

    void on_array(const char* name, ArraySlot& values, size_t size) override {
        const auto given = read_value<uint64_t>(f, name);
        if (size != any_size && given != size) {
            fail(std::string(name) + " has " + std::to_string(given) +
                 " elements, expected " + std::to_string(size));
        }
        read_items(
                f,
                given,
                values.item_size(),
                [&](size_t n) { values.resize(n); },
                [&] { return values.data(); },
                name);
        if (values.is_float() &&
            !all_finite(given, static_cast<const float*>(values.data()))) {
            fail(std::string(name) +
                 " has a component that is NaN or infinite");
        }
    }

    void on_learned(const char* name, double& value) override {
        value = read_value<double>(f, name);
        if (!std::isfinite(value)) {
            fail(std::string(name) + " is NaN or infinite");
        }
    }

    void on_learned_part(const char* name, PartSlot& part) override {
        const std::string class_name = read_string(f, name);
        if (class_name.empty()) {
            part.clear();
            return;
        }
        FAISS_EXT_THROW_IF_NOT_FMT(
                part.make(class_name),
                "%s holds a %s of the unknown class '%s'; it may be damaged, or the class not registered",
                f->name.c_str(),
                part.noun().c_str(),
                printable(class_name).c_str());
        if (part.is_trained()) {
            *part.is_trained() = read_value<bool>(f, name);
        }
        read(*part.get());
    }
};

} // namespace

PartsInMemory::PartsInMemory() : outer(in_memory) {
    in_memory = this;
}

PartsInMemory::~PartsInMemory() {
    in_memory = outer;
}

void write_fields(const HasFields& object, faiss::IOWriter* f) {
    FileWriter writer(f);
    const_cast<HasFields&>(object).fields(writer); // only looked at
}

void read_fields(HasFields& object, faiss::IOReader* f) {
    FileReader(f).read(object);
}

} // namespace faiss_ext
