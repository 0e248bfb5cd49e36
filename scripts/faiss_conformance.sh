#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs FAISS's own Python tests with classes of faiss_ext in place of FAISS's
# (listed in tests/conformance/faiss_with_ours.py).
#
#   scripts/faiss_conformance.sh [--installed] SOURCE
#   scripts/faiss_conformance.sh --import SOURCE [FILE...]
#
# SOURCE is a source tree of the FAISS version that faiss_ext is built with.
# tests/conformance/differences.txt lists the expected differences, with their
# reasons. differences-1.15.txt lists those that came with FAISS 1.15.
#
#   --installed   builds nothing: PYTHON must name an interpreter with faiss_ext and
#                 pytest, for example one with faiss-cpu and the wheel of
#                 build_wheel.sh. Its FAISS must have the version of SOURCE
#   --import      also builds nothing. Runs FAISS's Python tests, or the given files,
#                 unchanged, with and without `import faiss_ext`, and fails if
#                 outcomes differ
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

if [[ "${1-}" == --import ]] && (($# > 1)); then
    exec "${PYTHON:-python3}" tests/conformance/same_outcomes.py "$2/tests" "${@:3}"
fi
installed=0
if [[ "${1-}" == --installed ]]; then
    installed=1
    shift
fi
if (($# != 1)) || [[ "$1" == --help || "$1" == -h ]]; then
    print_usage
    exit $(($# != 1))
fi
tests="$1/tests"
if [[ ! -r "$tests/test_index.py" ]]; then
    echo "there is no $tests/test_index.py: $1 is no source tree of FAISS" >&2
    exit 1
fi

conformance="$PWD/tests/conformance"
export PYTHONPATH="$conformance${PYTHONPATH:+:$PYTHONPATH}"
if ((!installed)); then
    install_deps build test
    find_tools
    configure build -DFAISS_EXT_BUILD_PYTHON=ON -DPython3_EXECUTABLE="$PYTHON"
    "$CMAKE" --build build --parallel "$(build_jobs)" --target faiss_ext_python
    PYTHONPATH="$PWD/build/python:$PYTHONPATH"
fi

files=()
for name in binary_factory binary_hashindex binary_io factory index index_binary \
    index_composite io merge_index meta_index referenced_objects refine search_params; do
    [[ ! -e "$tests/test_$name.py" ]] || files+=("test_$name.py")
done
differences=("$conformance/differences.txt")
if is_at_least 1.15.0 "$(cd / && "${PYTHON:-python3}" -c 'import faiss; print(faiss.__version__)')"; then
    differences+=("$conformance/differences-1.15.txt")
fi
cd "$tests"
"${PYTHON:-python3}" -m pytest -q --rootdir . -p no:cacheprovider -p no:warnings -p faiss_with_ours \
    "${differences[@]/#/--differences=}" "${files[@]}"
