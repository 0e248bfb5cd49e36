#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds Debian packages of faiss_ext for Debian's FAISS, on Debian 12 or 13:
# libfaiss-ext-dev for C++, and python3-faiss-ext.
#
#   scripts/build_deb.sh [--out FOLDER]
#
#   --out FOLDER   folder for the packages and the source package (default: dist)
#
# Committed files are packaged. To install the result, run
# `apt install ./dist/*.deb` as root.
#
# Environment:
#   DEB_BUILD_OPTIONS        as for dpkg-buildpackage (default: as many compilers
#                            as the memory allows)
#   FAISS_EXT_SKIP_INSTALL   as in install_deps.sh
set -euo pipefail

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fail() {
    echo "build_deb.sh: $*" >&2
    exit 2
}

out="$FAISS_EXT_ROOT/dist"
while (($# > 0)); do
    case "$1" in
        --help | -h)
            print_usage
            exit
            ;;
        --out)
            (($# > 1)) || fail "$1 needs a value"
            out="$2"
            shift 2
            ;;
        *) fail "unknown argument '$1'; see --help" ;;
    esac
done
mkdir -p "$out"
out="$(cd "$out" && pwd)"

install_deps build deb
work="$FAISS_EXT_ROOT/build/deb"
rm -rf "$work"
mkdir -p "$work/faiss-ext"
git -c safe.directory="$FAISS_EXT_ROOT" -C "$FAISS_EXT_ROOT" archive HEAD | tar -x -C "$work/faiss-ext"
cd "$work/faiss-ext"
# (packages of debugging symbols would be installed with the others)
DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-parallel=$(build_jobs)}" dpkg-buildpackage -us -uc
cd "$work"
lintian --fail-on error ./*.changes
find . -maxdepth 1 -type f -exec mv -t "$out" {} +
ls "$out"/*.deb
