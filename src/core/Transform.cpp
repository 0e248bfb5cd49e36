// SPDX-License-Identifier: MIT
#include <faiss_ext/core/Transform.h>

#include <algorithm>
#include <typeinfo>
#include <vector>

#include <faiss/impl/io.h>

#include "core/check.h"
#include "core/errors.h"
#include "core/field_files.h"
#include "core/parallel.h"
#include "core/scratch.h"
#include "core/sparse_input.h"

namespace faiss_ext {

void Transform::reverse_transform(idx_t, const float*, float*) const {
    throw_unsupported(
            type_name(typeid(*this)),
            "reverse_transform",
            "keep the vectors outside of the index");
}

template <class F>
void Transform::train_by(F&& learn) {
    check_fields(*this);
    const std::unique_ptr<Transform> before = copy_transform();
    try {
        learn();
        is_trained = true;
    } catch (...) {
        assign_transform(*before);
        throw;
    }
}

void Transform::train(idx_t n, const float* x) {
    check_input(n, x, "train");
    if (!is_trained) {
        train_by([&] { learn(n, x); });
    }
}

void Transform::train_sparse(const SparseVectors& x) {
    check_input(0, nullptr, "train");
    const CanonicalVectors canonical(x, "train");
    check_sparse_input(canonical, "train");
    if (is_trained) {
        return;
    }
    train_by([&] {
        if (learn_sparse(canonical.get())) {
            return;
        }
        const std::vector<float> sample = dense_sample(canonical.get());
        const idx_t n = idx_t(sample.size()) / d_in;
        check_input(n, sample.data(), "train");
        learn(n, sample.data());
    });
}

void Transform::learn(idx_t, const float*) {}

bool Transform::learn_sparse(const SparseVectors&) {
    return false;
}

void Transform::check_input(idx_t n, const float* x, const char* where) const {
    check_vectors(n, x, d_in, where);
}

void Transform::check_vectors(
        idx_t n,
        const float* x,
        size_t d,
        const char* where) const {
    check_finite(n, x, d, where);
}

void Transform::check_sparse_input(const CanonicalVectors& x, const char* where)
        const {
    check_dimension(x.get(), d_in, where);
    check_components(x.get(), where);
}

void Transform::check_components(const SparseVectors& x, const char* where)
        const {
    for_components(x, [&](size_t size, const float* values) {
        check_vectors(1, values, size, where);
    });
}

void Transform::check_ready(idx_t n, const float* x, const char* where) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            is_trained,
            "%s: %s is not trained; call train first",
            where,
            description().c_str());
    check_input(n, x, where);
}

void Transform::apply_noalloc(idx_t n, const float* x, float* xt) const {
    check_ready(n, x, "apply");
    parallel_blocks(
            "mapping", n, rows_per_block(n), [&](idx_t begin, idx_t end) {
                map(end - begin, x + begin * d_in, xt + begin * d_out);
            });
}

void Transform::check_ready(const CanonicalVectors& x, const char* where)
        const {
    check_ready(0, nullptr, where);
    check_sparse_input(x, where);
}

void Transform::map_sparse(const SparseVectors& x, float* xt) const {
    const Scratch dense(d_in);
    for (idx_t i = 0; i < x.n; i++) {
        x.copy_dense(i, dense.get());
        map(1, dense.get(), xt + i * d_out);
    }
}

void Transform::apply_sparse(const SparseVectors& x, float* xt) const {
    const CanonicalVectors canonical(x, "apply");
    check_ready(canonical, "apply");
    parallel_blocks(
            "mapping", x.n, rows_per_block(x.n), [&](idx_t begin, idx_t end) {
                map_sparse(canonical->slice(begin, end), xt + begin * d_out);
            });
}

idx_t Transform::rows_to_multiply(idx_t n, size_t floats, size_t size) {
    const idx_t threads = omp_get_max_threads();
    // tiles of a projection have 6 vectors
    const idx_t share = (n / threads + 5) / 6 * 6;
    const idx_t most =
            std::clamp<idx_t>(size / std::max<size_t>(floats, 1), 1, 192);
    return std::clamp<idx_t>(share, 1, most);
}

void Transform::check_identical(const faiss::VectorTransform& other) const {
    FAISS_EXT_THROW_IF_NOT_FMT(
            typeid(*this) == typeid(other),
            "the transformations are of different classes: %s and %s",
            type_name(typeid(*this)).c_str(),
            type_name(typeid(other)).c_str());
    const auto& same = dynamic_cast<const Transform&>(other);
    faiss::VectorIOWriter mine, theirs;
    write_fields(*this, &mine);
    write_fields(same, &theirs);
    FAISS_EXT_THROW_IF_NOT_FMT(
            d_in == same.d_in && d_out == same.d_out &&
                    is_trained == same.is_trained && mine.data == theirs.data,
            "the transformations differ in parameters, seeds or training: %s and %s",
            description().c_str(),
            same.description().c_str());
}

void Transform::set_dimensions(int d_in, int d_out) {
    this->d_in = d_in;
    this->d_out = d_out;
}

} // namespace faiss_ext
