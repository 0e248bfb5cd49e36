#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks src/ and its headers with clang-tidy, with the checks in .clang-tidy and
# the compiler flags of scripts/sanitize.sh.
#
#   scripts/tidy.sh [--recent N | FILE...]
#
# --recent checks the N sources of src/ that were changed last.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

if (($#)) && [[ "$1" == --help || "$1" == -h ]]; then
    print_usage
    exit
fi

install_deps build ci fuzz
find_tools
configure_checked build/checked >/dev/null
files=("$@")
if [[ "${1:-}" == --recent ]]; then
    mapfile -t files < <(git -c safe.directory="$PWD" log -n 300 --name-only --diff-filter=d --format= \
        -- 'src/*.cpp' | awk '!seen[$0]++' | while read -r file; do
        [[ ! -e "$file" ]] || echo "$file"
    done | sed -n "1,$2p")
fi
((${#files[@]})) || mapfile -t files < <(find src -name '*.cpp' | sort)
clang-tidy --version | grep version
said="$(mktemp)"
trap 'rm -f "$said"' EXIT
status=0
printf '%s\n' "${files[@]}" | xargs -P "$(build_jobs)" -n 1 \
    clang-tidy -quiet -p build/checked 2>"$said" || status=1
# a .clang-tidy that it cannot read, say, which it does not count as a failure
if grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated|^Suppressed |^Use -' "$said"; then
    status=1
fi
((status == 0)) || exit 1
echo "${#files[@]} files have none of the mistakes that .clang-tidy names."
