#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the library and its tests with clang's sanitizers, and runs them.
#
#   scripts/sanitize.sh [cpp] [python] [coverage] [threads] [-- PYTEST ARGUMENT...]
#
#   cpp       the C++ tests, with AddressSanitizer (including leaks) and
#             UndefinedBehaviorSanitizer
#   python    the Python tests (or those selected by pytest's arguments), with the
#             same sanitizers, but without leak detection
#   coverage  line and branch coverage of src/ by the C++ tests; fails below 95 %
#             of the lines
#   threads   test_concurrency and test_index_concurrent, with ThreadSanitizer
#
# By default all of them run. Builds are in build/checked, build/counted and
# build/threads. For cpp and coverage, the C++ tests are compiled in build/, as
# scripts/test.sh does: only the library is checked and counted.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

least_coverage=95
sets=()
while (($#)) && [[ "$1" != -- ]]; do
    case "$1" in
        cpp | python | coverage | threads) sets+=("$1") ;;
        --help | -h)
            print_usage
            exit
            ;;
        *)
            echo "sanitize.sh: unknown set '$1'; known are cpp, python, coverage, threads" >&2
            exit 2
            ;;
    esac
    shift
done
shift $(($# > 0))
pytest_args=("$@")
((${#pytest_args[@]})) || pytest_args=(tests/python)
((${#sets[@]})) || sets=(cpp python coverage threads)
# programs run side by side, and threads that wait keep a processor busy
export OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
build=build/checked

# check_with CONFIGURE FOLDER: runs the C++ tests with the library that CONFIGURE
# makes in FOLDER.
check_with() {
    configure_release
    "$CMAKE" --build build --parallel "$(build_jobs)" --target tests
    "$1" "$2"
    "$CMAKE" --build "$2" --parallel "$(build_jobs)" --target tests
    run_cpp_tests "$2"
}

run_cpp() {
    check_with configure_checked "$build"
}

run_python() {
    configure_checked "$build"
    "$CMAKE" --build "$build" --parallel "$(build_jobs)" --target faiss_ext_python faiss_ext_python_package
    # Python itself leaks and keeps small objects in pools of its own. One
    # OpenMP for all: clang's knows the calls of GCC's.
    ASAN_OPTIONS="detect_leaks=0" PYTHONMALLOC=malloc \
        LD_PRELOAD="$(sanitizer_runtime):$(clang -print-file-name=libomp.so.5)" \
        PYTHONPATH="$PWD/$build/python" \
        "$PYTHON" -m pytest -q -n "$(build_jobs)" "${pytest_args[@]}"
}

run_coverage() {
    local counted=build/counted profiles="$PWD/build/counted/profiles"
    rm -rf "$profiles"
    mkdir -p "$profiles"
    # Only the loops for the least instruction set are counted: Highway's header
    # includes the source again for each other one, and clang does not count the
    # lines that a system header includes.
    FAISS_EXT_SIMD=EMU128 LLVM_PROFILE_FILE="$profiles/%4m.profraw" \
        check_with configure_counted "$counted"
    llvm-profdata merge -o "$profiles/all.profdata" "$profiles"/*.profraw
    llvm-cov export -summary-only -instr-profile "$profiles/all.profdata" \
        -object "$counted"/libfaiss_ext.so >"$profiles/all.json"
    "$PYTHON" scripts/coverage.py "$profiles/all.json" --least "$least_coverage"
}

run_threads() {
    configure build/threads -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" \
        -DFAISS_EXT_DISABLED_TARGETS="$UNCHECKED_TARGETS" \
        -DFAISS_EXT_SANITIZE=thread -DFAISS_EXT_BUILD_TESTS=ON -DFAISS_EXT_PRECOMPILE=ON
    "$CMAKE" --build build/threads --parallel "$(build_jobs)" --target test_concurrency test_index_concurrent
    # where addresses are random in too many bits, the runtime does not start
    local -a fixed_addresses=(setarch -R)
    "${fixed_addresses[@]}" true 2>/dev/null || fixed_addresses=(env)
    local program
    for program in test_concurrency test_index_concurrent; do
        TSAN_OPTIONS="halt_on_error=1:ignore_noninstrumented_modules=1:suppressions=$PWD/tests/sanitizer/tsan.supp" \
            "${fixed_addresses[@]}" \
            "build/threads/tests/$program" --gtest_brief=1
    done
}

install_deps build test fuzz
find_tools
status=0
for set in "${sets[@]}"; do
    echo "=== $set"
    # not as a condition, which would switch off "set -e" inside
    set +e
    (
        set -e
        "run_$set"
    )
    status=$((status | $?))
    set -e
done
exit "$((status != 0))"
