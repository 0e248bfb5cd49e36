# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Runs checks one after the other. Source this file.

# run_stages NAME...: calls stage_NAME for each name, even if an earlier one failed.
# The last lines show the result of each. The status is 0 only if all passed.
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
