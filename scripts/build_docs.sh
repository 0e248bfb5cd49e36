#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the documentation site in build/site: the pages of docs/ with MkDocs, and
# the reference of the headers with Doxygen in build/site/reference. Warnings are
# errors. The site needs no network. MkDocs is installed once, from the network,
# in a virtual environment.
#
#   scripts/build_docs.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
    print_usage
    exit 0
fi

install_deps docs

venv=build/docs-venv
if ! cmp -s docs/requirements.txt "$venv/requirements.txt"; then
    /usr/bin/python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r docs/requirements.txt
    cp docs/requirements.txt "$venv/"
fi

NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict
# what a page loads, in contrast to what it links to, must be part of the site
if grep -rnoE '<(script|img|iframe)[^>]* src="?(https?:)?//[^ >]*|<link[^>]* href="?(https?:)?//[^ >]*' \
    --include='*.html' build/site; then
    echo "build_docs: these would be loaded from elsewhere" >&2
    exit 1
fi
doxygen docs/Doxyfile
echo "build/site/index.html: $(find build/site -name '*.html' -not -path '*/reference/*' | wc -l) pages;" \
    "build/site/reference/index.html: the headers"
