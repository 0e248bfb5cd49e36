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
unset CDPATH # with it, cd prints

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
[[ -n "$out" ]] || fail "--out is empty; see --help"
[[ ! -e "$out" || -d "$out" ]] || fail "$out is not a folder"
[[ -z "$(ls -A "$out" 2>/dev/null)" ]] || fail "$out is not empty; give another folder with --out"

version="$(sed -n 's/^project(faiss_ext VERSION \([0-9.]*\).*/\1/p' "$FAISS_EXT_ROOT/CMakeLists.txt")"
changes="$FAISS_EXT_ROOT/CHANGELOG.md"
heading="$(grep -m 1 '^## ' "$changes" || true)"
[[ "$heading" == "## $version, "* ]] ||
    fail "CMakeLists.txt has version $version, but the first section of CHANGELOG.md is '$heading'"
notes="# faiss_ext $version
$(awk '/^## / { section++; next } section == 1' "$changes")"

# Prints the commit. Fails if it does not contain all files.
committed() {
    local git=(git -c "safe.directory=$FAISS_EXT_ROOT" -C "$FAISS_EXT_ROOT") # of any user
    local top changed
    top="$("${git[@]}" rev-parse --show-toplevel 2>/dev/null)" || true
    [[ -n "$top" && "$top" -ef "$FAISS_EXT_ROOT" ]] ||
        fail "$FAISS_EXT_ROOT is not a git repository. Use a clone, or --draft"
    changed="$("${git[@]}" status --porcelain --untracked-files=normal --ignore-submodules=none)" ||
        fail "git status failed"
    [[ -z "$changed" ]] || fail "there are uncommitted changes. Commit them, or use --draft:"$'\n'"$changed"
    "${git[@]}" rev-parse --verify HEAD 2>/dev/null || fail "there is no commit. Use a clone, or --draft"
}

released=''
if ((!draft)); then
    [[ "$heading" =~ ,\ [0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
        fail "CHANGELOG.md says '$heading'. Put the date there, or use --draft"
    command -v git >/dev/null || fail "git is missing. Install it, or use --draft"
    # shellcheck disable=SC2046 # names of variables
    unset $(git rev-parse --local-env-vars)
    released="$(committed)"
fi

found=()
for folder in "$checkouts"/*/; do
    if [[ ! -r "$folder/faiss/Index.h" ]]; then
        echo "$folder is left out: it has no faiss/Index.h"
        continue
    fi
    faiss="$(header_version "$folder")"
    [[ "$faiss" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "$folder/faiss/Index.h names no version"
    if is_at_least 1.14.2 "$faiss"; then
        found+=("$faiss $(cd "$folder" && pwd)")
    else
        echo "$folder is left out: wheels need FAISS 1.14.2 or newer, and this is $faiss"
    fi
done
((${#found[@]} > 0)) ||
    fail "$checkouts has no folder with faiss/Index.h of FAISS 1.14.2 or newer"
# folder_of[MINOR]: the checkout of its oldest patch
declare -A folder_of=()
while read -r faiss folder; do
    folder_of["${faiss%.*}"]="$folder"
done < <(printf '%s\n' "${found[@]}" | sort -rV)

results="$FAISS_EXT_ROOT/build/release-results"
rm -rf "$results"
if [[ ! -d "$out" ]]; then
    mkdir -p "$out" || fail "cannot make the folder $out"
    trap 'rmdir "$out" 2>/dev/null || true' EXIT # if it is still empty
fi
[[ -r "$out" && -w "$out" && -x "$out" ]] || fail "cannot write to $out"
out="$(cd "$out" && pwd)"
[[ "$out/" != "$results/"* ]] || fail "$out is used for unfinished results; give another folder with --out"
mkdir -p "$results"
while read -r minor; do
    echo "=== FAISS $minor: ${folder_of[$minor]}"
    "$FAISS_EXT_ROOT/scripts/test_matrix.sh" wheel --faiss-include "${folder_of[$minor]}" </dev/null
    cp "$FAISS_EXT_ROOT"/build/matrix/wheel/*.whl "$results/"
done < <(printf '%s\n' "${!folder_of[@]}" | sort -V)

wheels=("$results"/*.whl)
((${#wheels[@]} == ${#folder_of[@]})) || fail "there are ${#wheels[@]} wheels for ${#folder_of[@]} versions of FAISS"
((draft)) || [[ "$(committed)" == "$released" ]] || fail "there is a new commit; the wheels are of $released"
(cd "$results" && sha256sum -- *.whl >SHA256SUMS)
echo "$notes" >"$results/release_notes.md"
mv "$results"/* "$out/"
ls "$out"
