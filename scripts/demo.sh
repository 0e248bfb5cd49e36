#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs missing dependencies, builds the library and its Python module in
# build/, and runs the demo. All arguments go to scripts/demo.py; --help lists them.
#
#   scripts/demo.sh [--data FOLDER] [--dataset NAME] ...
#
# Environment: as for test.sh.
set -euo pipefail

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The arguments are looked at first: --help and mistakes in them have nothing
# installed or built. Where there is no Python at all, the comment above serves.
if python="$(deps_find_python 'import argparse')"; then
    help="$("$python" -B "$FAISS_EXT_ROOT/scripts/demo_options.py" "$@")"
    if [[ -n "$help" ]]; then
        echo "$help"
        exit
    fi
elif [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
    print_usage
    echo
    echo "Where there is a python3, --help lists the options."
    exit
fi

install_deps build demo
find_tools

# The caller's folder stays the current one: relative paths among the
# arguments are meant from there.
build="$FAISS_EXT_ROOT/build"
options=(-DFAISS_EXT_BUILD_PYTHON=ON -DPython3_EXECUTABLE="$PYTHON")
if [[ -z "$(cache_value "$build" FAISS_EXT_BUILD_TESTS)" ]]; then
    options+=(-DFAISS_EXT_BUILD_TESTS=OFF -DCMAKE_BUILD_TYPE=Release)
fi
configure "$build" "${options[@]}"
# The library for C++, an archive of the same objects, is there for
# "cmake --install build".
"$CMAKE" --build "$build" --target faiss_ext faiss_ext_python --parallel "$(build_jobs)"

PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}" \
    exec "$PYTHON" "$FAISS_EXT_ROOT/scripts/demo.py" "$@"
