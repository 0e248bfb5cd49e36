#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the Debian packages that faiss_ext needs and that are missing, and
# finds the Python and CMake to build with.
#
#   scripts/install_deps.sh [build] [test] [demo] [bench] [ci] [fuzz] [docs] [wheel] [deb] [matrix] [arm64]     (default: build)
#
# Or source it and call:
#
#   install_deps SET...   install missing packages
#   install_pyright       install a type checker from PyPI in build/pyright
#   find_tools            export PYTHON, CMAKE and CTEST
#   find_cmake            export CMAKE and CTEST
#
# Environment:
#   PYTHON                    an interpreter that can import faiss
#   FAISS_EXT_SKIP_INSTALL=1  install nothing and use what is there, for conda
#                             and other distributions

# One line for each package: the set it belongs to, its name, what it is for.
deps_table() {
    cat <<'TABLE'
build g++ C++20 compiler
build cmake build system, 3.22 or newer
build make build tool
build ninja-build build tool
build libfaiss-dev FAISS for C++
build libopenblas-dev fast BLAS and LAPACK, used by FAISS as well
build libeigen3-dev linear algebra
build libhwy-dev SIMD with run-time dispatch
build libxxhash-dev checksums of files
build swig generates the Python module
build python3 Python
build python3-dev Python headers
build python3-faiss FAISS for Python
build python3-numpy arrays in Python
test libgtest-dev GoogleTest
test libvlfeat-dev independent reference for explicit maps
test python3-pytest runs the Python tests
test python3-pytest-xdist runs them in parallel
test python3-hypothesis property tests
test python3-mypy checks the type stubs
test python3-sklearn independent references, digits data set
test python3-scipy independent references
test python3-xxhash reads files as documented
test python3-venv packaging test
test python3-pip packaging test
test python3-matplotlib the demo is tested
test python3-tqdm the demo is tested
test python3-pandas its example is tested
test python3-distributed shards on a Dask cluster
test python3-h5py HDF5 files
test python3-yaml the configuration for ann-benchmarks is tested
demo python3-sklearn digits data set
demo python3-matplotlib figures
demo python3-tqdm progress bars
ci clang-format checks the formatting
ci clang-tidy finds mistakes
ci libomp-dev headers for it
ci libbenchmark-dev benchmarks
fuzz clang the compiler with sanitizers and libFuzzer
fuzz libclang-rt-dev their runtimes
fuzz llvm coverage
fuzz libomp-dev its OpenMP
fuzz libgtest-dev GoogleTest
wheel g++ C++20 compiler
wheel cmake build system, 3.22 or newer
wheel ninja-build build tool
wheel libeigen3-dev linear algebra
wheel libhwy-dev SIMD with run-time dispatch
wheel libxxhash-dev checksums of files
wheel python3-dev Python
wheel python3-venv environments of their own
wheel python3-pip packages of the environments
deb build-essential builds Debian packages
deb debhelper builds Debian packages
deb dh-python its part for Python
deb lintian checks them
matrix debootstrap minimal systems
arm64 g++-aarch64-linux-gnu compiler for arm64
arm64 qemu-user runs its programs
docs doxygen reference of the headers
docs python3-nbclient the notebook of the tutorial
docs python3-ipykernel the notebook of the tutorial
docs python3-venv the site
docs python3-pip the site
bench libbenchmark-dev benchmarks
bench libflann-dev a peer of the exact kernels
bench liblz4-dev needed by FLANN
bench python3-matplotlib figures
bench python3-venv the newest FAISS, for comparison
bench python3-pip the newest FAISS, for comparison
TABLE
}

deps_is_installed() {
    # shellcheck disable=SC2016 # a dpkg-query format, not a shell variable
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

install_deps() {
    local sets=" $* " name set package purpose
    local -a missing=()
    for name in "$@"; do
        if ! deps_table | grep -q "^$name "; then
            echo "install_deps: no such set: $name (build, test, demo, bench, ci, fuzz, docs, wheel, deb, matrix, arm64)" >&2
            return 2
        fi
    done
    if [[ "${FAISS_EXT_SKIP_INSTALL:-0}" == 1 ]]; then
        return 0
    fi
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "install_deps: this is not a Debian system. Install the" \
            "counterparts of these packages, then set" \
            "FAISS_EXT_SKIP_INSTALL=1:" >&2
        while read -r set package purpose; do
            [[ "$sets" != *" $set "* ]] || echo "  $package: $purpose" >&2
        done < <(deps_table)
        return 1
    fi

    while read -r set package purpose; do
        if [[ "$sets" != *" $set "* || " ${missing[*]-} " == *" $package "* ]] ||
            deps_is_installed "$package"; then
            continue
        fi
        if ((${#missing[@]} == 0)); then
            echo "Missing Debian packages:"
        fi
        echo "  $package: $purpose"
        missing+=("$package")
    done < <(deps_table)
    if ((${#missing[@]} == 0)); then
        return 0
    fi

    local -a as_root=()
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "install_deps: neither root nor sudo. Run as root:" >&2
            echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    local -a apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
        apt-get -q -o DPkg::Lock::Timeout=300
        -o DPkg::Options::=--force-confold) # asks nothing about changed settings
    echo "Installing: ${missing[*]}"
    # An index that cannot be refreshed may still do.
    "${apt[@]}" update </dev/null ||
        echo "install_deps: apt-get update failed, trying without" >&2
    if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null; then
        echo "install_deps: could not install: ${missing[*]}" >&2
        return 1
    fi
}

# deps_find_python CODE: prints the absolute path of the first interpreter that
# can run CODE: the one named in PYTHON, Debian's, the one on PATH.
deps_find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} /usr/bin/python3 python3; do
        if (cd / && "$candidate" -c "$1; import sys; print(sys.executable)") 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

# is_at_least LEAST VERSION
is_at_least() {
    printf '%s\n' "$1" "$2" | sort -V -C
}

# True if $1 is a CMake of version 3.22 or newer. (A wrapper on PATH may exist
# and still not run.)
deps_is_good_cmake() {
    local version
    version="$("$1" --version 2>/dev/null | sed -n 's/^cmake version //p')" || return 1
    [[ -n "$version" ]] && is_at_least 3.22 "$version"
}

find_tools() {
    local found
    if ! found="$(deps_find_python 'import faiss; faiss.IndexFlatL2')"; then
        echo "find_tools: no Python that can import faiss. Tried:" \
            ${PYTHON:+"$PYTHON,"} "/usr/bin/python3, python3 on PATH." \
            "Name one in the variable PYTHON." >&2
        return 1
    fi
    export PYTHON="$found"
    find_cmake
}

find_cmake() {
    if deps_is_good_cmake cmake && ctest --version >/dev/null 2>&1; then
        export CMAKE=cmake CTEST=ctest
    elif deps_is_good_cmake /usr/bin/cmake; then
        export CMAKE=/usr/bin/cmake CTEST=/usr/bin/ctest
    else
        echo "find_tools: CMake 3.22 or newer is needed" >&2
        return 1
    fi
}

# Installs a checker of types from PyPI, by which tests/python/typed_use.py is
# checked, into build/pyright. Without it that test is skipped.
install_pyright() {
    local folder package=basedpyright==1.40.2
    folder="$(dirname "${BASH_SOURCE[0]}")/../build/pyright"
    if [[ "${FAISS_EXT_SKIP_INSTALL:-0}" == 1 || -x "$folder/bin/basedpyright" ]]; then
        return 0
    fi
    if ! /usr/bin/python3 -m venv --clear "$folder" ||
        ! "$folder/bin/pip" --disable-pip-version-check -q install "$package"; then
        echo "install_deps: could not install $package: types are not checked with it" >&2
    fi
}

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
    set -euo pipefail
    install_deps "${@:-build}"
    if [[ " ${*:-build} " == *" build "* ]]; then
        find_tools
        echo "Python: $PYTHON"
    else
        find_cmake
    fi
    if [[ " $* " == *" test "* ]]; then
        install_pyright
    fi
    echo "CMake:  $(command -v "$CMAKE")"
fi
