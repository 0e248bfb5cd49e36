// SPDX-License-Identifier: MIT
#include "indexes/row_codec.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <limits>

#include <Eigen/Core>

#include "core/errors.h"
#include "core/parallel.h"
#include "simd/rows.h"

namespace faiss_ext {

namespace {

using Store = IndexFlatKernel::Store;

/// The factor of a vector comes before its components.
constexpr size_t header = sizeof(float);

float largest_component(size_t d, const float* x) {
    float largest = 0;
    for (size_t k = 0; k < d; k++) {
        largest = std::max(largest, std::abs(x[k]));
    }
    return largest;
}

/** Returns a step of which all components are multiples from 0 to 255, up to
 * the rounding of a float. If there is none, returns largest / 255.
 *
 * It tries steps that are 1, 1/2, 1/3, ... of the smallest nonzero component.
 */
float byte_step(size_t d, const float* x, float largest) {
    float smallest = largest;
    for (size_t k = 0; k < d; k++) {
        if (x[k] > 0) {
            smallest = std::min(smallest, x[k]);
        }
    }
    for (int steps = 1; steps <= 255; steps++) {
        const double step = double(smallest) / steps;
        if (largest / step > 255.5) {
            break;
        }
        double products = 0, squares = 0;
        const bool fits = std::all_of(x, x + d, [&](double v) {
            const double whole = std::round(v / step);
            products += v * whole;
            squares += whole * whole;
            return std::abs(v / step - whole) < 1e-3;
        });
        if (fits) {
            return float(products / squares);
        }
    }
    return largest / 255;
}

void encode_halves(size_t d, const float* x, uint8_t* bytes) {
    const float largest = largest_component(d, x);
    // a power of two, so that only the last bit of the halves is lost
    const float factor =
            largest > 0 ? std::ldexp(1.0f, std::ilogb(largest)) : 0;
    std::memcpy(bytes, &factor, header);
    // with the largest factor, a half that rounds to 2 would overflow
    constexpr float max = std::numeric_limits<float>::max();
    const float most = factor > max / 2 ? 0x1.ffcp0f : 2;
    for (size_t k = 0; k < d; k++) {
        const float ratio = factor > 0 ? x[k] / factor : 0;
        const Eigen::half half(std::clamp(ratio, -most, most));
        std::memcpy(bytes + header + 2 * k, &half, 2);
    }
}

void encode_bytes(size_t d, const float* x, uint8_t* bytes) {
    const float largest = largest_component(d, x);
    float step = largest > 0 ? byte_step(d, x, largest) : 0;
    if (std::round(double(largest) / step) > 255) { // a rounded-down denormal
        step = std::nextafter(step, largest);
    }
    std::memcpy(bytes, &step, header);
    for (size_t k = 0; k < d; k++) {
        const double whole = step > 0 ? std::round(double(x[k]) / step) : 0;
        bytes[header + k] = uint8_t(std::min(whole, 255.0));
    }
}

void encode_signed_bytes(size_t d, const float* x, uint8_t* bytes) {
    constexpr float most = 127;
    const float step = largest_component(d, x) / most;
    std::memcpy(bytes, &step, header);
    for (size_t k = 0; k < d; k++) {
        const float whole = step > 0 ? std::round(x[k] / step) : 0;
        bytes[header + k] = uint8_t(int8_t(std::clamp(whole, -most, most)));
    }
}

/// The function that encodes a vector in a format with a factor.
auto encoder_of(Store store) {
    switch (store) {
        case Store::f16:
            return encode_halves;
        case Store::u8:
            return encode_bytes;
        default:
            return encode_signed_bytes;
    }
}

} // namespace

size_t RowCodec::code_size() const {
    const size_t factor = has_factors ? header : 0;
    switch (store) {
        case Store::f16:
            return factor + 2 * d;
        case Store::u8:
        case Store::i8:
            return factor + d;
        default:
            return 4 * d;
    }
}

void RowCodec::encode(
        idx_t n,
        const float* x,
        uint8_t* bytes,
        const char* where) const {
    if (store == Store::f32) {
        std::copy_n(reinterpret_cast<const uint8_t*>(x), n * 4 * d, bytes);
        return;
    }
    for (idx_t i = 0; store == Store::u8 && i < n * idx_t(d); i++) {
        FAISS_EXT_THROW_VECTOR_IF_NOT(
                x[i] >= 0,
                i / idx_t(d),
                format_message(
                        "%s: component %" PRId64 " of ", where, int64_t(i % d)),
                format_message(" is %g; store=u8 takes components >= 0", x[i]));
    }
    parallel_blocks(n, 256, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; i++) {
            encoder_of(store)(d, x + i * d, bytes + i * code_size());
        }
    });
}

void RowCodec::decode(size_t n, const uint8_t* bytes, size_t stride, float* x)
        const {
    for (size_t i = 0; i < n; i++) {
        const uint8_t* row = bytes + i * stride;
        if (store == Store::f32) {
            std::memcpy(x + i * d, row, 4 * d);
            continue;
        }
        float factor = 1;
        if (has_factors) {
            std::memcpy(&factor, row, header);
            row += header;
        }
        if (store == Store::f16) {
            simd::halves_to_floats(
                    d,
                    reinterpret_cast<const uint16_t*>(row),
                    factor,
                    x + i * d);
        } else if (store == Store::u8) {
            simd::bytes_to_floats(d, row, factor, x + i * d);
        } else {
            simd::bytes_to_floats(
                    d, reinterpret_cast<const int8_t*>(row), factor, x + i * d);
        }
    }
}

StoredRows StoredRows::of(const IndexFlatKernel& index, const char* where) {
    const IndexFlatKernel::Rows rows = index.rows(where);
    return {{index.store, size_t(index.d), rows.has_factors},
            rows.data,
            rows.sequential,
            rows.stride};
}

} // namespace faiss_ext
