#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the fuzzers of tests/fuzz with clang's AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs each of them.
#
#   scripts/fuzz.sh MINUTES [files] [strings] [walks] [sparse]
#
# MINUTES may be a fraction. The inputs in tests/fuzz/found, which caused failures
# before, run first. With 0 minutes, only these and the first inputs of each fuzzer
# run, without new ones, in build/checked. Otherwise the corpus is kept in
# build/counted/corpus between runs. If an input causes a failure, it is written to
# the folder "found" of the build, and the exit status is 1.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

if (($# == 0)) || [[ "$1" == --help || "$1" == -h ]]; then
    print_usage
    exit $(($# == 0))
fi
if ! [[ "$1" =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ ]]; then
    echo "fuzz.sh: expected a number of minutes, got '$1'" >&2
    exit 2
fi
seconds="$(awk -v minutes="$1" 'BEGIN { print int(60 * minutes) }')"
shift
targets=("$@")
((${#targets[@]})) || targets=(files strings walks sparse)
for target in "${targets[@]}"; do
    if [[ ! -e "tests/fuzz/fuzz_$target.cpp" ]]; then
        echo "fuzz.sh: unknown target '$target'; there are files, strings, walks and sparse" >&2
        exit 2
    fi
done

install_deps build fuzz
find_tools
build=build/counted
configured=configure_counted
if ((seconds == 0)); then
    build=build/checked
    configured=configure_checked
fi
"$configured" "$build"
"$CMAKE" --build "$build" --parallel "$(build_jobs)" --target fuzzers
"$PYTHON" tests/fuzz/seeds.py "$build/seeds"

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# (every stack of calls that has asked for memory is kept, which long runs have no
# room for)
export ASAN_OPTIONS="$ASAN_OPTIONS:malloc_context_size=1"
export LLVM_PROFILE_FILE=/dev/null
runtime="$(sanitizer_runtime)" # which must be loaded first
status=0
for target in "${targets[@]}"; do
    fuzzer="$build/tests/fuzz/fuzz_$target"
    mkdir -p "$build/corpus/$target" "$build/found"
    echo "=== $target"
    folders=("tests/fuzz/found/$target")
    ((seconds > 0)) || folders+=("$build/seeds/$target")
    mapfile -t inputs < <(find "${folders[@]}" -type f 2>/dev/null | sort)
    if ((${#inputs[@]})); then
        LD_PRELOAD="$runtime" "$fuzzer" -rss_limit_mb=2048 -malloc_limit_mb=256 \
            -artifact_prefix="$build/found/$target-" "${inputs[@]}" >"$build/found/$target.log" 2>&1 || {
            status=1
            tail -n 60 "$build/found/$target.log"
        }
        echo "${#inputs[@]} inputs"
    fi
    ((seconds > 0)) || continue
    # no input is larger than 16 kB: none needs more memory than this
    LD_PRELOAD="$runtime" "$fuzzer" -max_total_time="$seconds" -max_len=16384 -timeout=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=256 -print_final_stats=1 \
        -artifact_prefix="$build/found/$target-" -verbosity=0 \
        "$build/corpus/$target" "$build/seeds/$target" >"$build/found/$target.log" 2>&1 || {
        status=1
        tail -n 60 "$build/found/$target.log"
    }
    grep '^stat::' "$build/found/$target.log" || true
done
exit "$status"
