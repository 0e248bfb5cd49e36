# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Functions shared by test.sh, demo.sh and the checks in .ci. Source this file.

FAISS_EXT_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"

# shellcheck source=scripts/install_deps.sh
source "$FAISS_EXT_ROOT/scripts/install_deps.sh"

# Prints the comment at the top of the running script.
print_usage() {
    sed -n '3,/^[^#]/ s/^# \{0,1\}//p' "$0"
}

# Prints how many compilers to run at once: one for each core, as long as
# there are about 2 GB of memory for each.
build_jobs() {
    local cores limit jobs
    cores="$(nproc)"
    jobs="$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo)"
    limit="$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)"
    if [[ "$limit" =~ ^[0-9]+$ ]] && ((limit / 2147483648 < jobs)); then
        jobs=$((limit / 2147483648))
    fi
    ((jobs < cores)) || jobs=$cores
    ((jobs >= 1)) || jobs=1
    echo "$jobs"
}

# header_version FOLDER: prints the version of the FAISS headers in FOLDER.
header_version() {
    sed -n 's/^#define FAISS_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$1/faiss/Index.h" | paste -sd.
}

# cache_value FOLDER NAME: prints a value of the CMake cache in FOLDER.
cache_value() {
    sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2>/dev/null || true
}

forget_cache() {
    rm -rf "$1/CMakeCache.txt" "$1/CMakeFiles"
}

# configure FOLDER ARGUMENT...: runs CMake in the build folder FOLDER. A cache
# that was made from other sources or in another place is dropped, and so is
# one that no longer works; a generator chosen earlier is kept.
# FAISS_EXT_CMAKE_ARGS is appended.
configure() {
    local build="$1" home place
    shift
    local -a extra=()
    read -r -a extra <<<"${FAISS_EXT_CMAKE_ARGS:-}" || true
    local -a command=("$CMAKE" -S "$FAISS_EXT_ROOT" -B "$build" "$@" "${extra[@]}")

    if [[ -e "$build/CMakeCache.txt" ]]; then
        home="$(cache_value "$build" CMAKE_HOME_DIRECTORY)"
        place="$(cache_value "$build" CMAKE_CACHEFILE_DIR)"
        if [[ "$home" -ef "$FAISS_EXT_ROOT" && "$place" -ef "$build" ]]; then
            if "${command[@]}"; then
                return 0
            fi
            echo "The configuration kept in $build does not work; configuring afresh."
        else
            echo "$build was configured from ${home:-elsewhere}; configuring afresh."
        fi
        forget_cache "$build"
    fi
    "${command[@]}" -G Ninja
}

# configures build/, in which all is built that users need, and the tests
configure_release() {
    configure build -DCMAKE_BUILD_TYPE=Release -DFAISS_EXT_SANITIZE= -DFAISS_EXT_TEST_OBJECTS= \
        -DFAISS_EXT_BUILD_TESTS=ON -DFAISS_EXT_BUILD_PYTHON=ON -DPython3_EXECUTABLE="$PYTHON"
}

# run_cpp_tests FOLDER: runs the C++ tests built in FOLDER, side by side
run_cpp_tests() {
    "$CTEST" --test-dir "$1" --verbose --no-tests=error --parallel "$(build_jobs)"
}

# Instruction sets that builds with sanitizers leave out.
UNCHECKED_TARGETS="HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL"

# configure_checked FOLDER ARGUMENT...: as configure, for clang with
# AddressSanitizer and UndefinedBehaviorSanitizer. The runtimes are shared
# libraries, so that Python can load what is built. The inner loops are compiled
# for AVX2 and without vectors only (with Highway 1.0 on x86): what runs does not
# depend on the processor. The tests are the compiled ones of build/, linked with the
# checked library.
configure_checked() {
    local build="$1" runtimes
    shift
    runtimes="$(dirname "$(sanitizer_runtime)")"
    configure "$build" \
        -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1" \
        -DCMAKE_CXX_FLAGS=-shared-libasan \
        -DCMAKE_EXE_LINKER_FLAGS="-shared-libasan -Wl,-rpath,$runtimes" \
        -DCMAKE_SHARED_LINKER_FLAGS="-shared-libasan -Wl,-rpath,$runtimes" \
        -DCMAKE_MODULE_LINKER_FLAGS="-shared-libasan -fopenmp=libomp" \
        -DBUILD_SHARED_LIBS=ON -DFAISS_EXT_WERROR=ON \
        -DFAISS_EXT_DISABLED_TARGETS="$UNCHECKED_TARGETS" \
        -DFAISS_EXT_SANITIZE=address,undefined \
        -DFAISS_EXT_PRECOMPILE=ON -DFAISS_EXT_TEST_OBJECTS="$FAISS_EXT_ROOT/build" \
        -DFAISS_EXT_BUILD_TESTS=ON -DFAISS_EXT_BUILD_FUZZERS=ON \
        -DFAISS_EXT_BUILD_PYTHON=ON -DPython3_EXECUTABLE="$PYTHON" "$@"
    # short traces of allocations, which the nightly checks have whole
    export ASAN_OPTIONS="detect_leaks=1:malloc_context_size=10:strict_string_checks=1:detect_stack_use_after_return=0"
    export LSAN_OPTIONS="suppressions=$FAISS_EXT_ROOT/tests/sanitizer/lsan.supp:print_suppressions=0"
    export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1"
}

# configure_counted FOLDER: as configure_checked, with what libFuzzer needs, and
# counters of the lines that are run.
configure_counted() {
    configure_checked "$1" -DFAISS_EXT_SANITIZE=address,undefined,fuzzer-no-link -DFAISS_EXT_COVERAGE=ON
    export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1"
}

# Prints the path of clang's runtime of AddressSanitizer.
sanitizer_runtime() {
    clang -print-file-name="libclang_rt.asan-$(uname -m).so"
}
