#include "eigen_symmetric.h"

#include <faiss/impl/FaissAssert.h>

extern "C" int dsyevd_(
        const char* jobz,
        const char* uplo,
        const int* n,
        double* a,
        const int* lda,
        double* w,
        double* work,
        const int* lwork,
        int* iwork,
        const int* liwork,
        int* info);

namespace faiss_ext {

void eigen_symmetric(
        size_t n,
        std::vector<double>& a,
        std::vector<double>& values) {
    values.resize(n);
    const int order = int(n);
    int info = 0, lwork = -1, liwork = -1, iwork_size = 0;
    double work_size = 0;
    dsyevd_("V",
            "L",
            &order,
            a.data(),
            &order,
            values.data(),
            &work_size,
            &lwork,
            &iwork_size,
            &liwork,
            &info);
    lwork = int(work_size);
    liwork = iwork_size;
    std::vector<double> work(lwork);
    std::vector<int> iwork(liwork);
    dsyevd_("V",
            "L",
            &order,
            a.data(),
            &order,
            values.data(),
            work.data(),
            &lwork,
            iwork.data(),
            &liwork,
            &info);
    FAISS_THROW_IF_NOT_FMT(
            info == 0, "the eigenvalue computation failed (info = %d)", info);
}

} // namespace faiss_ext
