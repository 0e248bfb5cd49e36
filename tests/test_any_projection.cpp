// A projection of any class as a value.

#include <faiss_ext/projections/AnyProjection.h>

#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <faiss/impl/io.h>

#include <faiss_ext/projections/BilinearProjection.h>
#include <faiss_ext/projections/DenseProjection.h>
#include <faiss_ext/projections/StructuredProjection.h>

#include "testing_data.h"

using namespace faiss_ext;
using namespace testing_data;

namespace {

/// of 12 components, to 20 outputs
std::vector<AnyProjection> all_classes() {
    std::vector<AnyProjection> all;
    const std::vector<float> A = normal_vectors(20, 12, 1);
    all.emplace_back(DenseProjection(12, 20, A.data()));
    all.emplace_back(BilinearProjection(3, 4, 20, 2, true, 1));
    all.emplace_back(
            StructuredProjection(12, 20, 1, std::vector<double>(20, 16)));
    return all;
}

std::vector<uint8_t> bytes_of(const AnyProjection& p) {
    faiss::VectorIOWriter writer;
    p.write(&writer);
    return writer.data;
}

AnyProjection from_bytes(const std::vector<uint8_t>& bytes) {
    faiss::VectorIOReader reader;
    reader.data = bytes;
    AnyProjection p;
    p.read(&reader);
    EXPECT_EQ(reader.rp, bytes.size());
    return p;
}

std::vector<float> outputs_of(
        const AnyProjection& p,
        const std::vector<float>& x) {
    std::vector<float> y(x.size() / p->d_in * p->d_out);
    p->apply(x.size() / p->d_in, x.data(), y.data());
    return y;
}

/// Makes every output 0.
void damage(Projection& p) {
    if (auto* dense = dynamic_cast<DenseProjection*>(&p)) {
        dense->panels.assign(dense->panels.size(), 0);
    } else if (auto* bilinear = dynamic_cast<BilinearProjection*>(&p)) {
        bilinear->V.assign(bilinear->V.size(), 0);
    } else {
        auto& structured = dynamic_cast<StructuredProjection&>(p);
        structured.norms.assign(structured.norms.size(), 0);
    }
}

} // namespace

TEST(AnyProjection, Empty) {
    const AnyProjection empty, null{std::unique_ptr<Projection>()};
    for (const AnyProjection* p : {&empty, &null}) {
        EXPECT_FALSE(*p);
        EXPECT_EQ(p->get(), nullptr);
        EXPECT_FALSE(AnyProjection(*p));
        EXPECT_FALSE(from_bytes(bytes_of(*p)));
    }
    AnyProjection full = all_classes()[0];
    full = empty;
    EXPECT_FALSE(full);
}

TEST(AnyProjection, CopiesAreDeep) {
    const std::vector<float> x = normal_vectors(5, 12, 3);
    const std::vector<float> zeros(5 * 20);
    for (AnyProjection& p : all_classes()) {
        ASSERT_TRUE(p);
        const std::vector<float> y = outputs_of(p, x);
        const AnyProjection copy = p;
        AnyProjection assigned = all_classes()[0];
        assigned = p;
        EXPECT_NE(copy.get(), p.get());
        EXPECT_NE(assigned.get(), p.get());
        EXPECT_EQ(typeid(*copy), typeid(*p));
        EXPECT_EQ(copy->d_in, 12);
        EXPECT_EQ(copy->d_out, 20);
        damage(*p);
        EXPECT_EQ(outputs_of(p, x), zeros);
        EXPECT_TRUE(same_bits(outputs_of(copy, x), y));
        EXPECT_TRUE(same_bits(outputs_of(assigned, x), y));
        AnyProjection& itself = assigned;
        assigned = itself;
        EXPECT_TRUE(same_bits(outputs_of(assigned, x), y));

        // a move takes the object along
        const Projection* object = assigned.get();
        const AnyProjection moved = std::move(assigned);
        EXPECT_EQ(moved.get(), object);
        EXPECT_EQ(&*moved, object);
    }
}

TEST(AnyProjection, TakesAPointer) {
    auto pointer = std::make_unique<DenseProjection>(2, 3);
    const Projection* object = pointer.get();
    const AnyProjection p(std::move(pointer));
    EXPECT_EQ(p.get(), object);
}

TEST(AnyProjection, Files) {
    const std::vector<float> x = normal_vectors(5, 12, 3);
    for (const AnyProjection& p : all_classes()) {
        const std::vector<uint8_t> bytes = bytes_of(p);
        const AnyProjection read = from_bytes(bytes);
        EXPECT_EQ(typeid(*read), typeid(*p));
        EXPECT_TRUE(same_bits(outputs_of(read, x), outputs_of(p, x)));
        EXPECT_EQ(bytes_of(read), bytes);
        for (size_t size = 0; size < bytes.size(); size += 1 + size / 100) {
            EXPECT_FALSE(message_of([&] {
                             faiss::VectorIOReader reader;
                             reader.data.assign(
                                     bytes.begin(), bytes.begin() + size);
                             AnyProjection().read(&reader);
                         }).empty())
                    << size;
        }
    }
    // a class that the file format does not know
    struct Foreign : Projection {
        void multiply(size_t, const float*, float*) const override {}
        std::vector<float> matrix() const override {
            return {};
        }
        std::unique_ptr<Projection> clone() const override {
            return std::make_unique<Foreign>(*this);
        }
        void write(faiss::IOWriter*) const override {}
        void read(faiss::IOReader*) override {}
    };
    const AnyProjection foreign{Foreign()};
    EXPECT_TRUE(contains(
            message_of([&] { bytes_of(foreign); }), "cannot be written"));
}
