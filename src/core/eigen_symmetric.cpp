// SPDX-License-Identifier: MIT
#include "core/eigen_symmetric.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/errors.h"
#include "core/one_blas_thread.h"
#include "core/parallel.h"
#include "core/progress.h"

extern "C" {

int dlatrd_(
        const char* uplo,
        const int* n,
        const int* nb,
        double* a,
        const int* lda,
        double* e,
        double* tau,
        double* w,
        const int* ldw);

int dsyr2k_(
        const char* uplo,
        const char* trans,
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

int dsytd2_(
        const char* uplo,
        const int* n,
        double* a,
        const int* lda,
        double* d,
        double* e,
        double* tau,
        int* info);

int dstedc_(
        const char* compz,
        const int* n,
        double* d,
        double* e,
        double* z,
        const int* ldz,
        double* work,
        const int* lwork,
        int* iwork,
        const int* liwork,
        int* info);

int dormtr_(
        const char* side,
        const char* uplo,
        const char* trans,
        const int* m,
        const int* n,
        const double* a,
        const int* lda,
        const double* tau,
        double* c,
        const int* ldc,
        double* work,
        const int* lwork,
        int* info);
}

namespace faiss_ext {

namespace {

/// Reports progress, and prints it at most every few seconds.
struct Stages {
    using Clock = std::chrono::steady_clock;
    bool verbose;
    Progress progress;
    Clock::time_point next = Clock::now() + std::chrono::seconds(3);
    size_t num_before = 0;

    Stages(bool verbose, size_t n)
            : verbose(verbose), progress("eigenvectors", 3 * n) {}

    void report(const char* stage, size_t done, size_t all) {
        check_interrupt();
        progress.at(num_before + done);
        if (verbose && Clock::now() >= next) {
            next = Clock::now() + std::chrono::seconds(3);
            printf("eigenvectors of order %zu: %s, %zu %%\n",
                   all,
                   stage,
                   100 * done / all);
            fflush(stdout);
        }
    }
};

void check_info(int info) {
    FAISS_EXT_THROW_IF_NOT_FMT(
            info == 0, "the eigenvalue computation failed (info = %d)", info);
}

} // namespace

void eigen_symmetric(
        size_t n,
        std::vector<double>& a,
        std::vector<double>& values,
        bool verbose) {
    FAISS_EXT_THROW_IF_NOT_MSG(
            n > 0 && a.size() == n * n, "the matrix is not square");
    const OneBlasThread one_thread;
    Stages stages(verbose, n);
    const int order = int(n);
    const auto at = [n](std::vector<double>& m, size_t i, size_t j) {
        return m.data() + i + j * n; // LAPACK's order; a is symmetric
    };
    std::vector<double>& d = values;
    // dsymv of some versions of OpenBLAS reads up to three numbers past tau
    constexpr size_t padding = 3;
    std::vector<double> e(n), tau(n + padding);
    d.resize(n);

    // Works like dsytrd: panels of columns, each followed by an update of the
    // part to the right, and an unblocked rest. dsyevd takes as long in all,
    // but its dsytrd is one call of 40 seconds at n = 8192, which could not be
    // interrupted. Eigen's solver takes 8 times as long at n = 2000.
    constexpr size_t panel = 64;
    size_t i = 0;
    {
        std::vector<double> w(n * panel);
        for (; i + 2 * panel < n; i += panel) {
            stages.report("tridiagonal form", i, n);
            const int m = int(n - i), nb = panel, rest = m - nb;
            dlatrd_("L",
                    &m,
                    &nb,
                    at(a, i, i),
                    &order,
                    &e[i],
                    &tau[i],
                    w.data(),
                    &order);
            const double minus_one = -1, one = 1;
            dsyr2k_("L",
                    "N",
                    &rest,
                    &nb,
                    &minus_one,
                    at(a, i + panel, i),
                    &order,
                    &w[panel],
                    &order,
                    &one,
                    at(a, i + panel, i + panel),
                    &order);
            for (size_t j = i; j < i + panel; j++) {
                *at(a, j + 1, j) = e[j];
                d[j] = *at(a, j, j);
            }
        }
    }
    int info = 0;
    const int rest = int(n - i);
    dsytd2_("L", &rest, at(a, i, i), &order, &d[i], &e[i], &tau[i], &info);
    check_info(info);

    stages.num_before = n;
    stages.report("divide and conquer", 0, n);
    std::vector<double> z(n * n);
    {
        std::vector<double> work(1 + 4 * n + n * n);
        std::vector<int> iwork(3 + 5 * n);
        const int lwork = int(work.size()), liwork = int(iwork.size());
        dstedc_("I",
                &order,
                d.data(),
                e.data(),
                z.data(),
                &order,
                work.data(),
                &lwork,
                iwork.data(),
                &liwork,
                &info);
        check_info(info);
    }

    constexpr size_t columns = 512;
    std::vector<double> work(columns * 64);
    const int lwork = int(work.size());
    stages.num_before = 2 * n;
    for (size_t j = 0; j < n; j += columns) {
        stages.report("back transformation", j, n);
        const int nj = int(std::min(columns, n - j));
        dormtr_("L",
                "L",
                "N",
                &order,
                &nj,
                a.data(),
                &order,
                tau.data(),
                at(z, 0, j),
                &order,
                work.data(),
                &lwork,
                &info);
        check_info(info);
    }
    stages.progress.at(3 * n);
    a.swap(z);
}

} // namespace faiss_ext
