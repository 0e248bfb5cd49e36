#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes a release: tested wheels for each minor version of FAISS, their checksums,
# and the release notes.
#
#   scripts/release.sh --faiss-checkouts DIR [--out FOLDER] [--draft]
#
#   --faiss-checkouts DIR   folder of checkouts of FAISS, one folder for each tag.
#                           The oldest patch of each minor version is used, from
#                           1.14.2 on, because wheels also serve later patches
#   --out FOLDER            folder for the results, which must be empty or new
#                           (default: dist)
#   --draft                 works even if CHANGELOG.md says that the version is
#                           not released yet, or if there are uncommitted changes
#
# Each wheel is installed in clean environments. In one of them the code of the
# README runs, and in another one all tests (test_matrix.sh). The results are the
# wheels, SHA256SUMS and release_notes.md, which appear in the folder only after all
# tests have passed. Nothing is uploaded. With --draft, uncommitted changes are in the
# wheels, too.
#
# Environment:
#   PYTHON, FAISS_EXT_SKIP_INSTALL   as in build_wheel.sh
set -euo pipefail

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fail() {
    echo "release.sh: $*" >&2
    exit 2
}

checkouts='' out="$FAISS_EXT_ROOT/dist" draft=0
while (($# > 0)); do
    case "$1" in
        --help | -h)
            print_usage
            exit
            ;;
        --draft)
            draft=1
            shift
            ;;
        --faiss-checkouts | --out)
            (($# > 1)) || fail "$1 needs a value"
            case "$1" in
                --faiss-checkouts) checkouts="$2" ;;
                --out) out="$2" ;;
            esac
            shift 2
            ;;
        *) fail "unknown argument '$1'; see --help" ;;
    esac
done
[[ -n "$checkouts" ]] || fail "--faiss-checkouts is missing; see --help"
[[ -d "$checkouts" ]] || fail "there is no folder $checkouts"
[[ -z "$(ls -A "$out" 2>/dev/null)" ]] || fail "$out is not empty; give another folder with --out"

version="$(sed -n 's/^project(faiss_ext VERSION \([0-9.]*\).*/\1/p' "$FAISS_EXT_ROOT/CMakeLists.txt")"
changes="$FAISS_EXT_ROOT/CHANGELOG.md"
heading="$(grep -m 1 '^## ' "$changes")"
[[ "$heading" == "## $version, "* ]] ||
    fail "CMakeLists.txt has version $version, but the first section of CHANGELOG.md is '$heading'"
if ((!draft)); then
    [[ "$heading" != *"not released yet"* ]] ||
        fail "CHANGELOG.md says '$heading'. Put the date there, or use --draft"
    unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
    git=(git -c "safe.directory=$FAISS_EXT_ROOT" -C "$FAISS_EXT_ROOT") # of any user
    top="$("${git[@]}" rev-parse --show-toplevel 2>/dev/null)" || true
    [[ -n "$top" && "$top" -ef "$FAISS_EXT_ROOT" ]] ||
        fail "$FAISS_EXT_ROOT is not a git repository. Use a clone, or --draft"
    changed="$("${git[@]}" status --porcelain --untracked-files=normal --ignore-submodules=none)" ||
        fail "git status failed"
    [[ -z "$changed" ]] || fail "there are uncommitted changes. Commit them, or use --draft:"$'\n'"$changed"
fi

# folder_of[MINOR]: the checkout of its oldest patch
declare -A folder_of=()
while read -r faiss folder; do
    if is_at_least 1.14.2 "$faiss"; then
        folder_of["${faiss%.*}"]="$folder"
    else
        echo "$folder is left out: wheels need FAISS 1.14.2 or newer, and this is $faiss"
    fi
done < <(
    for folder in "$checkouts"/*/; do
        [[ ! -r "$folder/faiss/Index.h" ]] || echo "$(header_version "$folder")" "$(cd "$folder" && pwd)"
    done | sort -rV
)
((${#folder_of[@]} > 0)) ||
    fail "$checkouts has no folder with faiss/Index.h of FAISS 1.14.2 or newer"

results="$FAISS_EXT_ROOT/build/release-results"
rm -rf "$results"
mkdir -p "$results" "$(dirname "$out")"
[[ -w "$(dirname "$out")" ]] || fail "cannot write to $(dirname "$out")"
while read -r minor; do
    echo "=== FAISS $minor: ${folder_of[$minor]}"
    "$FAISS_EXT_ROOT/scripts/test_matrix.sh" wheel --faiss-include "${folder_of[$minor]}"
    cp "$FAISS_EXT_ROOT"/build/matrix/wheel/*.whl "$results/"
done < <(printf '%s\n' "${!folder_of[@]}" | sort -V)

(cd "$results" && sha256sum -- *.whl >SHA256SUMS)
{
    echo "# faiss_ext $version"
    awk '/^## / { section++; next } section == 1' "$changes"
} >"$results/release_notes.md"
mkdir -p "$out"
mv "$results"/* "$out/"
ls "$out"
