#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the checks that take too long for each change (about five hours on two cores):
#
#   scripts/nightly.sh [STAGE...]     (default: all of them)
#
#   fuzzing    each fuzzer for half an hour
#   soak       half an hour of adding, removing and searching with two threads, at
#              constant memory; 400 random histories of each index that can change
#   sanitizers all Python tests with AddressSanitizer and
#              UndefinedBehaviorSanitizer; the C++ tests run 95 % of the lines of src/
#   threads    ThreadSanitizer: threads that search and write one index
#   tidy       clang-tidy, for all sources
#   papers     all experiments of the papers and the benchmark of large indexes, with
#              small settings
#   package    pip compiles the package from its source archive; mypy compares its
#              types with what can be called
#   mutants    check that the tests notice each of more than a hundred faults in src/
#   machines   blank Debian 12 and Debian 13 systems (needs root), and the wheel if
#              FAISS_EXT_FAISS_INCLUDE names the folder of FAISS's headers
#   arm64      the inner loops, compiled for arm64, under qemu (needs root)
#
# All stages run, even if an earlier one failed. The last lines show the result of
# each. The exit status is 0 only if all passed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/stages.sh
source scripts/stages.sh

known=(fuzzing soak sanitizers threads tidy papers package mutants machines arm64)
for stage in "$@"; do
    if [[ "$stage" == --help || "$stage" == -h ]]; then
        print_usage
        exit
    fi
    if [[ " ${known[*]} " != *" $stage "* ]]; then
        echo "nightly.sh: unknown stage '$stage', expected ${known[*]}" >&2
        exit 2
    fi
done

stage_fuzzing() {
    ./scripts/fuzz.sh 30
}

stage_soak() {
    build_package
    PYTHONPATH="$PWD/build/python${PYTHONPATH:+:$PYTHONPATH}" \
        "$PYTHON" scripts/soak.py --minutes 30
    FAISS_EXT_EXAMPLES=400 PYTHONPATH="$PWD/build/python${PYTHONPATH:+:$PYTHONPATH}" \
        "$PYTHON" -m pytest -q tests/python/test_state_machines.py
}

stage_sanitizers() {
    # (memory that is given back cannot be measured)
    ./scripts/sanitize.sh python coverage -- -k "not give_their_memory_back" tests/python
}

stage_threads() {
    ./scripts/sanitize.sh threads
}

stage_tidy() {
    ./scripts/tidy.sh
}

stage_papers() {
    build_package
    FAISS_EXT_ALL_EXPERIMENTS=1 PYTHONPATH="$PWD/build/python${PYTHONPATH:+:$PYTHONPATH}" \
        "$PYTHON" -m pytest -q tests/python/test_reproduction.py tests/python/test_large.py
}

stage_package() {
    build_package
    FAISS_EXT_COMPILE_PACKAGE=1 FAISS_EXT_CHECK_STUBS=1 \
        PYTHONPATH="$PWD/build/python${PYTHONPATH:+:$PYTHONPATH}" \
        "$PYTHON" -m pytest -q tests/python/test_packaging.py tests/python/test_api.py
}

stage_mutants() {
    build_package
    "$PYTHON" scripts/mutants.py --python "$PYTHON" --work build/mutants --jobs "$(build_jobs)"
}

stage_machines() {
    local -a wheel=()
    if [[ -n "${FAISS_EXT_FAISS_INCLUDE:-}" ]]; then
        wheel=(wheel --faiss-include "$FAISS_EXT_FAISS_INCLUDE")
    fi
    ./scripts/test_matrix.sh bookworm trixie "${wheel[@]}"
}

stage_arm64() {
    ./scripts/test_arm64.sh
}

build_package() {
    install_deps build test
    find_tools
    configure_release
    "$CMAKE" --build build --parallel "$(build_jobs)"
}

(($#)) || set -- "${known[@]}"
run_stages "$@"
