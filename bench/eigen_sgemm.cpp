// SPDX-License-Identifier: MIT
// Compiled for this machine; the other name keeps these instances of Eigen's
// templates apart from those of the library, which are compiled for any.
#define Eigen EigenOfThisMachine

#include "eigen_sgemm.h"

#include <Eigen/Core>

namespace faiss_ext::bench {

void eigen_sgemm(
        size_t n,
        size_t m,
        size_t d,
        const float* a,
        const float* b,
        float* c) {
    using Rows = Eigen::
            Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::Map<Rows>(c, n, m).noalias() = Eigen::Map<const Rows>(a, n, d) *
            Eigen::Map<const Rows>(b, m, d).transpose();
}

} // namespace faiss_ext::bench
