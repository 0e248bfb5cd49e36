// SPDX-License-Identifier: MIT
#include "core/nearest_orthogonal.h"

#include "core/errors.h"
#include "core/one_blas_thread.h"

extern "C" {

int dgesdd_(
        const char* jobz,
        const int* m,
        const int* n,
        double* a,
        const int* lda,
        double* s,
        double* u,
        const int* ldu,
        double* vt,
        const int* ldvt,
        double* work,
        const int* lwork,
        int* iwork,
        int* info);

int dgemm_(
        const char* transa,
        const char* transb,
        const int* m,
        const int* n,
        const int* k,
        const double* alpha,
        const double* a,
        const int* lda,
        const double* b,
        const int* ldb,
        const double* beta,
        double* c,
        const int* ldc);
}

namespace faiss_ext {

void nearest_orthogonal(size_t n, std::vector<double>& a) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            n > 0 && a.size() == n * n, "the matrix is not square");
    const OneBlasThread one_thread;
    // LAPACK reads a by columns, so its input and its results are transposed
    const int order = int(n);
    std::vector<double> values(n), u(n * n), vt(n * n);
    std::vector<int> iwork(8 * n);
    std::vector<double> work(1);
    int lwork = -1, info = 0;
    const auto decompose = [&] {
        dgesdd_("A",
                &order,
                &order,
                a.data(),
                &order,
                values.data(),
                u.data(),
                &order,
                vt.data(),
                &order,
                work.data(),
                &lwork,
                iwork.data(),
                &info);
        FAISS_EXT_THROW_IF_NOT_FMT(
                info == 0,
                "the singular value decomposition failed (info = %d)",
                info);
    };
    decompose(); // queries the size of the work space
    lwork = int(work[0]);
    work.resize(lwork);
    decompose();
    const double one = 1, zero = 0;
    dgemm_("N",
           "N",
           &order,
           &order,
           &order,
           &one,
           u.data(),
           &order,
           vt.data(),
           &order,
           &zero,
           a.data(),
           &order);
}

} // namespace faiss_ext
