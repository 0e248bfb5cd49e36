# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# How to compile for arm64 on a Debian system of another architecture, and to run
# the results under qemu-user. Source this file after common.sh. Needs root.
#
#   ARM64_ROOT           folder below build/ that Debian's arm64 packages are unpacked into
#   unpack_arm64 NAME... unpacks packages that are not there yet
#   ARM64_CMAKE          arguments that let CMake compile for that folder
#   ARM64_EMULATOR       command in front of a program
#   ARM64_PYTHON         packages of Debian's Python
#   install_arm64_wheels FOLDER WHEEL...     installs wheels for that Python with pip
#   arm64_python FOLDER ARGUMENT...          runs that Python with the wheels of FOLDER
#
# The only change to the system is to the list of architectures that apt knows.

# shellcheck disable=SC2034 # for scripts that source this one
ARM64_ROOT="$FAISS_EXT_ROOT/build/arm64/root"
ARM64_LIBRARIES="$ARM64_ROOT/usr/lib/aarch64-linux-gnu"
ARM64_EMULATOR=(qemu-aarch64 -L /usr/aarch64-linux-gnu
    -E "LD_LIBRARY_PATH=$ARM64_LIBRARIES:$ARM64_LIBRARIES/openblas-pthread:$ARM64_ROOT/lib/aarch64-linux-gnu")
ARM64_CMAKE=(
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
    -DCMAKE_FIND_ROOT_PATH="$ARM64_ROOT" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER
    -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
    -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu
    -DCMAKE_CROSSCOMPILING_EMULATOR="$(IFS=';' && echo "${ARM64_EMULATOR[*]}")"
)
ARM64_PYTHON=(python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
    zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1 libcrypt1 libsqlite3-0)

unpack_arm64() {
    local -a missing=()
    local name packages="$ARM64_ROOT/../packages"
    mkdir -p "$packages" "$ARM64_ROOT"
    for name in "$@"; do
        compgen -G "$packages/$name"'_*.deb' >/dev/null || missing+=("$name")
    done
    ((${#missing[@]})) || return 0
    if ! dpkg --print-foreign-architectures | grep -qx arm64; then
        dpkg --add-architecture arm64
        apt-get update -qq
    fi
    (cd "$packages" && apt-get -o APT::Architecture=arm64 download -qq "${missing[@]}")
    for name in "$packages"/*.deb; do
        dpkg-deb -x "$name" "$ARM64_ROOT"
    done
}

install_arm64_wheels() {
    local version
    local -a platforms=()
    for version in {17..28}; do
        platforms+=(--platform "manylinux_2_${version}_aarch64")
    done
    python3 -m pip --disable-pip-version-check -q install --upgrade --target "$1" "${platforms[@]}" \
        --implementation cp --python-version 3.11 --only-binary=:all: "${@:2}"
}

arm64_python() {
    PYTHONPATH="$1" PYTHONHOME="$ARM64_ROOT/usr" \
        "${ARM64_EMULATOR[@]}" "$ARM64_ROOT/usr/bin/python3.11" "${@:2}"
}
