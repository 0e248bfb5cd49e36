#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles the library for arm64 and runs test programs under qemu-user, on a
# Debian system of another architecture. Needs root.
#
#   scripts/test_arm64.sh [PROGRAM...]     (default: test_simd test_kernels test_frame)
#
# Debian's arm64 packages are unpacked into build/arm64/root. The only change to
# the system is to the list of architectures that apt knows.
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
find_tools
build="$PWD/build/arm64"
root="$build/root"
libraries="$root/usr/lib/aarch64-linux-gnu"
if [[ ! -e "$root/complete" ]]; then
    dpkg --add-architecture arm64
    apt-get update -qq
    mkdir -p "$build/packages" "$root"
    (cd "$build/packages" && apt-get download -qq \
        libfaiss-dev:arm64 libopenblas0-pthread:arm64 libopenblas-pthread-dev:arm64 \
        libgfortran5:arm64 libhwy-dev:arm64 libhwy1:arm64 libgtest-dev:arm64 \
        libxxhash-dev:arm64 libeigen3-dev)
    for package in "$build"/packages/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    # (FAISS's package names BLAS and LAPACK by their places in the system)
    sed -i "s#/usr/lib/aarch64-linux-gnu/lib\(blas\|lapack\)\.so#$libraries/openblas-pthread/libopenblas.so#g" \
        "$libraries"/cmake/faiss/*.cmake
    touch "$root/complete"
fi

emulator="qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=$libraries:$libraries/openblas-pthread"
configure "$build/library" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
    -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
    -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
    -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
    -DCMAKE_CXX_FLAGS="-isystem $root/usr/include -L$libraries -L$libraries/openblas-pthread" \
    -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libraries:$libraries/openblas-pthread" \
    -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator" \
    -DBLAS_LIBRARIES="$libraries/openblas-pthread/libopenblas.so" \
    -DLAPACK_LIBRARIES="$libraries/openblas-pthread/libopenblas.so" \
    -DFAISS_EXT_BUILD_TESTS=ON -DFAISS_EXT_BUILD_PYTHON=OFF
"$CMAKE" --build "$build/library" --parallel "$(build_jobs)" --target "${programs[@]}"
status=0
for program in "${programs[@]}"; do
    echo "=== $program"
    IFS=';' read -r -a command <<<"$emulator"
    OMP_NUM_THREADS=2 "${command[@]}" "$build/library/tests/$program" --gtest_brief=1 || status=1
done
exit "$status"
