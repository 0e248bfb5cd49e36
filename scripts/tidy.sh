#!/usr/bin/env bash
# Looks for mistakes in src/ and its headers with clang-tidy; .clang-tidy says for
# which. Sources are read as scripts/sanitize.sh compiles them.
#
#   scripts/tidy.sh [FILE...]
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
((${#files[@]})) || mapfile -t files < <(find src -name '*.cpp' | sort)
clang-tidy --version | grep version
printf '%s\n' "${files[@]}" | xargs -P "$(build_jobs)" -n 4 \
    clang-tidy -quiet -p build/checked 2>/dev/null
echo "${#files[@]} files have none of the mistakes that .clang-tidy names."
