# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Runs checks one after the other. To be sourced.

# run_stages NAME...: calls stage_NAME for each name, whatever became of the ones
# before it. The last lines printed say how each ended; the status is 0 only if all
# passed.
run_stages() {
    local stage start status outcome failed=0
    local -a outcomes=()
    for stage in "$@"; do
        echo "=== $stage"
        start=$SECONDS
        # Not as a condition: that would switch off "set -e" inside the stage.
        set +e
        (
            set -e
            "stage_$stage"
        ) </dev/null
        status=$?
        set -e
        outcome=passed
        if ((status != 0)); then
            outcome="FAILED (exit status $status)"
            failed=1
        fi
        outcomes+=("$(printf '%-11s%s, %d s' "$stage" "$outcome" $((SECONDS - start)))")
    done

    echo "=== outcome"
    printf '%s\n' "${outcomes[@]}"
    return "$failed"
}
