#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs missing dependencies, builds everything in build/ and runs all tests, in
# C++ and in Python.
#
#   scripts/test.sh
#
# Environment:
#   FAISS_EXT_CMAKE_ARGS             appended to CMake's arguments
#   PYTHON, FAISS_EXT_SKIP_INSTALL   see install_deps.sh
set -euo pipefail

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if (($# > 0)); then
    if [[ "$1" == --help || "$1" == -h ]]; then
        print_usage
        exit
    fi
    echo "test.sh: takes no arguments; got: $*" >&2
    exit 2
fi

install_deps build test
install_pyright
find_tools

cd "$FAISS_EXT_ROOT"
configure_release
"$CMAKE" --build build --parallel "$(build_jobs)"

run_cpp_tests build
# tests run side by side, and threads of OpenBLAS that wait keep a processor busy
export OPENBLAS_NUM_THREADS=1
# (the packaging test builds by itself, with its own arguments)
PYTHONPATH="$FAISS_EXT_ROOT/build/python${PYTHONPATH:+:$PYTHONPATH}" \
    env -u FAISS_EXT_CMAKE_ARGS "$PYTHON" -m pytest -q -n "$(build_jobs)" tests/python
