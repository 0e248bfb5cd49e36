#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles the library for arm64 and runs test programs under qemu-user, on a
# Debian system of another architecture. Needs root.
#
#   scripts/test_arm64.sh [PROGRAM...]     (default: test_simd test_kernels test_frame)
#
# build_wheel.sh --arm64 makes and tests a wheel for arm64.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

if [[ "${1:-}" == --help || "${1:-}" == -h ]]; then
    print_usage
    exit
fi
programs=("$@")
((${#programs[@]})) || programs=(test_simd test_kernels test_frame)

install_deps build arm64
# shellcheck source=scripts/arm64.sh
source scripts/arm64.sh
find_tools
unpack_arm64 libfaiss-dev libopenblas0-pthread libopenblas-pthread-dev libgfortran5 \
    libhwy-dev libhwy1 libgtest-dev libxxhash-dev libeigen3-dev
blas="$ARM64_LIBRARIES/openblas-pthread"
# (FAISS's package names BLAS and LAPACK by their places in the system)
sed -i "s#/usr/lib/aarch64-linux-gnu/lib\(blas\|lapack\)\.so#$blas/libopenblas.so#g" \
    "$ARM64_LIBRARIES"/cmake/faiss/*.cmake

build="$PWD/build/arm64/library"
configure "$build" -DCMAKE_BUILD_TYPE=Release "${ARM64_CMAKE[@]}" \
    -DCMAKE_CXX_FLAGS="-isystem $ARM64_ROOT/usr/include -L$ARM64_LIBRARIES -L$blas" \
    -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$ARM64_LIBRARIES:$blas" \
    -DBLAS_LIBRARIES="$blas/libopenblas.so" -DLAPACK_LIBRARIES="$blas/libopenblas.so" \
    -DFAISS_EXT_BUILD_TESTS=ON -DFAISS_EXT_BUILD_PYTHON=OFF
"$CMAKE" --build "$build" --parallel "$(build_jobs)" --target "${programs[@]}"
status=0
for program in "${programs[@]}"; do
    echo "=== $program"
    OMP_NUM_THREADS=2 "${ARM64_EMULATOR[@]}" "$build/tests/$program" --gtest_brief=1 || status=1
done
exit "$status"
